/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/path.h"

#include <string.h>

#include "correlate/arrival.h"
#include "correlate/calls.h"
#include "correlate/cover.h"
#include "correlate/handoff.h"
#include "correlate/owner.h"
#include "correlate/ready.h"
#include "correlate/settle.h"
#include "correlate/waits.h"

/* How far a thread's single run is looked through. */
#define RUN_ENTRIES 256

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct tailor_span path_template(const struct path *path, enum tailor_cause cause)
{
	struct tailor_span span = {.cause = cause};
	const struct thread_events *thread = path->cursor.thread;

	span_thread(&span, thread->pid, thread->tid, thread_name(path->index->window, thread->tid));
	return span;
}

void path_add_off_cpu(const struct path *path, uint64_t from_ns, const struct tailor_span *span)
{
	if (from_ns < path->now_ns)
		cover_off_cpu(path->spans, path->pauses, path->server_pid, from_ns, path->now_ns, span);
}

/* Nothing in the walk goes back beyond this without a decision. */
static uint64_t limit_of(const struct path *path)
{
	uint64_t limit = path->floor_ns;

	if (!path->received)
		limit = max_ns(limit, path->receive_ns);
	if (path->behind)
		limit = max_ns(limit, path->busy_until_ns);
	if (path->returns_count > 0)
		limit = max_ns(limit, path->returns[path->returns_count - 1].out_ns);
	return limit;
}

static const char *task_name(const struct path *path, const struct tailor_event *event, char comm[COMM_BYTES])
{
	const char *name = thread_name(path->index->window, TAILOR_TASK_TID(event->arg[0]));

	return name && name[0] ? name : event_comm(event, comm);
}

static int is_vm_thread(const struct path *path, const struct tailor_event *wakeup)
{
	char comm[COMM_BYTES];

	return TAILOR_TASK_PID(wakeup->arg[0]) == path->server_pid &&
	       strcmp(task_name(path, wakeup, comm), "VM Thread") == 0;
}

static void add_ready(struct path *path, const struct stretch *stretch, uint64_t low)
{
	int preempted = stretch->state == STRETCH_PREEMPTED;
	struct tailor_span span = path_template(path, preempted ? TAILOR_CAUSE_PREEMPTED : TAILOR_CAUSE_RUN_QUEUE);
	size_t first = path->spans->count;

	ready_describe(path->index->window, stretch, span.detail, sizeof(span.detail));
	if (ready_throttled(stretch))
		span.cause = TAILOR_CAUSE_THROTTLED;
	/* Whom the VM Thread has let go is not stopped any more, even if that one has not come to say so. */
	if (low < path->now_ns && stretch->wakeup && is_vm_thread(path, stretch->wakeup))
		span_list_add_like(path->spans, low, path->now_ns, &span);
	else
		path_add_off_cpu(path, low, &span);
	if (stretch->in)
		stalls_cut(path->stalls, path->spans, first, stretch->in->cpu, 0);
}

static void add_unknown(struct path *path, uint64_t low)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_UNEXPLAINED);

	span_detail(&span, "the thread's scheduling was not recorded whole");
	path_add_off_cpu(path, low, &span);
}

/* From from_ns back to the receive nothing shows which thread worked for the request. Returns down to when it went. */
static uint64_t lose_track(struct path *path, uint64_t from_ns)
{
	struct tailor_span span = {.cause = TAILOR_CAUSE_SERVER};

	path->now_ns = from_ns;
	path->returns_count = 0;
	path->handed = 1;
	path->inferred = 1;
	span_detail(&span, "which thread worked for the request is not certain");
	path_add_off_cpu(path, max_ns(path->receive_ns, path->floor_ns), &span);
	return max_ns(path->receive_ns, path->floor_ns);
}

/*
 * A thread on its CPU. The one that received the request stays with it until it receives or writes something else. For any
 * other, of a pool, the kernel does not see when it puts one request's work down and takes up another's: while others were at
 * the server it is not said for whom it worked.
 */
