/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people and logs write them. */
#ifndef TAILOR_BASE_MOMENT_H
#define TAILOR_BASE_MOMENT_H

#include <stdint.h>

/*
 * Reads an RFC 3339 moment: date, "T", time, optional fraction, then "Z" or an offset. Returns 0 with *ret_ns
 * (CLOCK_REALTIME), or -EINVAL, also for moments before 1970 and from July 2554 on, which 64 bits do not hold.
 */
int tailor_parse_moment(const char *text, uint64_t *ret_ns);

#endif /* TAILOR_BASE_MOMENT_H */
