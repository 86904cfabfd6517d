/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/cover.h"

#include "base/units.h"
#include "correlate/losses.h"
#include "correlate/waits.h"

static void add_pause(struct span_list *spans, uint64_t from_ns, uint64_t to_ns, const struct pause *pause,
                      const struct tailor_span *span)
{
	struct tailor_span *added = span_list_add_like(spans, from_ns, to_ns, span);

	added->cause = pause->cause;
	pause_describe(pause, added->detail, sizeof(added->detail));
}

/* Nobody could have run then, whoever had had a CPU. Before all have stopped, some do run. */
static int keeps_all(const struct pause *pause)
{
	return !pause->beside && pause->cause != TAILOR_CAUSE_TIME_TO_SAFEPOINT;
}

void cover_off_cpu(struct span_list *spans, const struct pauses *pauses, uint32_t server_pid, uint64_t from_ns,
                   uint64_t to_ns, const struct tailor_span *span)
{
	const struct pause *pause = server_pid ? pauses_after(pauses, server_pid, from_ns) : NULL;

	for (; pause && pause->start_ns < to_ns; pause = pauses_next(pauses, pause)) {
		uint64_t start = pause->start_ns > from_ns ? pause->start_ns : from_ns;
		uint64_t end = pause->end_ns < to_ns ? pause->end_ns : to_ns;

		if (!keeps_all(pause))
			continue;
		span_list_add_like(spans, from_ns, start, span);
		add_pause(spans, start, end, pause, span);
		from_ns = end;
	}
	span_list_add_like(spans, from_ns, to_ns, span);
}

/* What a thread was stopped for before `next` and after `last`, either of which may be NULL. */
static void describe_between(const struct tailor_window *window, const struct pause *last, const struct pause *next,
                             struct tailor_span *span)
{
	span->cause = TAILOR_CAUSE_SAFEPOINT;
	if (last && next) {
		span_detail(span, "between two %s", last->cause == TAILOR_CAUSE_GC && next->cause == TAILOR_CAUSE_GC ? "collections" : "stops");
	} else if (next && next->cause == TAILOR_CAUSE_GC && !next->probed) {
		span->cause = TAILOR_CAUSE_TIME_TO_SAFEPOINT;
		span_detail(span, "until the other threads had stopped, too");
	} else if (next) {
		span_detail(span, "until the VM Thread began");
	} else if (last) {
		span_detail(span, "from the %s end until the thread was let go", last->cause == TAILOR_CAUSE_GC ? "collection's" : "operation's");
	} else if (losses_in(window, "jvm:", span->start_ns, span->end_ns)) {
		span->cause = TAILOR_CAUSE_UNEXPLAINED;
		span_detail(span, "stopped by the VM Thread; events of the JVM were lost");
	} else if (window->missing & TAILOR_MISSING_AGENT) {
		span_detail(span, "stopped by the VM Thread; whether to collect is not recorded");
	} else {
		span_detail(span, "stopped by the VM Thread, not for a collection");
	}
}

void cover_safepoint(struct span_list *spans, const struct pauses *pauses, uint32_t server_pid, uint64_t from_ns,
                     uint64_t to_ns, const struct tailor_span *span)
{
	const struct pause *pause = pauses_after(pauses, server_pid, from_ns);
	const struct pause *last = NULL;

	for (; pause && pause->start_ns < to_ns; pause = pauses_next(pauses, pause)) {
		uint64_t start = pause->start_ns > from_ns ? pause->start_ns : from_ns;
		uint64_t end = pause->end_ns < to_ns ? pause->end_ns : to_ns;

		describe_between(pauses->window, last, pause, span_list_add_like(spans, from_ns, start, span));
		add_pause(spans, start, end, pause, span);
		from_ns = end;
		last = pause;
	}
	describe_between(pauses->window, last, NULL, span_list_add_like(spans, from_ns, to_ns, span));
}

/* Faults that were counted with their time, and are too few of it to be the cause. */
static void count_sparse_faults(const struct path *path, uint32_t tid, uint64_t from_ns, uint64_t to_ns, struct tailor_span *span)
{
	const struct layer *storms = &path->overlays->storms;
	const struct overlay *storm = overlay_after(storms, tid, from_ns);
	uint64_t count = 0, ns = 0;
	char duration[32];

	for (; storm && storm->start_ns < to_ns; storm = overlay_next(storms, storm)) {
		if (storm->cause == TAILOR_CAUSE_ON_CPU && storm->start_ns >= from_ns) {
			count += storm->count;
			ns += storm->ns;
		}
	}
	if (count == 0)
		return;
	tailor_format_duration(duration, sizeof(duration), ns);
	span_detail(span, "%llu page fault%s, %s of it in the kernel", (unsigned long long)count, count > 1 ? "s" : "", duration);
}

