/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/owner.h"

#include <string.h>

#include "correlate/calls.h"

#define RUN_ENTRIES 256 /* how far a thread's single run is looked through */

/* A receive or write for somebody else, known to the proxy or not. */
static int serves_other(const struct path *path, const struct thread_events *thread, uint32_t position)
{
	const struct tailor_event *event = thread_entry_event(path->index, thread, position);

	return !thread->entries[position].woke && event->request != owner_request(path) &&
	       (event->kind == TAILOR_EVENT_RECEIVE || event->kind == TAILOR_EVENT_SYSCALL_WRITE);
}

const struct tailor_event *owner_served_other(const struct path *path)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = path->cursor.position, left = RUN_ENTRIES;

	while (position-- > 0 && left-- > 0) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (event->time_ns <= path->receive_ns)
			break;
		if (event->time_ns >= path->now_ns || thread->entries[position].woke)
			continue;
		if (event->kind == TAILOR_EVENT_SWITCH_OUT && TAILOR_SWITCH_STATE(event->extra) != TAILOR_TASK_RUNNABLE)
			break;
		if (serves_other(path, thread, position))
			return event;
	}
	return NULL;
}

/* System calls in which a loop waits for whatever comes; x86-64. */
static int is_poll(uint16_t call)
{
	switch (call - 1) {
	case 7:   /* poll */
	case 23:  /* select */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
	case 441: /* epoll_pwait2 */ return 1;
	default: return 0;
	}
}

/* Is what the thread does next, before it waits for whatever comes, to write for another? Then it may have been about to. */
static int is_about_to_answer_other(const struct path *path)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = path->cursor.position, left = RUN_ENTRIES;

	for (; position < thread->count && left-- > 0; position++) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			continue;
		if (event->kind == TAILOR_EVENT_SYSCALL_WRITE)
			return event->request != owner_request(path);
		if (event->kind == TAILOR_EVENT_RECEIVE ||
		    (event->kind == TAILOR_EVENT_SWITCH_OUT && TAILOR_SWITCH_CALL(event->extra) && is_poll(TAILOR_SWITCH_CALL(event->extra))))
			return 0;
	}
	return 0;
}

int owner_stayed(const struct path *path)
{
	const struct thread_events *thread = path->cursor.thread;

	return thread->tid == owner_receiver(path) &&
	       !owner_served_others(thread, thread_entries_before(thread, path->wire->receive_event), path->cursor.position) &&
	       !is_about_to_answer_other(path);
}

/* How long the thread was kept from its CPU between two positions of its entries. */
static uint64_t kept_waiting(const struct path *path, const struct thread_events *thread, uint32_t from, uint32_t until)
{
	uint64_t since_ns = 0, ns = 0;

	for (; from < until; from++) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, from);

		if (thread->entries[from].woke)
			continue;
		if (event->kind == TAILOR_EVENT_SWITCH_IN && since_ns)
			ns += event->time_ns - since_ns;
		if ((event->kind == TAILOR_EVENT_SWITCH_OUT && switched_out_ready(event)) || event->kind == TAILOR_EVENT_WAKEUP)
			since_ns = event->time_ns;
		else if (event->kind == TAILOR_EVENT_SWITCH_IN || event->kind == TAILOR_EVENT_SWITCH_OUT)
			since_ns = 0;
	}
	return ns;
}

uint64_t owner_at_other_until(const struct path *path)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = path->cursor.position, left = RUN_ENTRIES;

	/* A loop comes back to its sockets for whatever there is; its sleep ended what was before. */
	if (thread->receives)
		return 0;
	while (position-- > 0 && left-- > 0) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (event->time_ns < path->now_ns && event->kind == TAILOR_EVENT_SYSCALL_WRITE && serves_other(path, thread, position))
			return event->time_ns + TRAFFIC_AFTERWARDS_NS + kept_waiting(path, thread, position, path->cursor.position);
	}
	return 0;
}

int owner_worked_alone(const struct path *path, uint64_t low_ns)
{
	uint64_t since_ns = low_ns;

	if (owner_stayed(path))
		return 1;
	return owner_at_other_until(path) <= low_ns &&
	       traffic_alone(path->traffic, path->server_pid, low_ns, path->now_ns, &since_ns) && since_ns <= low_ns;
}

int owner_was_woken_for(const struct path *path, const struct stretch *wait)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = wait->out_position, left = RUN_ENTRIES;
	uint64_t woken_ns = 0;

	if (position == NO_POSITION)
		return 0;
	while (position-- > 0 && left-- > 0) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			continue;
		if (event->kind == TAILOR_EVENT_WAKEUP)
			woken_ns = event->time_ns;
		if (event->kind != TAILOR_EVENT_SWITCH_OUT || switched_out_ready(event))
			continue;
		if (TAILOR_SWITCH_STATE(event->extra) != TAILOR_TASK_UNINTERRUPTIBLE &&
		    call_family(TAILOR_SWITCH_CALL(event->extra)) != CALL_LOCK)
			return woken_ns != 0 && woken_ns >= path->floor_ns;
	}
	return 0;
}

