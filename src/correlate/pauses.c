/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/pauses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "correlate/losses.h"
#include "correlate/safepoints.h"

static int by_pid_and_start(const void *a, const void *b)
{
	const struct pause *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	/* A start and its finish make one pause each; the finished one comes first and wins. */
	return (int)left->going_on - (int)right->going_on;
}

/* How far a collection without an end is known to have gone on: until that JVM's channel loses events, among which its end may be. */
static uint64_t known_until(const struct tailor_window *window, uint32_t pid, uint64_t start_ns)
{
	uint64_t end = window->record.request.end_ns;

	for (size_t s = 0; s < window->server_count; s++) {
		char channel[sizeof(window->losses->channel)];

		snprintf(channel, sizeof(channel), "jvm:%.19s", window->servers[s].name);
		if (window->servers[s].pid == pid)
			end = losses_known_until(window, channel, start_ns);
	}
	return end > start_ns ? end : start_ns;
}

/* Makes the pauses of one process disjoint. A pause that another one follows without its own end tells nothing. */
static void settle_collections(struct pauses *pauses)
{
	const struct tailor_window *window = pauses->window;
	size_t count = 0;

	for (size_t i = 0; i < pauses->pause_count; i++) {
		struct pause pause = pauses->pauses[i];
		const struct pause *next = i + 1 < pauses->pause_count ? &pauses->pauses[i + 1] : NULL;
		struct pause *last = count > 0 ? &pauses->pauses[count - 1] : NULL;

		if (pause.going_on) {
			if (last && last->pid == pause.pid && last->end_ns >= pause.start_ns) {
				if (last->start_ns == pause.start_ns)
					last->sync_ns = pause.sync_ns;
				continue;
			}
			if (next && next->pid == pause.pid)
				continue;
			pause.end_ns = known_until(window, pause.pid, pause.start_ns);
		}
		if (last && last->pid == pause.pid && pause.start_ns < last->end_ns)
			pause.start_ns = last->end_ns;
		if (pause.start_ns < pause.end_ns)
			pauses->pauses[count++] = pause;
	}
	pauses->pause_count = count;
}

static void add_collection(struct pauses *pauses, const struct tailor_window_event *entry)
{
	const struct tailor_event *event = &entry->event;
	struct pause pause = {.pid = event->pid, .start_ns = event->time_ns, .end_ns = event->time_ns, .cause = TAILOR_CAUSE_GC};

	if (event->kind == TAILOR_EVENT_GC_START) {
		pause.going_on = 1;
		pause.sync_ns = event->arg[1];
	} else if (event->kind == TAILOR_EVENT_GC_FINISH && event->arg[1] > 0 && event->arg[1] < event->time_ns) {
		pause.start_ns = event->arg[1];
		pause.text = entry->text;
	} else {
		return;
	}
	pauses->pauses[pauses->pause_count++] = pause;
}

static int read_collections(struct pauses *pauses)
{
	const struct tailor_window *window = pauses->window;
	size_t count = 0;

	for (size_t i = 0; i < window->event_count; i++)
		count += window->events[i].event.kind == TAILOR_EVENT_GC_START || window->events[i].event.kind == TAILOR_EVENT_GC_FINISH;
	pauses->pauses = calloc(count + 1, sizeof(*pauses->pauses));
	if (!pauses->pauses)
		return -ENOMEM;
	for (size_t i = 0; i < window->event_count; i++)
		add_collection(pauses, &window->events[i]);
	if (pauses->pause_count > 1)
		qsort(pauses->pauses, pauses->pause_count, sizeof(*pauses->pauses), by_pid_and_start);
	settle_collections(pauses);
	return 0;
}

/* Adds a piece behind the others, less what they have of it. */
static void emit(struct pauses *out, struct pause pause)
{
	const struct pause *last = out->pause_count > 0 ? &out->pauses[out->pause_count - 1] : NULL;

	if (last && last->pid == pause.pid && pause.start_ns < last->end_ns)
		pause.start_ns = last->end_ns;
	if (pause.start_ns < pause.end_ns)
		out->pauses[out->pause_count++] = pause;
}

static void emit_collection(struct pauses *out, struct pause pause, int probed)
{
	if (!probed && pause.sync_ns > 0 && pause.sync_ns < pause.start_ns) {
		emit(out, (struct pause){.pid = pause.pid,
		                         .start_ns = pause.start_ns - pause.sync_ns,
		                         .end_ns = pause.start_ns,
		                         .cause = TAILOR_CAUSE_TIME_TO_SAFEPOINT});
	}
	pause.probed = (uint8_t)probed;
	emit(out, pause);
}

/* Of a safepoint, what is no collection of the agent's: before all threads had stopped, and after. */
static void emit_safepoint(struct pauses *out, const struct safepoint *safepoint, uint64_t from_ns, uint64_t to_ns, int collected)
{
	struct pause pause = {.pid = safepoint->pid,
	                      .start_ns = from_ns,
	                      .end_ns = to_ns,
	                      .cause = TAILOR_CAUSE_SAFEPOINT,
	                      .going_on = safepoint->going_on,
	                      .probed = 1,
	                      .beside = safepoint->beside,
	                      .operation = safepoint->operation};
	uint64_t stopped = safepoint->stopped_ns;

	if (stopped > from_ns) {
		pause.cause = TAILOR_CAUSE_TIME_TO_SAFEPOINT;
		pause.end_ns = stopped < to_ns ? stopped : to_ns;
		emit(out, pause);
		pause.start_ns = pause.end_ns;
		pause.end_ns = to_ns;
		pause.cause = TAILOR_CAUSE_SAFEPOINT;
	}
	/* Only where the agent would not have told can the operation's name stand for the collection. */
	if (!collected && pause.operation && operation_collects(pause.operation) &&
	    ((out->window->missing & TAILOR_MISSING_AGENT) || losses_in(out->window, "jvm:", from_ns, to_ns)))
		pause.cause = TAILOR_CAUSE_GC;
	emit(out, pause);
}

