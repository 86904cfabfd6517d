/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/stalls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"

/* All interrupts that a stall has held back are served within this after it. */
#define BACKLOG_NS 1000000

static int by_cpu_and_start(const void *a, const void *b)
{
	const struct stall *left = a, *right = b;

	if (left->cpu != right->cpu)
		return left->cpu < right->cpu ? -1 : 1;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

int stalls_build(struct stalls *stalls, const struct tailor_window *window)
{
	size_t count = 0;

	*stalls = (struct stalls){0};
	for (size_t i = 0; i < window->event_count; i++)
		count += window->events[i].event.kind == TAILOR_EVENT_CPU_STALL;
	stalls->list = calloc(count + 1, sizeof(*stalls->list));
	if (!stalls->list)
		return -ENOMEM;
	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if (event->kind == TAILOR_EVENT_CPU_STALL && event->arg[0] < event->time_ns)
			stalls->list[stalls->count++] = (struct stall){event->cpu, event->arg[0], event->time_ns};
	}
	if (stalls->count > 1)
		qsort(stalls->list, stalls->count, sizeof(*stalls->list), by_cpu_and_start);
	for (size_t i = 1; i < stalls->count; i++) {
		struct stall *stall = &stalls->list[i], *before = stall - 1;

		if (before->cpu == stall->cpu && stall->start_ns < before->end_ns)
			stall->start_ns = before->end_ns;
		if (stall->end_ns < stall->start_ns)
			stall->end_ns = stall->start_ns;
	}
	return 0;
}

void stalls_free(struct stalls *stalls)
{
	free(stalls->list);
	*stalls = (struct stalls){0};
}

/* The first of the CPU that ends after time_ns; the list's end when there is none. */
static const struct stall *stall_after(const struct stalls *stalls, unsigned int cpu, uint64_t time_ns)
{
	size_t low = 0, high = stalls->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct stall *stall = &stalls->list[middle];

		if (stall->cpu < cpu || (stall->cpu == cpu && stall->end_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return stalls->list + low;
}

static void cut(struct span_list *spans, size_t first, const struct stall *stall, uint64_t start_ns, uint64_t end_ns)
{
	char duration[32];

	tailor_format_duration(duration, sizeof(duration), stall->end_ns - stall->start_ns);
	span_list_split(spans, first, start_ns, end_ns);
	for (size_t i = first; i < spans->count; i++) {
		struct tailor_span *span = &spans->spans[i];

		if (!span_within(span, start_ns, end_ns))
			continue;
		span->cause = TAILOR_CAUSE_MACHINE_STOPPED;
		span_detail(span, "CPU %u answered no timer for %s", stall->cpu, duration);
	}
}

void stalls_cut(const struct stalls *stalls, struct span_list *spans, size_t first, unsigned int cpu, uint64_t since_ns)
{
	const struct stall *end = stalls->list + stalls->count;
	uint64_t from = UINT64_MAX, to = 0;

	for (size_t i = first; i < spans->count; i++) {
		from = spans->spans[i].start_ns < from ? spans->spans[i].start_ns : from;
		to = spans->spans[i].end_ns > to ? spans->spans[i].end_ns : to;
	}
	from = from > since_ns ? from : since_ns;
	if (from >= to)
		return;
	for (const struct stall *stall = stall_after(stalls, cpu, from); stall < end && stall->cpu == cpu && stall->start_ns < to; stall++)
		cut(spans, first, stall, stall->start_ns > since_ns ? stall->start_ns : since_ns, stall->end_ns);
}

void stalls_cut_wait(const struct stalls *stalls, struct span_list *spans, size_t first, const struct tailor_event *wakeup)
{
	uint64_t since = wakeup->time_ns > BACKLOG_NS ? wakeup->time_ns - BACKLOG_NS : 0;
	const struct stall *stall = stall_after(stalls, wakeup->cpu, since);

	if (TAILOR_TASK_TID(wakeup->arg[0]) == 0 && stall < stalls->list + stalls->count && stall->cpu == wakeup->cpu &&
	    stall->start_ns < wakeup->time_ns && stall->end_ns <= wakeup->time_ns + BACKLOG_NS)
		cut(spans, first, stall, stall->start_ns, wakeup->time_ns);
}