static void add_work(struct path *path, const struct stretch *stretch, uint64_t low)
{
	const struct thread_events *thread = path->cursor.thread;
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SERVER);
	uint64_t end = path->now_ns, at = end;
	int alone = 1, stayed = owner_stayed(path);
	uint64_t other_until = stayed ? 0 : owner_at_other_until(path);

	span_detail(&span, "on a CPU, for this request or another that was there");
	for (; end > low; end = at) {
		at = low;
		if (end <= other_until)
			alone = 0;
		else if (!stayed)
			alone = traffic_alone(path->traffic, path->server_pid, max_ns(low, other_until), end, &at);
		path->now_ns = end;
		/* Who was at work when the request came, and at nobody else's request, is at something that nobody asked for. */
		if (alone && !stayed)
			path->alone = at > path->receive_ns ? thread : NULL;
		if (alone)
			cover_on_cpu(path, thread, at, end, stretch->cpu);
		else
			path_add_off_cpu(path, at, &span);
	}
}

static void describe_other(struct tailor_span *span, const struct tailor_event *other)
{
	if (other->request)
		span_detail(span, "behind request %016llx", (unsigned long long)other->request);
	else
		span_detail(span, "behind a request that did not come through the proxy");
}

/*
 * The thread received or wrote for somebody else since it was woken. From then on it was at that one's work and then at this one's, and
 * when it went over is not told.
 */
static uint64_t pass_other(struct path *path, const struct tailor_event *other, uint64_t low)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SERVER_QUEUE);

	describe_other(&span, other);
	path->handed = 1;
	path_add_off_cpu(path, max_ns(low, other->time_ns), &span);
	if (low > other->time_ns)
		return low;
	/* A loop reads before it writes what it has been woken for: then the wake-up still tells for whom it was. */
	return other->kind == TAILOR_EVENT_RECEIVE ? other->time_ns : lose_track(path, other->time_ns);
}

/* Returns down to when it went: the worker may have taken the request from a queue without being woken. */
static uint64_t add_on_cpu(struct path *path, const struct stretch *stretch, uint64_t low)
{
	uint64_t finished_ns, since_ns;
	uint64_t other = owner_finished_other(path, low, &finished_ns);
	const struct tailor_event *served = NULL;
	struct tailor_span span;
	int proved;

	if (path->received) {
		arrival_add_work(path, stretch, low);
		return low;
	}
	if (!other && path->receive_ns && path->returns_count == 0)
		served = owner_served_other(path);
	if (served)
		return pass_other(path, served, low);
	if (!other) {
		add_work(path, stretch, low);
		return low;
	}
	add_work(path, stretch, finished_ns);
	span = path_template(path, TAILOR_CAUSE_SERVER_QUEUE);
	span_detail(&span, "behind request %016llx", (unsigned long long)other);
	path->now_ns = finished_ns;
	proved = path->alone == path->cursor.thread ||
	         (path->returns_count == 1 && owner_told_receiver(path, &path->returns[0], &since_ns) && since_ns == 0);
	/* The receiver had it first, and until when that shows. */
	low = proved ? limit_of(path) : max_ns(path->receive_ns, path->floor_ns);
	path_add_off_cpu(path, low, &span);
	path->handed = 1;
	if (!proved)
		path->inferred = 1;
	return low;
}

/* Blocked by nobody that can be followed. What a collection took meanwhile did not make the wait longer. */
static void add_wait(struct path *path, const struct stretch *stretch, uint64_t low)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_UNEXPLAINED);
	size_t first = path->spans->count;

	if (low >= path->now_ns)
		return;
	wait_explain(path, stretch, low, &span);
	span_list_add_like(path->spans, low, path->now_ns, &span);
	stalls_cut_wait(path->stalls, path->spans, first, stretch->wakeup);
}

/* The cursor's thread had had nothing to do with the request until the waker, which had, woke it: its wait is not the request's. */
static int was_reached_first(const struct path *path, const struct stretch *stretch, const struct thread_events *waker)
{
	const struct thread_events *thread = path->cursor.thread;

	if (!path->wire->receive || handoff_reached(path, thread, stretch->out_position))
		return 0;
	return handoff_reached(path, waker, thread_entries_before(waker, stretch->wakeup_event));
}

