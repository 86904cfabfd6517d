/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's scheduler knows of the proxy's workers and they themselves cannot: that a worker was kept from running
 * (woken, pushed off its CPU or stopped, and without one since), from when until when; with less than TAILOR_LATE_NS between,
 * twice is once. One entry per thread id modulo the size. The program at sched_switch fills it as it lets the thread run
 * again after TAILOR_LATE_NS (event.h) or longer, which is rare; the worker reads its own entry, so that what it reads was
 * written before it ran. Of two threads with one entry the last one has it.
 */
#ifndef TAILOR_LATE_H
#define TAILOR_LATE_H

#include <stdint.h>

#define TAILOR_LATE_THREADS 64
#define TAILOR_LATE_ENTRY(tid) ((uint32_t)(tid) & (TAILOR_LATE_THREADS - 1))

struct tailor_late {
	uint64_t from_ns;
	uint64_t until_ns; /* 0: never yet */
	uint32_t tid;      /* as in the initial pid namespace */
	uint32_t reserved;
	uint64_t unused; /* no two share a cache line by halves */
};
_Static_assert(sizeof(struct tailor_late) == 32, "entries do not straddle cache lines");

#endif /* TAILOR_LATE_H */
