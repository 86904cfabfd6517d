/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/worker.h"

#include <string.h>

#include "correlate/losses.h"
#include "correlate/ready.h"
#include "correlate/schedule.h"

struct work {
	const struct thread_index *index;
	const struct stalls *stalls;
	struct span_list *spans;
	const struct worker_story *story;
	uint64_t from_ns;
};

static const struct thread_events *worker_of(const struct thread_index *index)
{
	return thread_index_find(index, index->window->record.worker_tid);
}

int worker_recorded(const struct thread_index *index)
{
	const struct thread_events *worker = worker_of(index);

	return worker && worker->scheduled;
}

int worker_slept(const struct thread_index *index, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread_events *worker = worker_of(index);
	uint32_t position = worker ? thread_entries_until(index, worker, from_ns) : 0;
	uint32_t end = worker ? thread_entries_until(index, worker, to_ns) : 0;

	for (; position < end; position++) {
		const struct tailor_event *event = thread_entry_event(index, worker, position);

		if (!worker->entries[position].woke && event->kind == TAILOR_EVENT_SWITCH_OUT &&
		    !switched_out_ready(event))
			return 1;
	}
	return 0;
}

static struct tailor_span *add(const struct work *work, uint64_t from_ns, uint64_t to_ns, enum tailor_cause cause)
{
	const struct tailor_record *record = &work->index->window->record;
	struct tailor_span *span = span_list_add(work->spans, from_ns, to_ns, cause);

	span_thread(span, record->worker_pid, record->worker_tid, thread_name(work->index->window, record->worker_tid));
	return span;
}

static void add_working(const struct work *work, const struct stretch *stretch, uint64_t from_ns, uint64_t to_ns)
{
	const char *detail = work->story->working_detail;
	const struct tailor_loss *loss;
	struct tailor_span *span;

	if (work->story->busy_detail && stretch->start_ns < work->from_ns)
		detail = work->story->busy_detail;
	while (from_ns < to_ns && (loss = losses_of_cpu(work->index->window, stretch->cpu, from_ns, to_ns)) != NULL) {
		uint64_t start = loss->from_ns > from_ns ? loss->from_ns : from_ns;
		uint64_t stop = loss->to_ns < to_ns ? loss->to_ns : to_ns;

		span_detail(add(work, from_ns, start, work->story->working), "%s", detail ? detail : "");
		span = add(work, start, stop, TAILOR_CAUSE_UNEXPLAINED);
		span_detail(span, "events of CPU %u were lost", stretch->cpu);
		from_ns = stop;
	}
	span_detail(add(work, from_ns, to_ns, work->story->working), "%s", detail ? detail : "");
}

static void add_ready(const struct work *work, const struct stretch *stretch, uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = add(work, from_ns, to_ns, TAILOR_CAUSE_PROXY_RUN_QUEUE);
	char why[TAILOR_DETAIL_BYTES];

	if (ready_throttled(stretch))
		span->cause = TAILOR_CAUSE_PROXY_STOPPED;
	ready_describe(work->index->window, stretch, why, sizeof(why));
	span_detail(span, "%s%.80s", strncmp(why, "by ", 3) == 0 ? "pushed out " : "", why);
}

static void add_waiting(const struct work *work, const struct stretch *stretch, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t state = blocked_state(stretch);
	size_t first = work->spans->count;

	if (state == TAILOR_TASK_UNINTERRUPTIBLE)
		add(work, from_ns, to_ns, TAILOR_CAUSE_BLOCKED_IO);
	else if (state == TAILOR_TASK_STOPPED)
		span_detail(add(work, from_ns, to_ns, TAILOR_CAUSE_PROXY_STOPPED), "by a signal");
	else
		span_detail(add(work, from_ns, to_ns, work->story->waiting), "%s",
		            work->story->waiting_detail ? work->story->waiting_detail : "");
	stalls_cut_wait(work->stalls, work->spans, first, stretch->wakeup);
}

/* One stretch of it; what its CPU stood still is cut out. */
static void add_stretch(const struct work *work, const struct stretch *stretch, uint64_t from_ns, uint64_t to_ns)
{
	size_t first = work->spans->count;

	switch (stretch->state) {
	case STRETCH_ON_CPU:
		add_working(work, stretch, from_ns, to_ns);
		stalls_cut(work->stalls, work->spans, first, stretch->cpu, 0);
		break;
	case STRETCH_RUN_QUEUE:
	case STRETCH_PREEMPTED:
		add_ready(work, stretch, from_ns, to_ns);
		if (stretch->in)
			stalls_cut(work->stalls, work->spans, first, stretch->in->cpu, 0);
		break;
	case STRETCH_BLOCKED: add_waiting(work, stretch, from_ns, to_ns); break;
	case STRETCH_UNKNOWN:
		span_detail(add(work, from_ns, to_ns, TAILOR_CAUSE_UNEXPLAINED), "the proxy's scheduling was not recorded whole");
		break;
	}
}

void worker_cover(const struct thread_index *index, const struct stalls *stalls, struct span_list *spans, uint64_t from_ns,
                  uint64_t to_ns, const struct worker_story *story)
{
	const struct work work = {index, stalls, spans, story, from_ns};
	const struct thread_events *worker = worker_of(index);
	struct cursor cursor;

	if (!worker_recorded(index)) {
		span_detail(add(&work, from_ns, to_ns, story->working), "%s",
		            story->working_detail ? story->working_detail : "");
		return;
	}
	cursor = (struct cursor){worker, thread_entries_until(index, worker, to_ns), EXPECT_ON_CPU};
	while (from_ns < to_ns) {
		struct stretch stretch = schedule_before(index, &cursor);
		uint64_t start = stretch.start_ns > from_ns ? stretch.start_ns : from_ns;

		add_stretch(&work, &stretch, start, to_ns);
		to_ns = start < to_ns ? start : to_ns;
		cursor = stretch.before;
	}
}