static void follow_waker(struct path *path, const struct stretch *stretch, const struct thread_events *waker)
{
	uint64_t since = max_ns(path->receive_ns, path->floor_ns);

	if (!path->received && stretch->out && stretch->start_ns > since && !was_reached_first(path, stretch, waker)) {
		path->returns[path->returns_count++] = (struct path_return){
		        .thread = {path->cursor.thread, stretch->out_position, EXPECT_ON_CPU},
		        .out_ns = stretch->start_ns,
		        .waker_request = stretch->wakeup->request,
		        .waker_tid = waker->tid,
		        .wakeup_event = stretch->wakeup_event,
		        .call = wait_call(stretch),
		        .first_span = path->spans->count,
		};
	} else if (!path->received) {
		path->handed = 1;
	}
	path->cursor = (struct cursor){waker, thread_entries_before(waker, stretch->wakeup_event), EXPECT_ON_CPU};
}

/*
 * A thread that had received the request, or was to write its response, slept until the proxy sent something else: it
 * was not what the response waited for. If the receiver had woken a worker for this request, that one probably was.
 */
static uint64_t pass_idle_loop(struct path *path, const struct stretch *stretch, uint64_t low)
{
	const struct thread_events *worker = NULL;
	struct tailor_span span = path_template(path, TAILOR_CAUSE_UNEXPLAINED);
	const struct tailor_event *last;
	uint32_t until, position;

	if (path->wire->first_write && stretch->start_ns >= path->wire->first_write->time_ns) {
		span.cause = TAILOR_CAUSE_RESPONSE_TRANSIT;
		span_detail(&span, "the socket took no more until the proxy had read");
		path_add_off_cpu(path, low, &span);
		return low;
	}
	if (!path->inferred)
		worker = owner_woken_worker(path, stretch->wakeup_event);
	until = worker ? thread_entries_until(path->index, worker, path->now_ns) : 0;
	position = until > 0 ? worker->entries[until - 1].scheduling : NO_POSITION;
	if (position == NO_POSITION) {
		span_detail(&span, "idle meanwhile; which thread worked on the request was not recorded");
		path_add_off_cpu(path, low, &span);
		return low;
	}
	path->inferred = 1;
	path->handed = 1;
	last = thread_entry_event(path->index, worker, position);
	if (last->kind == TAILOR_EVENT_SWITCH_IN)
		position = until;
	low = last->kind == TAILOR_EVENT_SWITCH_IN ? path->now_ns : max_ns(last->time_ns, limit_of(path));
	span_detail(&span, "idle meanwhile; %.40s had been woken for the request",
	            thread_name(path->index->window, worker->tid) ?: "a worker");
	path_add_off_cpu(path, low, &span);
	path->cursor =
	        (struct cursor){worker, position, last->kind == TAILOR_EVENT_WAKEUP ? EXPECT_BLOCKED : EXPECT_ON_CPU};
	return low;
}

/*
 * Did bytes on a tagged connection end the wait? The proxy's own wake-up, or an interrupt's (which has no waker: it is
 * what delivers the bytes) after which the thread received.
 */
static int ended_by_bytes(const struct path *path, const struct tailor_event *wakeup, uint32_t event)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position, end;

	if (TAILOR_TASK_TID(wakeup->arg[0]) != 0)
		return TAILOR_TASK_PID(wakeup->arg[0]) == path->proxy_pid;
	position = thread_entries_before(thread, event) + 1;
	end = thread->count - position > RUN_ENTRIES ? position + RUN_ENTRIES : thread->count;
	for (; position < end; position++) {
		const struct tailor_event *next = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			continue;
		if (next->kind == TAILOR_EVENT_RECEIVE)
			return 1;
		if (next->kind == TAILOR_EVENT_SWITCH_OUT && !switched_out_ready(next) && next->time_ns > wakeup->time_ns)
			return 0;
	}
	return 0;
}

