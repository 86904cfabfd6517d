/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/schedule.h"

#include "correlate/losses.h"

/*
 * A thread that is going to sleep can be woken before it has left its CPU: the waker's event then comes shortly before
 * the SWITCH_OUT (it is written before the waker waits for the switch to end). Anything longer ago was another sleep.
 */
#define WAKEUP_RACE_NS 100000

/* Position of the last scheduling event before `position`, or NO_POSITION. */
static uint32_t previous(const struct thread_events *thread, uint32_t position)
{
	return position > 0 ? thread->entries[position - 1].scheduling : NO_POSITION;
}

static struct stretch make(const struct cursor *cursor, enum stretch_state state, uint64_t start_ns, uint32_t position,
                           enum cursor_expect expect)
{
	return (struct stretch){
	        .state = state,
	        .start_ns = start_ns,
	        .out_position = NO_POSITION,
	        .before = {.thread = cursor->thread, .position = position, .expect = expect},
	};
}

/* Where the thread ran when it did what the cursor stands at, or else what it did before. */
static uint16_t cpu_of(const struct thread_index *index, const struct cursor *cursor)
{
	const struct thread_events *thread = cursor->thread;

	if (cursor->position < thread->count)
		return thread_entry_event(index, thread, cursor->position)->cpu;
	return thread->count > 0 ? thread_entry_event(index, thread, thread->count - 1)->cpu : 0;
}

static struct stretch on_cpu_before(const struct thread_index *index, const struct cursor *cursor)
{
	uint32_t position = previous(cursor->thread, cursor->position);
	uint32_t wakeup = NO_POSITION;
	const struct tailor_event *event = NULL;
	struct stretch stretch;

	/* A wake-up of a running thread changes nothing, unless its SWITCH_IN was lost. */
	while (position != NO_POSITION) {
		event = thread_entry_event(index, cursor->thread, position);
		if (event->kind != TAILOR_EVENT_WAKEUP)
			break;
		wakeup = position;
		position = previous(cursor->thread, position);
	}
	if (position == NO_POSITION) {
		stretch = make(cursor, STRETCH_ON_CPU, 0, 0, EXPECT_ON_CPU);
		stretch.cpu = cpu_of(index, cursor);
		return stretch;
	}
	if (event->kind == TAILOR_EVENT_SWITCH_IN) {
		stretch = make(cursor, STRETCH_ON_CPU, event->time_ns, position, EXPECT_OFF_CPU);
		stretch.cpu = event->cpu;
		stretch.in = event;
		return stretch;
	}
	/* Off the CPU as the record says, yet it was seen to run: a SWITCH_IN is missing. */
	if (wakeup != NO_POSITION && !switched_out_ready(event))
		return make(cursor, STRETCH_UNKNOWN, thread_entry_event(index, cursor->thread, wakeup)->time_ns, wakeup,
		            EXPECT_BLOCKED);
	return make(cursor, STRETCH_UNKNOWN, event->time_ns, position, EXPECT_ON_CPU);
}

/* From a SWITCH_OUT that no wake-up follows to the SWITCH_IN. */
static struct stretch woken_while_leaving(const struct thread_index *index, const struct cursor *cursor, uint32_t out)
{
	const struct tailor_event *event = thread_entry_event(index, cursor->thread, out);
	uint32_t before = previous(cursor->thread, out);
	const struct tailor_event *wakeup = NULL;
	struct stretch stretch;

	if (before != NO_POSITION) {
		wakeup = thread_entry_event(index, cursor->thread, before);
		if (wakeup->kind != TAILOR_EVENT_WAKEUP || event->time_ns - wakeup->time_ns > WAKEUP_RACE_NS)
			wakeup = NULL;
	}
	stretch = make(cursor, wakeup ? STRETCH_RUN_QUEUE : STRETCH_UNKNOWN, event->time_ns, out, EXPECT_ON_CPU);
	stretch.wakeup = wakeup;
	return stretch;
}

/* The first or the last event of that kind that the thread had in [from_ns, to_ns) before the window's; NULL: it had none. */
static const struct tailor_event *find_earlier(const struct tailor_window *window, uint32_t tid, enum tailor_event_kind kind, int last,
                                               uint64_t from_ns, uint64_t to_ns)
{
	const struct tailor_event *found = NULL;

	for (size_t i = 0; i < window->earlier_scheduling_count; i++) {
		const struct tailor_event *event = &window->earlier_scheduling[i];

		if (event->tid != tid || event->kind != kind || event->time_ns < from_ns || event->time_ns >= to_ns)
			continue;
		if (!found || (event->time_ns > found->time_ns) == last)
			found = event;
	}
	return found;
}

/*
 * The window's first event of the thread is that it got a CPU: it was ready for longer than the window reaches back. What is known of
 * before tells since when and why, if nothing is missing in between: it may have run meanwhile.
 */
