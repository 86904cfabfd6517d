/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/owner.h"

#include <string.h>

#define HOPS_MAX 8      /* a chain of hand-offs longer than this proves nothing */
#define RUN_ENTRIES 256 /* how far a thread's single run is looked through */

static uint64_t request_of(const struct path *path)
{
	return path->index->window->record.request.id;
}

static int is_other(const struct path *path, uint64_t request)
{
	return request != 0 && request != request_of(path);
}

static uint32_t receiver_of(const struct path *path)
{
	return path->wire->receive ? path->wire->receive->tid : 0;
}

int owner_was_handed_work(const struct path *path, const struct path_return *wait)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = thread_entries_until(path->index, thread, wait->out_ns);
	uint32_t receiver = receiver_of(path);
	uint64_t since = path->receive_ns > path->floor_ns ? path->receive_ns : path->floor_ns;

	if (is_other(path, wait->waker_request) && wait->waker_tid != receiver)
		return 0;
	for (int hop = 0; hop < HOPS_MAX && thread && position > 0; hop++) {
		uint32_t wakeup = thread->entries[position - 1].wakeup;
		const struct tailor_event *event;
		uint32_t waker;

		if (wakeup == NO_POSITION)
			return 0;
		event = thread_entry_event(path->index, thread, wakeup);
		waker = TAILOR_TASK_TID(event->arg[0]);
		if (event->time_ns < since || is_other(path, event->request))
			return 0;
		if (waker == wait->thread.thread->tid || (receiver && waker == receiver))
			return 1;
		position = thread->entries[wakeup].event;
		thread = thread_index_find(path->index, waker);
		position = thread ? thread_entries_before(thread, position) : 0;
	}
	return 0;
}

int owner_serves_many(const struct path *path, const struct path_return *wait)
{
	const struct thread_events *thread = wait->thread.thread;
	uint32_t position = wait->thread.position, left = RUN_ENTRIES;

	for (; position-- > 0 && left-- > 0;) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (event->time_ns <= path->receive_ns)
			break;
		if (!thread->entries[position].woke && is_other(path, event->request) &&
		    (event->kind == TAILOR_EVENT_RECEIVE || event->kind == TAILOR_EVENT_SYSCALL_WRITE))
			return 1;
	}
	return 0;
}

/* The other request whose response the thread that `event` woke wrote in that run; 0 when none, or when it wrote this
 * one's too. */
static uint64_t written_after(const struct path *path, const struct tailor_event *event, uint32_t window_event)
{
	const struct thread_events *thread = thread_index_find(path->index, event->tid);
	uint32_t position, end;
	uint64_t found = 0;

	if (!thread || event->pid != path->server_pid)
		return 0;
	position = thread_entries_before(thread, window_event) + 1;
	end = thread->count - position > RUN_ENTRIES ? position + RUN_ENTRIES : thread->count;
	for (; position < end; position++) {
		const struct tailor_event *next = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			continue;
		if (next->kind == TAILOR_EVENT_SWITCH_OUT && !switched_out_ready(next))
			break;
		if (next->kind != TAILOR_EVENT_SYSCALL_WRITE)
			continue;
		if (next->request == request_of(path))
			return 0;
		if (!found)
			found = next->request;
	}
	return found;
}

uint64_t owner_finished_other(const struct path *path, uint64_t from_ns, uint64_t *ret_ns)
{
	const struct thread_events *thread = path->cursor.thread;

	/* A thread that receives, too, is a loop that serves many requests at a time: that it wrote for another one
	 * says nothing about this one. */
	if (thread->receives || path->received || path->receive_ns == 0 || path->returns_count > 1)
		return 0;
	/* A thread that only holds what another one needs has not taken up this request; but a receiver waits for
	 * workers. */
	if (path->returns_count == 1 && (path->returns[0].thread.thread->tid != receiver_of(path) ||
	                                 is_other(path, path->returns[0].waker_request)))
		return 0;
	for (uint32_t position = path->cursor.position; position-- > 0;) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);
		uint64_t other = 0;

		if (event->time_ns <= from_ns)
			break;
		if (event->time_ns > path->now_ns)
			continue;
		if (thread->entries[position].woke)
			other = written_after(path, event, thread->entries[position].event);
		else if (event->kind == TAILOR_EVENT_SYSCALL_WRITE && is_other(path, event->request))
			other = event->request;
		if (other) {
			*ret_ns = event->time_ns;
			return other;
		}
	}
	return 0;
}

