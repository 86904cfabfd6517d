/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's scheduling, read backward: from a moment at which its state is known, the stretch before it. Where the
 * record of the thread is not continuous (events were lost), the stretch is unknown, never guessed.
 */
#ifndef TAILOR_CORRELATE_SCHEDULE_H
#define TAILOR_CORRELATE_SCHEDULE_H

#include "correlate/index.h"

enum stretch_state {
	STRETCH_ON_CPU,
	STRETCH_RUN_QUEUE, /* woken, no CPU yet */
	STRETCH_PREEMPTED, /* ready, but another task had the CPU */
	STRETCH_BLOCKED,   /* asleep until `wakeup` */
	STRETCH_UNKNOWN,   /* the record has a hole here */
};

/* What is known about the thread just before the cursor. */
enum cursor_expect {
	EXPECT_ON_CPU,  /* it was seen doing something, or it is about to be switched out */
	EXPECT_OFF_CPU, /* it is about to be switched in: entries[position] is that SWITCH_IN */
	EXPECT_BLOCKED, /* it is about to be woken: entries[position] is that WAKEUP */
};

struct cursor {
	const struct thread_events *thread;
	uint32_t position; /* entries before this one are in the past */
	enum cursor_expect expect;
};

/* Pointers are NULL where that event does not exist or was not recorded. */
struct stretch {
	enum stretch_state state;
	uint64_t start_ns;                 /* 0: began before the window's first event */
	uint16_t cpu;                      /* on-CPU only: where it ran */
	const struct tailor_event *in;     /* that gave it the CPU: at the end of a wait, at the start of on-CPU */
	const struct tailor_event *out;    /* that took the CPU away, at the start of a wait */
	const struct tailor_event *wakeup; /* that ended a blocked stretch, or began a wait in the run queue */
	uint32_t wakeup_event;             /* its index in the window, of a blocked stretch */
	uint32_t out_position;             /* of `out` among the thread's entries */
	struct cursor before;              /* to go on with */
};

/* 1: it lost its CPU and could have gone on, pushed out or out of its quota; else it went to sleep. */
static inline int switched_out_ready(const struct tailor_event *out)
{
	uint32_t state = TAILOR_SWITCH_STATE(out->extra);

	return state == TAILOR_TASK_RUNNABLE || state == TAILOR_TASK_THROTTLED;
}

/* In which state a thread was blocked. One that left its CPU before the window is still known to have been stopped: its wake-up says it. */
static inline uint32_t blocked_state(const struct stretch *stretch)
{
	if (stretch->out)
		return TAILOR_SWITCH_STATE(stretch->out->extra);
	return stretch->wakeup && stretch->wakeup->extra & TAILOR_WAKEUP_STOPPED ? TAILOR_TASK_STOPPED : TAILOR_TASK_SLEEPING;
}

/* The stretch that ends where the cursor is. */
struct stretch schedule_before(const struct thread_index *index, const struct cursor *cursor);

#endif /* TAILOR_CORRELATE_SCHEDULE_H */