/* In a write of the response, until the socket took more of it. */
static void add_space(struct path *path, uint64_t low)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_RESPONSE_TRANSIT);

	span_detail(&span, "the socket took no more until the proxy had read");
	if (low < path->now_ns)
		span_list_add_like(path->spans, low, path->now_ns, &span);
}

/* Stopped by the JVM, until the VM Thread woke it. */
static void add_safepoint(struct path *path, const struct stretch *stretch, uint64_t low)
{
	const struct thread_events *vm = thread_index_find(path->index, TAILOR_TASK_TID(stretch->wakeup->arg[0]));
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SAFEPOINT);
	size_t first = path->spans->count;
	struct stretch ran;

	if (low >= path->now_ns)
		return;
	cover_safepoint(path->spans, path->pauses, path->server_pid, low, path->now_ns, &span);
	if (!vm)
		return;
	/* What the CPU stood still since the VM Thread has been on it, the pause was longer by. */
	ran = schedule_before(path->index, &(struct cursor){vm, thread_entries_before(vm, stretch->wakeup_event), EXPECT_ON_CPU});
	if (ran.state == STRETCH_ON_CPU)
		stalls_cut(path->stalls, path->spans, first, stretch->wakeup->cpu, ran.start_ns);
}

/* In the middle of what the thread was at: of the request's work, or perhaps of somebody else's. */
static void add_disk_wait(struct path *path, const struct stretch *stretch, uint64_t low)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SERVER_QUEUE);
	size_t first = path->spans->count;
	char what[TAILOR_DETAIL_BYTES];

	if (low >= path->now_ns)
		return;
	if (path->received && !owner_was_woken_for(path, stretch)) {
		span_detail(&span, "in the socket; the thread was at work already, and waited for a disk");
	} else {
		wait_explain(path, stretch, low, &span);
		memcpy(what, span.detail, sizeof(what));
		if (!path->received && !owner_worked_alone(path, low))
			span_detail(&span, "for this request or another: %s", what);
	}
	span_list_add_like(path->spans, low, path->now_ns, &span);
	stalls_cut_wait(path->stalls, path->spans, first, stretch->wakeup);
}

/* Explains a blocked stretch by who ended it. Returns where the walk is then. */
static uint64_t pass_blocked(struct path *path, const struct stretch *stretch, uint64_t low)
{
	uint32_t state = blocked_state(stretch);
	uint32_t waker_pid = TAILOR_TASK_PID(stretch->wakeup->arg[0]);
	uint32_t waker_tid = TAILOR_TASK_TID(stretch->wakeup->arg[0]);
	const struct thread_events *waker = thread_index_find(path->index, waker_tid);
	enum call_family family = call_family(wait_call(stretch));
	int by_bytes;

	if (state == TAILOR_TASK_UNINTERRUPTIBLE) {
		add_disk_wait(path, stretch, low);
		return low;
	}
	if (state == TAILOR_TASK_STOPPED) {
		add_wait(path, stretch, low);
		return low;
	}
	if (is_vm_thread(path, stretch->wakeup)) {
		add_safepoint(path, stretch, low);
		return low;
	}
	if (waker_pid == path->server_pid && waker && waker != path->cursor.thread &&
	    path->returns_count < PATH_RETURNS_MAX) {
		follow_waker(path, stretch, waker);
		return path->now_ns;
	}
	if (wait_for_space(path, stretch)) {
		add_space(path, low);
		return low;
	}
	/* Bytes end no lock's wait and no sleep. */
	by_bytes = family != CALL_LOCK && family != CALL_SLEEP && ended_by_bytes(path, stretch->wakeup, stretch->wakeup_event);
	if (path->received || (path->receive_ns == 0 && by_bytes))
		return arrival_pass_wait(path, stretch);
	if (by_bytes)
		return pass_idle_loop(path, stretch, low);
	add_wait(path, stretch, low);
	return low;
}

