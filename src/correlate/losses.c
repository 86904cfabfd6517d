/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/losses.h"

#include <stdio.h>
#include <string.h>

static int begins_with(const struct tailor_loss *loss, const char *start)
{
	return strncmp(loss->channel, start, strlen(start)) == 0;
}

const struct tailor_loss *losses_of_cpu(const struct tailor_window *window, unsigned int cpu, uint64_t from_ns, uint64_t to_ns)
{
	const struct tailor_loss *found = NULL;
	char channel[sizeof(window->losses->channel)];

	snprintf(channel, sizeof(channel), "cpu%u", cpu);
	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (loss->to_ns <= from_ns || loss->from_ns >= to_ns || strncmp(loss->channel, channel, sizeof(channel)) != 0)
			continue;
		if (!found || loss->from_ns < found->from_ns)
			found = loss;
	}
	return found;
}

int losses_in(const struct tailor_window *window, const char *channels, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (begins_with(loss, channels) && loss->from_ns < to_ns && loss->to_ns > from_ns)
			return 1;
	}
	return 0;
}

uint64_t losses_known_until(const struct tailor_window *window, const char *channels, uint64_t from_ns)
{
	uint64_t end = window->record.request.end_ns;

	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (begins_with(loss, channels) && loss->to_ns > from_ns && loss->from_ns < end)
			end = loss->from_ns;
	}
	return end > from_ns ? end : from_ns;
}

/* A thread that waits for anything may have run meanwhile, unseen, on the CPU whose events were lost. */
static int rests_on_absence(enum tailor_cause cause)
{
	switch (cause) {
	case TAILOR_CAUSE_PROXY_RUN_QUEUE:
	case TAILOR_CAUSE_PROXY_STOPPED:
	case TAILOR_CAUSE_REQUEST_TRANSIT:
	case TAILOR_CAUSE_SERVER_QUEUE:
	case TAILOR_CAUSE_RUN_QUEUE:
	case TAILOR_CAUSE_PREEMPTED:
	case TAILOR_CAUSE_THROTTLED:
	case TAILOR_CAUSE_STOPPED:
	case TAILOR_CAUSE_BLOCKED_LOCK:
	case TAILOR_CAUSE_BLOCKED_IO:
	case TAILOR_CAUSE_BLOCKED_SLEEP:
	case TAILOR_CAUSE_BLOCKED_NETWORK:
	case TAILOR_CAUSE_TIME_TO_SAFEPOINT:
	case TAILOR_CAUSE_SAFEPOINT:
	case TAILOR_CAUSE_PAGE_FAULT_MAJOR:
	case TAILOR_CAUSE_RESPONSE_BUFFERED:
	case TAILOR_CAUSE_RESPONSE_TRANSIT: return 1;
	default: return 0;
	}
}

void losses_doubt(const struct tailor_window *window, struct span_list *spans)
{
	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (!begins_with(loss, "cpu") || loss->from_ns >= loss->to_ns)
			continue;
		span_list_split(spans, 0, loss->from_ns, loss->to_ns);
		for (size_t s = 0; s < spans->count; s++) {
			struct tailor_span *span = &spans->spans[s];

			if (!rests_on_absence(span->cause) || !span_within(span, loss->from_ns, loss->to_ns))
				continue;
			span->cause = TAILOR_CAUSE_UNEXPLAINED;
			span_detail(span, "events of CPU %.20s were lost", loss->channel + 3);
		}
	}
}

static int matters(const struct tailor_loss *loss, const char *server)
{
	char channel[sizeof(loss->channel)];

	snprintf(channel, sizeof(channel), "jvm:%.19s", server);
	return begins_with(loss, "cpu") || begins_with(loss, "worker") ||
	       (server[0] && strncmp(loss->channel, channel, sizeof(channel)) == 0);
}

uint16_t losses_complete(const struct tailor_window *window, const char *server, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t lost = 0, at = begin_ns;
	uint16_t parts;

	/* The union of the losses, from its beginning on: each step takes the next one's part beyond what was taken. */
	while (at < end_ns) {
		uint64_t from = UINT64_MAX, to = 0;

		for (size_t i = 0; i < window->loss_count; i++) {
			const struct tailor_loss *loss = &window->losses[i];
			uint64_t start = loss->from_ns > at ? loss->from_ns : at;

			if (!matters(loss, server) || loss->to_ns <= at || start >= end_ns || start > from)
				continue;
			if (start < from || loss->to_ns > to)
				to = loss->to_ns;
			from = start;
		}
		if (from == UINT64_MAX)
			break;
		to = to < end_ns ? to : end_ns;
		if (to <= from)
			break;
		lost += to - from;
		at = to;
	}
	if (lost == 0 || end_ns <= begin_ns)
		return 1000;
	parts = (uint16_t)(1000 * (double)(end_ns - begin_ns - lost) / (double)(end_ns - begin_ns));
	return parts < 1000 ? parts : 999;
}
