/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread waited for where nobody can be followed: by the system call that it was in and by who ended it. */
#ifndef TAILOR_CORRELATE_WAITS_H
#define TAILOR_CORRELATE_WAITS_H

#include "correlate/path.h"

/* The system call that it was blocked in, as TAILOR_SWITCH_CALL() gives it; 0 not known. */
uint16_t wait_call(const struct stretch *stretch);

/* Fills the cause and the detail of a blocked stretch from low_ns to path->now_ns of the cursor's thread. */
void wait_explain(const struct path *path, const struct stretch *stretch, uint64_t low_ns, struct tailor_span *span);

/* 1 when it waited in a write until the socket took more, of this request's response as far as that shows. */
int wait_for_space(const struct path *path, const struct stretch *stretch);

/* The file of an address as the window knows it: "libx.so", "memory without a file", NULL unknown. */
const char *wait_mapping(const struct tailor_window *window, uint32_t pid, uint64_t address);

#endif /* TAILOR_CORRELATE_WAITS_H */
