/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a thread did: for this request, for another one, and how sure that is. */
#ifndef TAILOR_CORRELATE_OWNER_H
#define TAILOR_CORRELATE_OWNER_H

#include "correlate/path.h"

/* The request whose path it is. */
static inline uint64_t owner_request(const struct path *path)
{
	return path->index->window->record.request.id;
}

/* 1 for a request that is known and not that one. */
static inline int owner_is_other(const struct path *path, uint64_t request)
{
	return request != 0 && request != owner_request(path);
}

/* The thread that received it; 0: none that is known. */
static inline uint32_t owner_receiver(const struct path *path)
{
	return path->wire->receive ? path->wire->receive->tid : 0;
}

/* 1 when the thread served others between two positions of its entries. */
static inline int owner_served_others(const struct thread_events *thread, uint32_t from, uint32_t until)
{
	if (from >= until)
		return 0;
	return thread->entries[until - 1].others != (from > 0 ? thread->entries[from - 1].others : 0);
}

/* 1 when the waiting thread is a loop that waited for whatever comes, not for the one that ended the wait. */
int owner_was_idle_wait(const struct path *path, const struct path_return *wait);

/*
 * 1 when who ended the wait, an idle one, of the thread that received the request and then wrote the response, the first of what it
 * wrote, is known: so that one was at this request in the end, whatever it was at before. *ret_since_ns: when another thread last woke it
 * meanwhile, which may have had the request before; 0: none did, and it is the cursor's.
 */
int owner_told_receiver(const struct path *path, const struct path_return *wait, uint64_t *ret_since_ns);

/* 1 when the thread, which received the request, did nothing else between that and the wait, and did not sleep. */
int owner_stayed_awake(const struct path *path, const struct path_return *wait);

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

/*
 * What the cursor's thread last received or wrote for somebody else since it was last woken and since the receive: until then it did not
 * work for this request. NULL when there is no such.
 */
const struct tailor_event *owner_served_other(const struct path *path);

/* 1 when the cursor's thread received the request, has received and written nothing for others between that and the cursor, and does not
 * write for others right after it. */
int owner_stayed(const struct path *path);

/* 1 when the cursor's thread was at this request from low_ns until path->now_ns: it stayed with it, or nobody else's was at the server. */
int owner_worked_alone(const struct path *path, uint64_t low_ns);

/* 1 when the cursor's thread, which has not received the request yet, was woken from its last sleep before the wait when that was on its
 * way: it had nothing else to do. A lock's wait is in the middle of something, and no such sleep. */
int owner_was_woken_for(const struct path *path, const struct stretch *wait);

/*
 * Until when the cursor's thread, one that never receives, may be at what comes after its last write for another before path->now_ns;
 * 0: there is no such.
 */
uint64_t owner_at_other_until(const struct path *path);

/*
 * 1 when the thread was idle before its wake-up (a position among its entries): nobody else's request was at the server for as
 * long as it slept, so it did not sleep in the middle of one and the wake-up gave it work.
 */
int owner_was_idle(const struct path *path, const struct thread_events *thread, uint32_t wakeup);

/* The worker that the receiving thread woke for this request before the window event; NULL when there is none. */
const struct thread_events *owner_woken_worker(const struct path *path, uint32_t event);

/* How sure the join of thread and request is, after the walk. */
enum tailor_join owner_confidence(const struct path *path);

#endif /* TAILOR_CORRELATE_OWNER_H */