static void step(struct path *path)
{
	const struct cursor here = path->cursor;
	struct stretch stretch = schedule_before(path->index, &here);
	uint64_t start = stretch.start_ns < path->now_ns ? stretch.start_ns : path->now_ns;
	uint64_t low = max_ns(start, limit_of(path));

	switch (stretch.state) {
	case STRETCH_ON_CPU: low = add_on_cpu(path, &stretch, low); break;
	case STRETCH_RUN_QUEUE:
	case STRETCH_PREEMPTED: add_ready(path, &stretch, low); break;
	case STRETCH_BLOCKED: low = pass_blocked(path, &stretch, low); break;
	case STRETCH_UNKNOWN: add_unknown(path, low); break;
	}
	path->now_ns = low;
	/* Cut short by a limit the same stretch is looked at again, unless the walk has moved to another thread. */
	if (low <= start && path->cursor.thread == here.thread && path->cursor.position == here.position)
		path->cursor = stretch.before;
}

/* How many of the thread's entries there are up to where the cursor is, the wake-up included that it may stand at. */
static uint32_t entries_at_cursor(const struct path *path)
{
	const struct cursor *cursor = &path->cursor;

	return cursor->position < cursor->thread->count ? cursor->position + 1 : cursor->position;
}

static void arrive_at_receive(struct path *path)
{
	const struct thread_events *receiver = thread_index_find(path->index, path->wire->receive->tid);

	path->received = 1;
	path->returns_count = 0;
	if (path->cursor.thread != receiver) {
		if (path->alone != path->cursor.thread && !handoff_reached_before(path, path->cursor.thread, entries_at_cursor(path)))
			path->inferred = 1;
		path->handed = 1;
		path->cursor.thread = receiver;
	}
	path->cursor.position = thread_entries_before(receiver, path->wire->receive_event);
	path->cursor.expect = EXPECT_ON_CPU;
	path->behind = owner_was_busy(path);
}

void path_walk(struct path *path, uint32_t tid, uint32_t event, uint64_t end_ns)
{
	/* Each step passes an event or a limit; the bound only guards against records that no kernel writes. */
	size_t steps = 8 * path->index->window->event_count + 64;

	path->cursor.thread = thread_index_find(path->index, tid);
	if (!path->cursor.thread)
		return;
	path->cursor.position = thread_entries_before(path->cursor.thread, event);
	path->cursor.expect = EXPECT_ON_CPU;
	path->writer_tid = tid;
	path->now_ns = end_ns;
	path->receive_ns = path->wire->receive ? path->wire->receive->time_ns : 0;
	while (path->now_ns > path->floor_ns && steps-- > 0) {
		if (path->returns_count > 0 && path->now_ns <= path->returns[path->returns_count - 1].out_ns)
			path_settle(path);
		else if (!path->received && path->receive_ns && path->now_ns <= path->receive_ns)
			arrive_at_receive(path);
		else if (path->behind && path->now_ns <= path->busy_until_ns)
			arrival_pass_busy(path);
		else
			step(path);
	}
	if (!path->received && path->receive_ns && path->now_ns <= path->receive_ns)
		arrive_at_receive(path);
}

void path_cover(struct path *path, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	const struct thread_events *thread = thread_index_find(path->index, tid);

	if (!thread)
		return;
	path->cursor = (struct cursor){thread, thread_entries_until(path->index, thread, to_ns), EXPECT_ON_CPU};
	for (path->now_ns = to_ns; path->now_ns > from_ns;) {
		struct stretch stretch = schedule_before(path->index, &path->cursor);
		uint64_t start = stretch.start_ns < path->now_ns ? stretch.start_ns : path->now_ns;
		uint64_t low = max_ns(start, from_ns);

		switch (stretch.state) {
		case STRETCH_ON_CPU: cover_on_cpu(path, thread, low, path->now_ns, stretch.cpu); break;
		case STRETCH_RUN_QUEUE:
		case STRETCH_PREEMPTED: add_ready(path, &stretch, low); break;
		case STRETCH_BLOCKED:
			if (is_vm_thread(path, stretch.wakeup))
				add_safepoint(path, &stretch, low);
			else
				add_wait(path, &stretch, low);
			break;
		case STRETCH_UNKNOWN: add_unknown(path, low); break;
		}
		path->now_ns = low;
		path->cursor = stretch.before;
	}
}
