/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/cover.h"

#include <stdio.h>
#include <string.h>

/* Adds a span like `span`, with other times. */
static struct tailor_span *add_like(struct span_list *spans, uint64_t from_ns, uint64_t to_ns,
                                    const struct tailor_span *span)
{
	struct tailor_span *added = span_list_add(spans, from_ns, to_ns, span->cause);

	span_thread(added, span->pid, span->tid, span->thread);
	memcpy(added->detail, span->detail, sizeof(added->detail));
	return added;
}

static void add_pause(struct span_list *spans, uint64_t from_ns, uint64_t to_ns, const struct pause *pause,
                      const struct tailor_span *span)
{
	struct tailor_span *added = add_like(spans, from_ns, to_ns, span);

	added->cause = TAILOR_CAUSE_GC;
	pause_describe(pause, added->detail, sizeof(added->detail));
}

void cover_off_cpu(struct span_list *spans, const struct pauses *pauses, uint32_t server_pid, uint64_t from_ns,
                   uint64_t to_ns, const struct tailor_span *span)
{
	const struct pause *pause = server_pid ? pauses_after(pauses, server_pid, from_ns) : NULL;

	for (; pause && pause->start_ns < to_ns; pause = pauses_next(pauses, pause)) {
		uint64_t start = pause->start_ns > from_ns ? pause->start_ns : from_ns;
		uint64_t end = pause->end_ns < to_ns ? pause->end_ns : to_ns;

		add_like(spans, from_ns, start, span);
		add_pause(spans, start, end, pause, span);
		from_ns = end;
	}
	add_like(spans, from_ns, to_ns, span);
}

/* Only with all events of the agents can it be said that there was no collection. */
static int collections_are_known(const struct tailor_window *window, uint64_t from_ns, uint64_t to_ns)
{
	if (window->missing & TAILOR_MISSING_AGENT)
		return 0;
	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (strncmp(loss->channel, "jvm:", 4) == 0 && loss->from_ns < to_ns && loss->to_ns > from_ns)
			return 0;
	}
	return 1;
}

void cover_safepoint(struct span_list *spans, const struct pauses *pauses, uint32_t server_pid, uint64_t from_ns,
                     uint64_t to_ns, const struct tailor_span *span)
{
	const struct pause *pause = pauses_after(pauses, server_pid, from_ns);
	struct tailor_span other = *span;
	int collected = 0;

	for (; pause && pause->start_ns < to_ns; pause = pauses_next(pauses, pause)) {
		uint64_t start = pause->start_ns > from_ns ? pause->start_ns : from_ns;
		uint64_t end = pause->end_ns < to_ns ? pause->end_ns : to_ns;

		other.cause = collected ? TAILOR_CAUSE_SAFEPOINT : TAILOR_CAUSE_TIME_TO_SAFEPOINT;
		span_detail(&other, "%s",
		            collected ? "between two collections" : "until the other threads had stopped, too");
		add_like(spans, from_ns, start, &other);
		add_pause(spans, start, end, pause, span);
		from_ns = end;
		collected = 1;
	}
	other.cause = TAILOR_CAUSE_SAFEPOINT;
	if (collected)
		span_detail(&other, "from the collection's end until the thread was let go");
	else
		span_detail(&other, "stopped by the VM Thread%s",
		            collections_are_known(pauses->window, from_ns, to_ns)
		                    ? ", not for a collection"
		                    : "; whether to collect is not recorded");
	add_like(spans, from_ns, to_ns, &other);
}

