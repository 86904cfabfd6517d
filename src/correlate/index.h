/* SPDX-License-Identifier: Apache-2.0 */
/* The window's events by thread, so that the walk can ask what a thread did before a moment. */
#ifndef TAILOR_CORRELATE_INDEX_H
#define TAILOR_CORRELATE_INDEX_H

#include <tailor/window.h>

#define NO_POSITION UINT32_MAX

/* One event in the life of a thread. */
struct thread_entry {
	uint32_t event;      /* index into window.events */
	uint32_t wakeup;     /* position of the thread's last own wake-up at or before this entry, or NO_POSITION */
	uint32_t scheduling; /* the same for any event of its scheduling: wake-up, switch-in, switch-out */
	uint32_t faults;     /* page faults of the thread up to and with this entry */
	uint32_t others;     /* its receives and writes for other requests than the window's, in the same way */
	uint8_t woke;        /* 1: the event is the wake-up of another thread by this one */
};

struct thread_events {
	uint32_t tid;
	uint32_t pid;
	uint32_t count;
	uint8_t receives;                   /* it received on tagged connections: not a pure worker */
	uint8_t scheduled;                  /* its scheduling was recorded */
	const struct thread_entry *entries; /* in window order */
};

struct thread_index {
	const struct tailor_window *window;
	struct thread_entry *entries;
	struct thread_events *threads; /* ordered by tid */
	size_t thread_count;
};

/* O(n) in events. Returns 0, -ENOMEM, or -E2BIG for 2^31 events and more. Freed by thread_index_free(), also after an
 * error. */
int thread_index_build(struct thread_index *index, const struct tailor_window *window);
void thread_index_free(struct thread_index *index);

/* The thread's events; NULL when there are none. */
const struct thread_events *thread_index_find(const struct thread_index *index, uint32_t tid);

/* How many of the thread's entries are before window event `event`. */
uint32_t thread_entries_before(const struct thread_events *thread, uint32_t event);

/* How many of the thread's entries have a time of at most time_ns. */
uint32_t thread_entries_until(const struct thread_index *index, const struct thread_events *thread, uint64_t time_ns);

static inline const struct tailor_event *thread_entry_event(const struct thread_index *index,
                                                            const struct thread_events *thread, uint32_t position)
{
	return &index->window->events[thread->entries[position].event].event;
}

/* The thread's name as the window's table has it; NULL where it has none. */
const char *thread_name(const struct tailor_window *window, uint32_t tid);

/* The kernel's name of the other task of a WAKEUP, SWITCH_IN or SWITCH_OUT; "" where there was none. */
#define COMM_BYTES 17
const char *event_comm(const struct tailor_event *event, char buffer[COMM_BYTES]);

#endif /* TAILOR_CORRELATE_INDEX_H */
