/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/handoff.h"

#include "correlate/owner.h"

#define HOPS_MAX 8      /* a chain longer than this proves nothing */
#define STEPS_MAX 64    /* wake-ups that are looked at for one */
#define RUN_ENTRIES 256 /* how far a thread's single run is looked through */

static uint64_t since_receive(const struct path *path)
{
	return path->receive_ns > path->floor_ns ? path->receive_ns : path->floor_ns;
}

/* Where a chain of wake-ups may come from, besides the receiving thread while it was at this request and nothing else. */
struct origin {
	uint32_t tid;   /* 0: nowhere else */
	uint32_t until; /* before this one of its entries */
	int strictly;   /* each thread of the chain was idle until it was woken, and only its last wake-up counts */
	uint32_t steps; /* left to look at */
	uint64_t since_ns;
};

static int is_origin(const struct path *path, const struct origin *origin, const struct thread_events *thread, uint32_t position)
{
	if (thread->tid == owner_receiver(path)) {
		uint32_t receive = thread_entries_before(thread, path->wire->receive_event);

		if (position <= receive)
			return thread_entry_event(path->index, thread, position)->time_ns >= origin->since_ns;
		return !owner_served_others(thread, receive + 1, position);
	}
	return thread->tid == origin->tid && !owner_served_others(thread, position, origin->until);
}

/* Does a chain of wake-ups lead to this thread before its entry `position`? Bounded by HOPS_MAX and origin->steps. */
static int is_chained(const struct path *path, const struct thread_events *thread, uint32_t position, struct origin *origin, int hops)
{
	while (position > 0 && hops < HOPS_MAX && origin->steps > 0) {
		uint32_t wakeup = thread->entries[position - 1].wakeup, before;
		const struct thread_events *waker;
		const struct tailor_event *event;

		/* Never below 0: who has called this looks at it, too. */
		origin->steps--;
		if (wakeup == NO_POSITION || owner_served_others(thread, wakeup, position))
			return 0;
		event = thread_entry_event(path->index, thread, wakeup);
		if (event->time_ns < origin->since_ns)
			return 0;
		position = wakeup;
		waker = thread_index_find(path->index, TAILOR_TASK_TID(event->arg[0]));
		/* The end of its own sleep. */
		if (TAILOR_TASK_TID(event->arg[0]) == 0)
			continue;
		if (origin->strictly && (!waker || owner_is_other(path, event->request) || !owner_was_idle(path, thread, wakeup)))
			return 0;
		if (!waker)
			continue;
		before = thread_entries_before(waker, thread->entries[wakeup].event);
		if (is_origin(path, origin, waker, before) || is_chained(path, waker, before, origin, hops + 1))
			return 1;
		if (origin->strictly)
			return 0;
	}
	return 0;
}

int handoff_gave_work(const struct path *path, const struct path_return *wait)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = thread_entries_until(path->index, thread, wait->out_ns);
	struct origin origin = {wait->thread.thread->tid, wait->thread.position, 1, STEPS_MAX, since_receive(path)};

	if (owner_is_other(path, wait->waker_request) && wait->waker_tid != owner_receiver(path))
		return 0;
	/* It came and went for others while it was waited for. */
	if (owner_served_others(thread, position, thread_entries_before(thread, wait->wakeup_event)))
		return 0;
	return is_chained(path, thread, position, &origin, 0);
}

int handoff_reached(const struct path *path, const struct thread_events *thread, uint32_t position)
{
	struct origin origin = {0, 0, 0, STEPS_MAX, since_receive(path)};

	return is_origin(path, &origin, thread, position) || is_chained(path, thread, position, &origin, 0);
}

/* Since when the receiving thread had been awake when it received. */
static uint64_t awake_since(const struct path *path)
{
	const struct thread_events *thread = thread_index_find(path->index, owner_receiver(path));
	uint32_t position = thread_entries_before(thread, path->wire->receive_event), left = RUN_ENTRIES;

	while (position-- > 0 && left-- > 0) {
		const struct tailor_event *event = thread_entry_event(path->index, thread, position);

		if (!thread->entries[position].woke && event->kind == TAILOR_EVENT_SWITCH_OUT &&
		    TAILOR_SWITCH_STATE(event->extra) != TAILOR_TASK_RUNNABLE)
			return event->time_ns;
	}
	return path->receive_ns;
}

int handoff_reached_before(const struct path *path, const struct thread_events *thread, uint32_t position)
{
	struct origin origin = {0, 0, 0, STEPS_MAX, awake_since(path)};

	return is_chained(path, thread, position, &origin, 0);
}
