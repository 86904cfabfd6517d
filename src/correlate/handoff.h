/* SPDX-License-Identifier: Apache-2.0 */
/* How a request got from the thread that received it to another one: by chains of wake-ups. */
#ifndef TAILOR_CORRELATE_HANDOFF_H
#define TAILOR_CORRELATE_HANDOFF_H

#include "correlate/path.h"

/*
 * 1 when what the cursor's thread did at the wait's start had been asked for by the waiting thread, or by the one that
 * received the request: it was handed the work by a chain of wake-ups after the receive. 0 means it merely held
 * something that the waiting thread needed.
 */
int handoff_gave_work(const struct path *path, const struct path_return *wait);

/*
 * 1 when a chain of wake-ups leads to the thread, before the given one of its entries, from the one that received the request, while that
 * was at nothing else.
 */
int handoff_reached(const struct path *path, const struct thread_events *thread, uint32_t position);

/*
 * 1 when such a chain leads to it from what the receiving thread did since it was last woken before it received the request: a selector
 * that comes to several requests in a row wakes a pool for the first, whose threads take up the next ones, too.
 */
int handoff_reached_before(const struct path *path, const struct thread_events *thread, uint32_t position);

#endif /* TAILOR_CORRELATE_HANDOFF_H */