int owner_was_idle(const struct path *path, const struct thread_events *thread, uint32_t wakeup)
{
	const struct tailor_event *event = thread_entry_event(path->index, thread, wakeup);
	uint32_t before = wakeup > 0 ? thread->entries[wakeup - 1].scheduling : NO_POSITION;
	uint64_t since_ns = before == NO_POSITION ? 0 : thread_entry_event(path->index, thread, before)->time_ns;

	return !traffic_throughout(path->traffic, path->server_pid, since_ns, event->time_ns);
}

/* Did the waiting thread serve other requests between the receive and the wait? */
static int serves_many(const struct path *path, const struct path_return *wait)
{
	const struct thread_events *thread = wait->thread.thread;
	uint32_t position = wait->thread.position, left = RUN_ENTRIES;

	for (; position-- > 0 && left-- > 0;) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (event->time_ns <= path->receive_ns)
			break;
		if (!thread->entries[position].woke && owner_is_other(path, event->request) &&
		    (event->kind == TAILOR_EVENT_RECEIVE || event->kind == TAILOR_EVENT_SYSCALL_WRITE))
			return 1;
	}
	return 0;
}

int owner_was_idle_wait(const struct path *path, const struct path_return *wait)
{
	const struct tailor_event *out = thread_entry_event(path->index, wait->thread.thread, wait->thread.position);

	if (TAILOR_SWITCH_CALL(out->extra) != 0)
		return is_poll(TAILOR_SWITCH_CALL(out->extra));
	return wait->waker_request == 0 && serves_many(path, wait);
}

/* When another thread last woke this one between two positions of its entries; 0: none did. */
static uint64_t last_woken(const struct path *path, const struct thread_events *thread, uint32_t from, uint32_t until)
{
	while (until-- > from) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, until);

		if (!thread->entries[until].woke && event->kind == TAILOR_EVENT_WAKEUP && TAILOR_TASK_TID(event->arg[0]) != 0)
			return event->time_ns;
	}
	return 0;
}

/* A walk that passes a write for another between the response and the wait loses track: it does not come here. */
int owner_told_receiver(const struct path *path, const struct path_return *wait, uint64_t *ret_since_ns)
{
	const struct thread_events *waker = thread_index_find(path->index, wait->waker_tid);
	uint32_t receiver = owner_receiver(path);

	if (!waker || receiver == 0 || wait->thread.thread->tid != receiver || path->wire->last_write->tid != receiver ||
	    !owner_was_idle_wait(path, wait))
		return 0;
	*ret_since_ns = last_woken(path, waker, thread_entries_until(path->index, waker, wait->out_ns),
	                           thread_entries_before(waker, wait->wakeup_event));
	return *ret_since_ns != 0 || waker == path->cursor.thread;
}

int owner_stayed_awake(const struct path *path, const struct path_return *wait)
{
	const struct thread_events *thread = wait->thread.thread;
	uint32_t receive = thread_entries_before(thread, path->wire->receive_event);

	if (wait->thread.position <= receive || owner_served_others(thread, receive + 1, wait->thread.position))
		return 0;
	for (uint32_t position = receive; position < wait->thread.position; position++) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (!thread->entries[position].woke && event->kind == TAILOR_EVENT_SWITCH_OUT && !switched_out_ready(event))
			return 0;
	}
	return 1;
}

/* The other request whose response the loop that `event` woke wrote first in that run; 0 when none, or when it wrote this
 * one's too. */
static uint64_t written_after(const struct path *path, const struct tailor_event *event, uint32_t window_event)
{
	const struct thread_events *thread = thread_index_find(path->index, event->tid);
	uint32_t position, end;
	uint64_t found = 0;

	if (!thread || !thread->receives || event->pid != path->server_pid)
		return 0;
	position = thread_entries_before(thread, window_event) + 1;
	end = thread->count - position > RUN_ENTRIES ? position + RUN_ENTRIES : thread->count;
	for (; position < end; position++) {
		const struct tailor_event *next = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			continue;
		if (next->kind == TAILOR_EVENT_SWITCH_OUT && !switched_out_ready(next))
			break;
		/* What it received first it may have answered itself. */
		if (next->kind == TAILOR_EVENT_RECEIVE && !found)
			return 0;
		if (next->kind != TAILOR_EVENT_SYSCALL_WRITE)
			continue;
		if (next->request == owner_request(path))
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
	if (path->returns_count == 1 && (path->returns[0].thread.thread->tid != owner_receiver(path) ||
	                                 owner_is_other(path, path->returns[0].waker_request)))
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
		else if (event->kind == TAILOR_EVENT_SYSCALL_WRITE && owner_is_other(path, event->request))
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
		if (!owner_is_other(path, event->request))
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
	const struct thread_events *receiver = thread_index_find(path->index, owner_receiver(path));
	uint32_t position, end;

	if (!receiver)
		return NULL;
	position = thread_entries_before(receiver, path->wire->receive_event) + 1;
	end = thread_entries_before(receiver, event);
	for (; position < end; position++) {
		const struct tailor_event *wakeup = thread_entry_event(path->index, receiver, position);

		if (receiver->entries[position].woke && wakeup->request == owner_request(path) &&
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