static void on_cpu_plain(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = span_list_add(path->spans, from_ns, to_ns, TAILOR_CAUSE_ON_CPU);
	uint32_t before = thread_entries_until(path->index, thread, from_ns);
	uint32_t until = thread_entries_until(path->index, thread, to_ns);
	uint32_t faults = until > 0 ? thread->entries[until - 1].faults : 0;

	faults -= before > 0 ? thread->entries[before - 1].faults : 0;
	span_thread(span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
	if (faults > 0 && path->overlays->faults.count == 0)
		span_detail(span, "%u page fault%s, duration%s unknown", faults, faults > 1 ? "s" : "",
		            faults > 1 ? "s" : "");
	count_sparse_faults(path, thread->tid, from_ns, to_ns, span);
}

static void describe_storm(const struct path *path, uint32_t pid, const struct overlay *storm, struct tailor_span *span)
{
	const char *file = wait_mapping(path->index->window, pid, storm->address);
	char whole[32], faults[32];

	tailor_format_duration(whole, sizeof(whole), storm->end_ns - storm->start_ns);
	tailor_format_duration(faults, sizeof(faults), storm->ns);
	span_detail(span, "%u fault%s in %s, %s of it in the kernel, at %llx%s%.20s", storm->count, storm->count == 1 ? "" : "s", whole, faults,
	            (unsigned long long)storm->address, file ? ", " : "", file ? file : "");
}

static void describe_fault(const struct path *path, uint32_t pid, const struct overlay *fault, struct tailor_span *span)
{
	const char *file = wait_mapping(path->index->window, pid, fault->address);

	if (fault->count > 1)
		span_detail(span, "%u faults", fault->count);
	if (file)
		span_detail_more(span, "%.48s at %llx", file, (unsigned long long)fault->address);
}

static void describe_classes(const struct overlay *classes, struct tailor_span *span)
{
	if (classes->name && classes->count > 1)
		span_detail(span, "%.64s and %u more", classes->name, classes->count - 1);
	else if (classes->name)
		span_detail(span, "%s", classes->name);
	else if (classes->count > 1)
		span_detail(span, "%u classes", classes->count);
}

static void describe_interrupts(const struct overlay *interrupts, struct tailor_span *span)
{
	/* include/linux/interrupt.h, in the order of the vectors. */
	static const char *const vectors[] = {"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};
	uint32_t extra = (uint32_t)interrupts->address, number = TAILOR_INTERRUPT_NUMBER(extra);

	if (interrupts->count > 1)
		span_detail(span, "%u interrupts", interrupts->count);
	else if (!TAILOR_INTERRUPT_SOFT(extra))
		span_detail(span, "interrupt %u", number);
	else
		span_detail(span, "softirq %s", number < sizeof(vectors) / sizeof(vectors[0]) ? vectors[number] : "unknown");
}

/* What lies uppermost is the cause: an interrupt comes in a fault, and a fault in the loading of a class. */
enum { LAYER_INTERRUPTS, LAYER_FAULTS, LAYER_STORMS, LAYER_CLASSES, LAYERS };

static void add_overlay(const struct path *path, const struct thread_events *thread, const struct overlay *overlay, int layer,
                        uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = span_list_add(path->spans, from_ns, to_ns, overlay->cause);

	span_thread(span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
	switch (layer) {
	case LAYER_INTERRUPTS: describe_interrupts(overlay, span); break;
	case LAYER_FAULTS: describe_fault(path, thread->pid, overlay, span); break;
	case LAYER_STORMS: describe_storm(path, thread->pid, overlay, span); break;
	default: describe_classes(overlay, span); break;
	}
}

static void cover_layer(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns, int number)
{
	const struct overlays *overlays = path->overlays;
	const struct layer *const layers[LAYERS] = {&overlays->interrupts, &overlays->faults, &overlays->storms, &overlays->classes};
	const struct overlay *overlay;

	if (from_ns >= to_ns)
		return;
	if (number == LAYERS) {
		on_cpu_plain(path, thread, from_ns, to_ns);
		return;
	}
	overlay = overlay_after(layers[number], thread->tid, from_ns);
	for (; overlay && overlay->start_ns < to_ns; overlay = overlay_next(layers[number], overlay)) {
		uint64_t start = overlay->start_ns > from_ns ? overlay->start_ns : from_ns;
		uint64_t stop = overlay->end_ns < to_ns ? overlay->end_ns : to_ns;

		if (overlay->cause == TAILOR_CAUSE_ON_CPU)
			continue;
		cover_layer(path, thread, from_ns, start, number + 1);
		add_overlay(path, thread, overlay, number, start, stop);
		from_ns = stop;
	}
	cover_layer(path, thread, from_ns, to_ns, number + 1);
}

void cover_on_cpu(const struct path *path, const struct thread_events *thread, uint64_t from_ns, uint64_t to_ns,
                  unsigned int cpu)
{
	const struct tailor_loss *loss;
	size_t first = path->spans->count;

	/* A thread is switched out by an event of the CPU that it runs on: without those events it may have been off
	 * it. */
	while (from_ns < to_ns && (loss = losses_of_cpu(path->index->window, cpu, from_ns, to_ns)) != NULL) {
		uint64_t start = loss->from_ns > from_ns ? loss->from_ns : from_ns;
		uint64_t stop = loss->to_ns < to_ns ? loss->to_ns : to_ns;
		struct tailor_span *span;

		cover_layer(path, thread, from_ns, start, 0);
		span = span_list_add(path->spans, start, stop, TAILOR_CAUSE_UNEXPLAINED);
		span_thread(span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
		span_detail(span, "events of CPU %u were lost", cpu);
		from_ns = stop;
	}
	cover_layer(path, thread, from_ns, to_ns, 0);
	stalls_cut(path->stalls, path->spans, first, cpu, 0);
}