static void set_busy(struct path *path, uint64_t from_ns, uint64_t until_ns, uint32_t position,
                     enum cursor_expect expect)
{
	path->busy_from_ns = from_ns > path->floor_ns ? from_ns : path->floor_ns;
	path->busy_until_ns = until_ns;
	path->before_busy.position = position;
	path->before_busy.expect = expect;
}

/* The thread wrote another request's response after this request had come: since when was it that one's? */
static void busy_until_write(struct path *path, uint32_t written)
{
	const struct thread_events *thread = path->before_busy.thread;
	const struct tailor_event *write = thread_entry_event(path->index, thread, written);

	for (uint32_t position = written; position-- > 0;) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (event->time_ns <= path->floor_ns)
			break;
		if (thread->entries[position].woke)
			continue;
		if (event->kind == TAILOR_EVENT_RECEIVE && event->request == write->request) {
			set_busy(path, event->time_ns, write->time_ns, position, EXPECT_ON_CPU);
			return;
		}
		/* It had been idle until bytes came. */
		if (event->kind == TAILOR_EVENT_WAKEUP &&
		    (TAILOR_TASK_TID(event->arg[0]) == 0 || TAILOR_TASK_PID(event->arg[0]) == path->proxy_pid)) {
			set_busy(path, event->time_ns, write->time_ns, position, EXPECT_BLOCKED);
			return;
		}
	}
	set_busy(path, path->floor_ns, write->time_ns, 0, EXPECT_ON_CPU);
}

uint64_t owner_was_busy(struct path *path)
{
	const struct thread_events *thread = path->cursor.thread;

	path->before_busy = path->cursor;
	for (uint32_t position = path->cursor.position; position-- > 0;) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);
		char comm[COMM_BYTES];

		if (thread->entries[position].woke)
			continue;
		if (event->kind == TAILOR_EVENT_WAKEUP && strcmp(event_comm(event, comm), "VM Thread") != 0)
			return 0;
		if (!is_other(path, event->request))
			continue;
		if (event->kind == TAILOR_EVENT_RECEIVE) {
			set_busy(path, event->time_ns, path->receive_ns, position, EXPECT_ON_CPU);
			return event->request;
		}
		if (event->kind == TAILOR_EVENT_SYSCALL_WRITE) {
			if (event->time_ns <= path->floor_ns)
				return 0;
			busy_until_write(path, position);
			return event->request;
		}
	}
	return 0;
}

const struct thread_events *owner_woken_worker(const struct path *path, uint32_t event)
{
	const struct thread_events *receiver = thread_index_find(path->index, receiver_of(path));
	uint32_t position, end;

	if (!receiver)
		return NULL;
	position = thread_entries_before(receiver, path->wire->receive_event) + 1;
	end = thread_entries_before(receiver, event);
	for (; position < end; position++) {
		const struct tailor_event *wakeup = thread_entry_event(path->index, receiver, position);

		if (receiver->entries[position].woke && wakeup->request == request_of(path) &&
		    wakeup->pid == path->server_pid)
			return thread_index_find(path->index, wakeup->tid);
	}
	return NULL;
}

enum tailor_join owner_confidence(const struct path *path)
{
	if (!path->wire->last_write)
		return TAILOR_JOIN_NONE;
	if (!path->wire->receive || path->inferred || !path->received)
		return TAILOR_JOIN_INFERRED;
	if (path->wire->last_write->tid == path->wire->receive->tid && !path->handed)
		return TAILOR_JOIN_CERTAIN;
	return TAILOR_JOIN_CONFIRMED;
}