static int is_before(const struct pause *pause, const struct safepoint *safepoint)
{
	return pause->pid != safepoint->pid ? pause->pid < safepoint->pid : pause->start_ns < safepoint->begin_ns;
}

/* Both are ordered; each safepoint is cut by the collections within it. */
static void merge(struct pauses *out, const struct pauses *collections, const struct safepoint *safepoints, size_t count)
{
	const struct pause *next = collections->pauses, *end = next + collections->pause_count;

	for (size_t i = 0; i < count; i++) {
		const struct safepoint *safepoint = &safepoints[i];
		uint64_t from = safepoint->begin_ns;
		int collected = 0;

		for (; next < end && is_before(next, safepoint); next++)
			emit_collection(out, *next, 0);
		for (; next < end && next->pid == safepoint->pid && next->start_ns < safepoint->end_ns; next++) {
			emit_safepoint(out, safepoint, from, next->start_ns, 1);
			emit_collection(out, *next, 1);
			from = next->end_ns;
			collected = 1;
		}
		if (from < safepoint->end_ns)
			emit_safepoint(out, safepoint, from, safepoint->end_ns, collected);
	}
	for (; next < end; next++)
		emit_collection(out, *next, 0);
}

int pauses_build(struct pauses *pauses, const struct tailor_window *window)
{
	struct pauses collections = {.window = window};
	struct safepoint *safepoints = NULL;
	size_t count = 0;
	int error = read_collections(&collections);

	*pauses = (struct pauses){.window = window};
	if (!error)
		error = safepoints_read(window, &safepoints, &count);
	if (!error) {
		/* A collection brings at most three pieces more than itself, a safepoint three. */
		pauses->pauses = calloc(4 * collections.pause_count + 3 * count + 1, sizeof(*pauses->pauses));
		error = pauses->pauses ? 0 : -ENOMEM;
	}
	if (!error)
		merge(pauses, &collections, safepoints, count);
	free(collections.pauses);
	free(safepoints);
	return error;
}

void pauses_free(struct pauses *pauses)
{
	free(pauses->pauses);
	*pauses = (struct pauses){0};
}

const struct pause *pauses_after(const struct pauses *pauses, uint32_t pid, uint64_t time_ns)
{
	size_t low = 0, high = pauses->pause_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct pause *pause = &pauses->pauses[middle];

		if (pause->pid < pid || (pause->pid == pid && pause->end_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < pauses->pause_count && pauses->pauses[low].pid == pid ? &pauses->pauses[low] : NULL;
}

const struct pause *pauses_next(const struct pauses *pauses, const struct pause *pause)
{
	const struct pause *next = pause + 1;

	return next < pauses->pauses + pauses->pause_count && next->pid == pause->pid ? next : NULL;
}

const char *pause_collector(const struct pause *pause, char *buffer, size_t size)
{
	/* The names of the JVM's garbage collector beans, and what people call them. */
	static const struct {
		const char *bean, *name;
	} known[] = {
	        {"Copy", "Serial young"},
	        {"MarkSweepCompact", "Serial full"},
	        {"PS Scavenge", "Parallel young"},
	        {"PS MarkSweep", "Parallel full"},
	        {"G1 Young Generation", "G1 young"},
	        {"G1 Old Generation", "G1 full"},
	        {"G1 Concurrent GC", "G1 concurrent"},
	        {"ZGC Pauses", "ZGC"},
	        {"Shenandoah Pauses", "Shenandoah"},
	};
	size_t length = pause->text ? strcspn(pause->text, "\t") : 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].bean) == length && memcmp(known[i].bean, pause->text, length) == 0) {
			snprintf(buffer, size, "%s", known[i].name);
			return buffer;
		}
	}
	snprintf(buffer, size, "%.*s", (int)(length < 40 ? length : 40), pause->text ? pause->text : "");
	return buffer;
}

static void describe_operation(const struct pause *pause, char *buffer, size_t size)
{
	const char *meaning = pause->operation ? operation_meaning(pause->operation) : NULL;

	if (pause->cause == TAILOR_CAUSE_TIME_TO_SAFEPOINT)
		snprintf(buffer, size, "until the other threads had stopped, too%s%.40s", pause->operation ? ", for " : "",
		         pause->operation ? pause->operation : "");
	else if (pause->operation)
		snprintf(buffer, size, "%.40s%s%s", pause->operation, meaning ? ", " : "", meaning ? meaning : "");
	else
		snprintf(buffer, size, "stopped by the VM Thread, not for a collection");
}

void pause_describe(const struct pause *pause, char *buffer, size_t size)
{
	const char *cause = pause->text ? strchr(pause->text, '\t') : NULL;
	char collector[48], duration[32];

	if (pause->cause != TAILOR_CAUSE_GC) {
		describe_operation(pause, buffer, size);
		return;
	}
	pause_collector(pause, collector, sizeof(collector));
	tailor_format_duration(duration, sizeof(duration), pause->end_ns - pause->start_ns);
	if (!pause->text && pause->operation)
		snprintf(collector, sizeof(collector), "%.40s", pause->operation);
	if (pause->going_on) {
		snprintf(buffer, size, "still going on after %s", duration);
		return;
	}
	snprintf(buffer, size, "%s%s%.40s%spause %s", collector, collector[0] ? ", " : "", cause ? cause + 1 : "",
	         cause && cause[1] ? ", " : "", duration);
}
