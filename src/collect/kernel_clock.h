/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: a timer on every CPU that runs a BPF program (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK). */
#ifndef TAILOR_COLLECT_KERNEL_CLOCK_H
#define TAILOR_COLLECT_KERNEL_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct bpf_program;
struct tailor_kernel_clock;

/* Would the kernel give one? Returns 0, or the negative errno with which it refused and `reason` with the remedy. */
int tailor_kernel_clock_ask(char *reason, size_t reason_size);

/*
 * Runs the loaded `program` every period_ns on each CPU that is online now, also while it is idle: it must outlive the clock. Nothing needs
 * to be read, and rights given up later do not end it. Returns 0 and *ret_clock for tailor_kernel_clock_close(), or a
 * negative errno as above.
 */
int tailor_kernel_clock_open(const struct bpf_program *program, uint64_t period_ns, struct tailor_kernel_clock **ret_clock,
			     char *reason, size_t reason_size);
/* NULL is passed over. */
void tailor_kernel_clock_close(struct tailor_kernel_clock *clock);

#endif /* TAILOR_COLLECT_KERNEL_CLOCK_H */
