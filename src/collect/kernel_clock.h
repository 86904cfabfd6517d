/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: a timer that beats on every CPU, idle or not (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK). */
#ifndef TAILOR_COLLECT_KERNEL_CLOCK_H
#define TAILOR_COLLECT_KERNEL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct tailor_kernel_clock;

/*
 * Has an hrtimer expire every period_ns on each CPU that is online now. Nothing needs to be read, and rights given up later do
 * not end it; it takes a file descriptor per CPU. Returns 0 and *ret_clock for tailor_kernel_clock_close(), or the negative
 * errno with which the kernel refused, and `reason` with the remedy.
 */
int tailor_kernel_clock_open(uint64_t period_ns, struct tailor_kernel_clock **ret_clock, char *reason, size_t reason_size);
/* NULL is passed over. */
void tailor_kernel_clock_close(struct tailor_kernel_clock *clock);

#endif /* TAILOR_COLLECT_KERNEL_CLOCK_H */
