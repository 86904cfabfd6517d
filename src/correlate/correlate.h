/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From events to a cause: a pure function. No I/O, no clock, no globals; the same window gives the same
 * timeline. It walks the critical path backward from the response's last byte: at each moment one
 * thread is the one that the response waits for; where that thread was blocked, it goes on with the
 * thread that woke it.
 */
#ifndef TAILOR_CORRELATE_CORRELATE_H
#define TAILOR_CORRELATE_CORRELATE_H

#include <tailor/window.h>

/*
 * Makes the timeline of the window's request. Returns 0 and fills *ret_timeline (free with
 * tailor_timeline_free()), -EINVAL when the record has no end or ends before it began, -ENOMEM.
 */
int tailor_correlate(const struct tailor_window *window, struct tailor_timeline *ret_timeline);

/* 1 when the spans cut [begin_ns, end_ns] exactly: in order, without gap, overlap or empty span. */
int tailor_timeline_check(const struct tailor_timeline *timeline);

#endif /* TAILOR_CORRELATE_CORRELATE_H */