static struct stretch ready_since_earlier(const struct thread_index *index, const struct cursor *cursor, const struct tailor_event *in)
{
	const struct tailor_window *window = index->window;
	uint64_t whole_ns = window->earlier_whole_ns;
	const struct tailor_event *out = find_earlier(window, in->tid, TAILOR_EVENT_SWITCH_OUT, 1, whole_ns, in->time_ns);
	const struct tailor_event *wakeup = find_earlier(window, in->tid, TAILOR_EVENT_WAKEUP, 0, out ? out->time_ns : whole_ns, in->time_ns);
	struct stretch stretch;

	if (losses_in(window, "cpu", 0, in->time_ns))
		return make(cursor, STRETCH_UNKNOWN, 0, 0, EXPECT_ON_CPU);
	if (out && switched_out_ready(out)) {
		stretch = make(cursor, STRETCH_PREEMPTED, out->time_ns, 0, EXPECT_ON_CPU);
		stretch.out = out;
		return stretch;
	}
	if (out && !wakeup && out->time_ns > WAKEUP_RACE_NS)
		wakeup = find_earlier(window, in->tid, TAILOR_EVENT_WAKEUP, 1, out->time_ns - WAKEUP_RACE_NS, out->time_ns);
	if (!wakeup)
		return make(cursor, STRETCH_UNKNOWN, 0, 0, EXPECT_ON_CPU);
	stretch = make(cursor, STRETCH_RUN_QUEUE, wakeup->time_ns, 0, EXPECT_ON_CPU);
	stretch.wakeup = wakeup;
	return stretch;
}

static struct stretch off_cpu_before(const struct thread_index *index, const struct cursor *cursor)
{
	const struct tailor_event *in = thread_entry_event(index, cursor->thread, cursor->position);
	uint32_t position = previous(cursor->thread, cursor->position);
	uint32_t wakeup = NO_POSITION;
	const struct tailor_event *event = NULL;
	struct stretch stretch;

	while (position != NO_POSITION) {
		event = thread_entry_event(index, cursor->thread, position);
		if (event->kind != TAILOR_EVENT_WAKEUP)
			break;
		wakeup = position; /* the first after it went to sleep is the one that counts */
		position = previous(cursor->thread, position);
	}
	if (position != NO_POSITION && event->kind == TAILOR_EVENT_SWITCH_OUT && switched_out_ready(event)) {
		stretch = make(cursor, STRETCH_PREEMPTED, event->time_ns, position, EXPECT_ON_CPU);
		stretch.out = event;
		stretch.out_position = position;
	} else if (wakeup != NO_POSITION) {
		event = thread_entry_event(index, cursor->thread, wakeup);
		stretch = make(cursor, STRETCH_RUN_QUEUE, event->time_ns, wakeup, EXPECT_BLOCKED);
		stretch.wakeup = event;
	} else if (position == NO_POSITION) {
		stretch = ready_since_earlier(index, cursor, in);
	} else if (event->kind == TAILOR_EVENT_SWITCH_OUT) {
		stretch = woken_while_leaving(index, cursor, position);
	} else {
		stretch = make(cursor, STRETCH_UNKNOWN, event->time_ns, position, EXPECT_OFF_CPU);
	}
	stretch.in = in;
	return stretch;
}

static struct stretch blocked_before(const struct thread_index *index, const struct cursor *cursor)
{
	uint32_t position = previous(cursor->thread, cursor->position);
	const struct tailor_event *event = NULL;
	struct stretch stretch;

	while (position != NO_POSITION) {
		event = thread_entry_event(index, cursor->thread, position);
		if (event->kind != TAILOR_EVENT_WAKEUP)
			break;
		position = previous(cursor->thread, position);
	}
	if (position == NO_POSITION) {
		stretch = make(cursor, STRETCH_BLOCKED, 0, 0, EXPECT_ON_CPU);
	} else if (event->kind == TAILOR_EVENT_SWITCH_OUT) {
		stretch = make(cursor, STRETCH_BLOCKED, event->time_ns, position, EXPECT_ON_CPU);
		stretch.out = event;
		stretch.out_position = position;
	} else {
		return make(cursor, STRETCH_UNKNOWN, event->time_ns, position, EXPECT_OFF_CPU);
	}
	stretch.wakeup_event = cursor->thread->entries[cursor->position].event;
	stretch.wakeup = thread_entry_event(index, cursor->thread, cursor->position);
	return stretch;
}

struct stretch schedule_before(const struct thread_index *index, const struct cursor *cursor)
{
	switch (cursor->expect) {
	case EXPECT_OFF_CPU: return off_cpu_before(index, cursor);
	case EXPECT_BLOCKED: return blocked_before(index, cursor);
	case EXPECT_ON_CPU: break;
	}
	return on_cpu_before(index, cursor);
}
