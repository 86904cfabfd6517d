/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/settle.h"

#include "correlate/calls.h"
#include "correlate/handoff.h"
#include "correlate/owner.h"

/* What the thread held meanwhile was not this request's work. */
static void call_it_a_lock(struct path *path, const struct path_return *wait)
{
	const char *waiter = thread_name(path->index->window, wait->thread.thread->tid);

	for (size_t i = wait->first_span; i < path->spans->count; i++) {
		struct tailor_span *span = &path->spans->spans[i];

		switch (span->cause) {
		case TAILOR_CAUSE_PAGE_FAULT_MINOR:
		case TAILOR_CAUSE_PAGE_FAULT_MAJOR:
		case TAILOR_CAUSE_CLASS_LOADING:
			span_detail_more(span, "%.40s waited for it", waiter && waiter[0] ? waiter : "the request's thread");
			continue;
		case TAILOR_CAUSE_ON_CPU:
		case TAILOR_CAUSE_BLOCKED_SLEEP:
		case TAILOR_CAUSE_SERVER: break;
		default: continue;
		}
		span->cause = TAILOR_CAUSE_BLOCKED_LOCK;
		span_detail(span, "%.40s waited for it", waiter && waiter[0] ? waiter : "the request's thread");
		if (call_family(wait->call) == CALL_LOCK)
			span_detail(span, "%.24s waited for it (lock or monitor)", waiter && waiter[0] ? waiter : "the request's thread");
		if (wait->waker_request)
			span_detail_more(span, "it served request %016llx", (unsigned long long)wait->waker_request);
	}
}

/* Takes back what was said from a span on of threads that may not have had the request then; what stopped all threads stays. */
static void doubt_before(struct path *path, size_t first, uint64_t since_ns)
{
	for (size_t i = first; i < path->spans->count; i++) {
		struct tailor_span *span = &path->spans->spans[i];

		if (span->end_ns > since_ns)
			continue;
		switch (span->cause) {
		case TAILOR_CAUSE_GC:
		case TAILOR_CAUSE_SAFEPOINT:
		case TAILOR_CAUSE_MACHINE_STOPPED: continue;
		default: break;
		}
		*span = (struct tailor_span){.start_ns = span->start_ns, .end_ns = span->end_ns, .cause = TAILOR_CAUSE_SERVER};
		span_detail(span, "which thread had the request is not certain");
	}
}

/*
 * The waiting thread had given the request away before. Who ended the wait was given it by a chain of wake-ups, or was awake already
 * and took it from a queue: then it is not known when, and until it slept the receiving thread had it.
 */
static void settle_idle_wait(struct path *path, const struct path_return *wait)
{
	uint32_t position = thread_entries_until(path->index, path->cursor.thread, wait->out_ns);
	int stayed = owner_stayed_awake(path, wait);
	uint64_t since_ns;

	path->handed = 1;
	if (path->alone == path->cursor.thread || handoff_reached(path, path->cursor.thread, position))
		return;
	if (path->returns_count > 0 || !owner_told_receiver(path, wait, &since_ns) || (since_ns && !stayed)) {
		path->inferred = 1;
		return;
	}
	doubt_before(path, wait->first_span, since_ns);
	if (stayed)
		path->cursor = wait->thread;
}

/*
 * Who had the request from its receive to its write ended the wait: some helper's of the JVM, a compiler's say, that the request in turn
 * waited for later. Meanwhile it was at its own work.
 */
static int was_at_own_work(const struct path *path, const struct path_return *wait)
{
	return wait->waker_tid == path->writer_tid && wait->waker_request == owner_request(path);
}

void path_settle(struct path *path)
{
	struct path_return wait = path->returns[--path->returns_count];

	if (handoff_gave_work(path, &wait)) {
		path->handed = 1;
		return;
	}
	if (owner_was_idle_wait(path, &wait)) {
		settle_idle_wait(path, &wait);
		return;
	}
	if (was_at_own_work(path, &wait))
		return;
	call_it_a_lock(path, &wait);
	path->cursor = wait.thread;
}
