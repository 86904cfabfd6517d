/* SPDX-License-Identifier: Apache-2.0 */
/* How the calling thread gets a CPU, see sched(7) and sched_setattr(2). Threads that it starts inherit it. */
#ifndef TAILOR_BASE_SCHEDULING_H
#define TAILOR_BASE_SCHEDULING_H

#include <stdint.h>

/* The shortest slice that there is. */
#define TAILOR_SCHEDULING_SLICE_NS UINT64_C(100000)

/*
 * SCHED_OTHER, as nice as the thread is. Who runs for some 10 us at a time and then sleeps, and says so by its slice (Linux 6.12), runs at
 * once when it wakes up, more often than others, also where the CPU is somebody else's whose slice of some ms has just begun; it gets no more of
 * the CPU than its nice value says. slice_ns 0: as long as all others. Returns 0 or a negative errno.
 */
int tailor_scheduling_fair(uint64_t slice_ns);

/*
 * SCHED_FIFO of that priority, 1..99, and back; threads that are started from then on, as the kernel does for io_uring, have neither, but are
 * as nice as any (SCHED_RESET_ON_FORK). Return 0 or a negative errno; -EPERM: the first takes CAP_SYS_NICE or RLIMIT_RTPRIO.
 */
int tailor_scheduling_fifo(unsigned int priority);
int tailor_scheduling_fair_again(uint64_t slice_ns);

/* Allows SCHED_FIFO up to that priority to this process, whatever rights it gives up. Returns 0 or a negative errno. */
int tailor_scheduling_allow_fifo(unsigned int priority);

#endif /* TAILOR_BASE_SCHEDULING_H */
