/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that was ready waited for. */
#ifndef TAILOR_CORRELATE_READY_H
#define TAILOR_CORRELATE_READY_H

#include "correlate/schedule.h"

/* 1 when its cgroup had used up its CPU quota. */
int ready_throttled(const struct stretch *stretch);

/* "CPU 1 had X (pid 9)", "by X (pid 9)", "CPU 1 was idle in state 2 and needed 130 us to wake up"; "" unknown.
 * Returns buffer. */
const char *ready_describe(const struct tailor_window *window, const struct stretch *stretch, char *buffer, size_t size);

#endif /* TAILOR_CORRELATE_READY_H */
