/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/pauses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

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

static int by_thread_and_start(const void *a, const void *b)
{
	const struct overlay *left = a, *right = b;

	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/*
 * How far a pause without an end is known to have gone on: to the window's last moment, or to the first loss in that
 * JVM's channel, in which its end may be.
 */
static uint64_t known_until(const struct tailor_window *window, uint32_t pid, uint64_t start_ns)
{
	uint64_t end = window->record.request.end_ns;

	for (size_t s = 0; s < window->server_count; s++) {
		char channel[sizeof(window->losses->channel)];

		if (window->servers[s].pid != pid)
			continue;
		snprintf(channel, sizeof(channel), "jvm:%.19s", window->servers[s].name);
		for (size_t i = 0; i < window->loss_count; i++) {
			const struct tailor_loss *loss = &window->losses[i];

			if (strncmp(loss->channel, channel, sizeof(channel)) == 0 && loss->to_ns > start_ns &&
			    loss->from_ns < end)
				end = loss->from_ns;
		}
	}
	return end > start_ns ? end : start_ns;
}

/* Makes the pauses of one process disjoint. A pause that another one follows without its own end tells nothing. */
static void settle_pauses(struct pauses *pauses)
{
	const struct tailor_window *window = pauses->window;
	size_t count = 0;

	for (size_t i = 0; i < pauses->pause_count; i++) {
		struct pause pause = pauses->pauses[i];
		const struct pause *next = i + 1 < pauses->pause_count ? &pauses->pauses[i + 1] : NULL;
		struct pause *last = count > 0 ? &pauses->pauses[count - 1] : NULL;

		if (pause.going_on) {
			if (last && last->pid == pause.pid && last->end_ns >= pause.start_ns)
				continue;
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

/* Makes the overlays of one thread disjoint: what touches or nests becomes one. */
static size_t settle_overlays(struct overlay *overlays, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct overlay *last = kept > 0 ? &overlays[kept - 1] : NULL;

		if (last && last->tid == overlays[i].tid && overlays[i].start_ns <= last->end_ns) {
			if (overlays[i].end_ns > last->end_ns)
				last->end_ns = overlays[i].end_ns;
			if (overlays[i].cause > last->cause) /* a fault that needed the disk decides */
				last->cause = overlays[i].cause;
			last->count += overlays[i].count;
			if (!last->name)
				last->name = overlays[i].name;
			continue;
		}
		overlays[kept++] = overlays[i];
	}
	return kept;
}

static void add_event(struct pauses *pauses, const struct tailor_window_event *entry)
{
	const struct tailor_event *event = &entry->event;
	struct overlay overlay = {.tid = event->tid, .end_ns = event->time_ns, .name = entry->text};

	switch (event->kind) {
	case TAILOR_EVENT_GC_START:
		pauses->pauses[pauses->pause_count++] = (struct pause){
		        .pid = event->pid, .start_ns = event->time_ns, .end_ns = event->time_ns, .going_on = 1};
		break;
	case TAILOR_EVENT_GC_FINISH:
		if (event->arg[1] < event->time_ns && event->arg[1] > 0)
			pauses->pauses[pauses->pause_count++] = (struct pause){.pid = event->pid,
			                                                       .start_ns = event->arg[1],
			                                                       .end_ns = event->time_ns,
			                                                       .text = entry->text};
		break;
	case TAILOR_EVENT_CLASS_LOAD:
	case TAILOR_EVENT_CLASS_PREPARE:
		if (event->arg[0] == 0 || event->arg[0] > event->time_ns)
			break;
		overlay.start_ns = event->time_ns - event->arg[0];
		overlay.cause = TAILOR_CAUSE_CLASS_LOADING;
		overlay.count = event->kind == TAILOR_EVENT_CLASS_LOAD;
		pauses->classes[pauses->class_count++] = overlay;
		break;
	case TAILOR_EVENT_PAGE_FAULT_END:
		if (event->arg[1] == 0 || event->arg[1] > event->time_ns)
			break;
		overlay.start_ns = event->time_ns - event->arg[1];
		overlay.cause = event->extra == 1 ? TAILOR_CAUSE_PAGE_FAULT_MAJOR : TAILOR_CAUSE_PAGE_FAULT_MINOR;
		overlay.count = 1;
		overlay.name = NULL;
		pauses->faults[pauses->fault_count++] = overlay;
		break;
	default: break;
	}
}

int pauses_build(struct pauses *pauses, const struct tailor_window *window)
{
	size_t collections = 0, classes = 0, faults = 0;

	*pauses = (struct pauses){.window = window};
	for (size_t i = 0; i < window->event_count; i++) {
		uint8_t kind = window->events[i].event.kind;

		collections += kind == TAILOR_EVENT_GC_START || kind == TAILOR_EVENT_GC_FINISH;
		classes += kind == TAILOR_EVENT_CLASS_LOAD || kind == TAILOR_EVENT_CLASS_PREPARE;
		faults += kind == TAILOR_EVENT_PAGE_FAULT_END;
	}
	pauses->pauses = calloc(collections + 1, sizeof(*pauses->pauses));
	pauses->classes = calloc(classes + 1, sizeof(*pauses->classes));
	pauses->faults = calloc(faults + 1, sizeof(*pauses->faults));
	if (!pauses->pauses || !pauses->classes || !pauses->faults)
		return -ENOMEM;
	for (size_t i = 0; i < window->event_count; i++)
		add_event(pauses, &window->events[i]);
	qsort(pauses->pauses, pauses->pause_count, sizeof(*pauses->pauses), by_pid_and_start);
	qsort(pauses->classes, pauses->class_count, sizeof(*pauses->classes), by_thread_and_start);
	qsort(pauses->faults, pauses->fault_count, sizeof(*pauses->faults), by_thread_and_start);
	settle_pauses(pauses);
	pauses->class_count = settle_overlays(pauses->classes, pauses->class_count);
	pauses->fault_count = settle_overlays(pauses->faults, pauses->fault_count);
	return 0;
}

void pauses_free(struct pauses *pauses)
{
	free(pauses->pauses);
	free(pauses->classes);
	free(pauses->faults);
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

void pause_describe(const struct pause *pause, char *buffer, size_t size)
{
	const char *cause = pause->text ? strchr(pause->text, '\t') : NULL;
	char collector[48], duration[32];

	pause_collector(pause, collector, sizeof(collector));
	tailor_format_duration(duration, sizeof(duration), pause->end_ns - pause->start_ns);
	if (pause->going_on) {
		snprintf(buffer, size, "still going on after %s", duration);
		return;
	}
	snprintf(buffer, size, "%s%s%.40s%spause %s", collector, collector[0] ? ", " : "", cause ? cause + 1 : "",
	         cause && cause[1] ? ", " : "", duration);
}

const struct overlay *overlay_after(const struct overlay *overlays, size_t count, uint32_t tid, uint64_t time_ns)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (overlays[middle].tid < tid || (overlays[middle].tid == tid && overlays[middle].end_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && overlays[low].tid == tid ? &overlays[low] : NULL;
}
