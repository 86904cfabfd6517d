/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a thread did: for this request, for another one, and how sure that is. */
#ifndef TAILOR_CORRELATE_OWNER_H
#define TAILOR_CORRELATE_OWNER_H

#include "correlate/path.h"

/*
 * 1 when what the cursor's thread did at the wait's start had been asked for by the waiting thread, or by the one that
 * received the request: it was handed the work by a chain of wake-ups after the receive. 0 means it merely held
 * something that the waiting thread needed.
 */
int owner_was_handed_work(const struct path *path, const struct path_return *wait);

/* 1 when the waiting thread served other requests between the receive and the wait: it is a loop, and its waits are
 * idle ones. */
int owner_serves_many(const struct path *path, const struct path_return *wait);

/*
 * The worker (a thread that never receives) finished another request within (from_ns, path->now_ns) on the CPU and
 * then took up this one without being woken. Returns that request and *ret_ns, when it was done with it; 0 when
 * there is no proof of such.
 */
uint64_t owner_finished_other(const struct path *path, uint64_t from_ns, uint64_t *ret_ns);

/*
 * What the receiving thread served before it received this request, while this request was there already: returns the
 * other request and sets path->busy_from_ns, busy_until_ns and before_busy; 0 when there is no proof of such.
 */
uint64_t owner_was_busy(struct path *path);

/* The worker that the receiving thread woke for this request before the window event; NULL when there is none. */
const struct thread_events *owner_woken_worker(const struct path *path, uint32_t event);

/* How sure the join of thread and request is, after the walk. */
enum tailor_join owner_confidence(const struct path *path);

#endif /* TAILOR_CORRELATE_OWNER_H */