static void on_cpu_plain(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = span_list_add(path->spans, from_ns, to_ns, TAILOR_CAUSE_ON_CPU);
	uint32_t before = thread_entries_until(path->index, thread, from_ns);
	uint32_t until = thread_entries_until(path->index, thread, to_ns);
	uint32_t faults = until > 0 ? thread->entries[until - 1].faults : 0;

	faults -= before > 0 ? thread->entries[before - 1].faults : 0;
	span_thread(span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
	if (faults > 0 && path->pauses->fault_count == 0)
		span_detail(span, "%u page fault%s, duration%s unknown", faults, faults > 1 ? "s" : "",
		            faults > 1 ? "s" : "");
}

static void add_overlay(const struct path *path, const struct thread_events *thread, const struct overlay *overlay,
                        uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = span_list_add(path->spans, from_ns, to_ns, overlay->cause);

	span_thread(span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
	if (overlay->cause != TAILOR_CAUSE_CLASS_LOADING) {
		if (overlay->count > 1)
			span_detail(span, "%u faults", overlay->count);
		return;
	}
	if (overlay->name && overlay->count > 1)
		span_detail(span, "%.64s and %u more", overlay->name, overlay->count - 1);
	else if (overlay->name)
		span_detail(span, "%s", overlay->name);
	else if (overlay->count > 1)
		span_detail(span, "%u classes", overlay->count);
}

static void on_cpu_classes(const struct path *path, const struct thread_events *thread, uint64_t from_ns,
                           uint64_t to_ns)
{
	const struct pauses *pauses = path->pauses;
	const struct overlay *end = pauses->classes + pauses->class_count;
	const struct overlay *overlay = overlay_after(pauses->classes, pauses->class_count, thread->tid, from_ns);

	for (; overlay && overlay < end && overlay->tid == thread->tid && overlay->start_ns < to_ns; overlay++) {
		uint64_t start = overlay->start_ns > from_ns ? overlay->start_ns : from_ns;
		uint64_t stop = overlay->end_ns < to_ns ? overlay->end_ns : to_ns;

		if (from_ns < start)
			on_cpu_plain(path, thread, from_ns, start);
		add_overlay(path, thread, overlay, start, stop);
		from_ns = stop;
	}
	if (from_ns < to_ns)
		on_cpu_plain(path, thread, from_ns, to_ns);
}

static void on_cpu_faults(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns)
{
	const struct pauses *pauses = path->pauses;
	const struct overlay *end = pauses->faults + pauses->fault_count;
	const struct overlay *overlay = overlay_after(pauses->faults, pauses->fault_count, thread->tid, from_ns);

	for (; overlay && overlay < end && overlay->tid == thread->tid && overlay->start_ns < to_ns; overlay++) {
		uint64_t start = overlay->start_ns > from_ns ? overlay->start_ns : from_ns;
		uint64_t stop = overlay->end_ns < to_ns ? overlay->end_ns : to_ns;

		if (from_ns < start)
			on_cpu_classes(path, thread, from_ns, start);
		add_overlay(path, thread, overlay, start, stop);
		from_ns = stop;
	}
	if (from_ns < to_ns)
		on_cpu_classes(path, thread, from_ns, to_ns);
}

const struct tailor_loss *cover_loss(const struct tailor_window *window, unsigned int cpu, uint64_t from_ns,
                                     uint64_t to_ns)
{
	const struct tailor_loss *found = NULL;
	char channel[sizeof(window->losses->channel)];

	snprintf(channel, sizeof(channel), "cpu%u", cpu);
	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (loss->to_ns <= from_ns || loss->from_ns >= to_ns ||
		    strncmp(loss->channel, channel, sizeof(channel)) != 0)
			continue;
		if (!found || loss->from_ns < found->from_ns)
			found = loss;
	}
	return found;
}

void cover_on_cpu(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns,
                  unsigned int cpu)
{
	const struct tailor_loss *loss;

	/* A thread is switched out by an event of the CPU that it runs on: without those events it may have been off
	 * it. */
	while (from_ns < to_ns && (loss = cover_loss(path->index->window, cpu, from_ns, to_ns)) != NULL) {
		uint64_t start = loss->from_ns > from_ns ? loss->from_ns : from_ns;
		uint64_t stop = loss->to_ns < to_ns ? loss->to_ns : to_ns;
		struct tailor_span *span;

		if (from_ns < start)
			on_cpu_faults(path, thread, from_ns, start);
		span = span_list_add(path->spans, start, stop, TAILOR_CAUSE_UNEXPLAINED);
		span_thread(span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
		span_detail(span, "events of CPU %u were lost", cpu);
		from_ns = stop;
	}
	if (from_ns < to_ns)
		on_cpu_faults(path, thread, from_ns, to_ns);
}
