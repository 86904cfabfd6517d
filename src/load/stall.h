/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times at which the machine itself stood still: the host of a virtual machine that gives a CPU to others shows in every
 * response time and in no counter of this kernel. A thread per CPU sleeps two milliseconds at a time, before everything
 * else (SCHED_FIFO); when it wakes up late although it did not wait for its CPU (run delay in schedstat, see
 * Documentation/scheduler/sched-stats.rst of the kernel), then the CPU's timer was late, that is, the CPU stood still.
 */
#ifndef TAILOR_LOAD_STALL_H
#define TAILOR_LOAD_STALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* Shorter lateness is not told from what interrupts do. */
#define TAILOR_STALL_MIN_NS (4 * TAILOR_NS_PER_MS)
/* Intervals of any CPU that are nearer to each other than this are one episode. */
#define TAILOR_STALL_GAP_NS (20 * TAILOR_NS_PER_MS)
#define TAILOR_STALL_OPEN 64

/* An episode lasts from the begin of its first interval to the end of its last one, gaps included. */
struct tailor_stalls {
	int known; /* 0: not watched, or this process may not (SCHED_FIFO); the rest is then 0 */
	uint64_t longest_ns;
	uint64_t total_ns;
	uint64_t episodes;
};

struct tailor_stall_episode {
	uint64_t begin_ns;
	uint64_t end_ns;
};

/* The latest episodes, which can still grow, and the sums of older ones. Zeroed before first use. */
struct tailor_stall_list {
	struct tailor_stall_episode open[TAILOR_STALL_OPEN]; /* sorted; neighbours are TAILOR_STALL_GAP_NS apart or more */
	size_t count;
	struct tailor_stalls closed;
};

/*
 * Adds [begin_ns, end_ns); an empty one is passed over. In any order; when the list is full, its earliest episode is
 * closed: what comes later and belongs to it would count as another one.
 */
void tailor_stall_list_add(struct tailor_stall_list *list, uint64_t begin_ns, uint64_t end_ns);
/* What all episodes come to. Sets known. */
struct tailor_stalls tailor_stall_list_sum(const struct tailor_stall_list *list);

struct tailor_stall_watch;

/*
 * Starts a thread on each CPU that the caller may use; what lies before from_ns (CLOCK_MONOTONIC) does not count.
 * Returns 0 with *ret_watch for tailor_stall_watch_stop(), or a negative errno: -EPERM without the right to SCHED_FIFO,
 * -ENOENT where the kernel has no schedstat.
 */
int tailor_stall_watch_start(uint64_t from_ns, struct tailor_stall_watch **ret_watch);
/* Ends the threads (within some ms) and frees the watch. NULL gives an unknown result. */
struct tailor_stalls tailor_stall_watch_stop(struct tailor_stall_watch *watch);

#endif /* TAILOR_LOAD_STALL_H */
