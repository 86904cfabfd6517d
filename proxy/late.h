/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a worker reads now may have been there for a while, because the worker itself did not run. */
#ifndef TAILOR_PROXY_LATE_H
#define TAILOR_PROXY_LATE_H

#include <tailor/late.h>

#include "proxy/worker.h"

/* How long after it runs again a worker may still read what had come before: it has had a CPU since, but perhaps only for moments. */
#define LATE_READ_NS (10 * TAILOR_NS_PER_MS)

/*
 * Since when what is read from the client for the first time in this turn may have been there, as the worker was kept from running then; 0:
 * it was not. What came with a connection that was accepted in the turn before is read in this one; some turns later only what is read
 * from a client that has had no other request since. Costs a load in the ordinary case.
 */
static inline uint64_t late_from_ns(const struct worker *worker, const struct client *client)
{
	const struct tailor_late *late = worker->late;
	uint64_t until_ns = late ? __atomic_load_n(&late->until_ns, __ATOMIC_RELAXED) : 0;

	/* It had looked at the clock twice since. */
	if (until_ns <= worker->before_ns && (worker->now_ns - until_ns > LATE_READ_NS || client->ended_ns >= until_ns))
		return 0;
	return late->tid == worker->tid ? late->from_ns : 0;
}

#endif /* TAILOR_PROXY_LATE_H */
