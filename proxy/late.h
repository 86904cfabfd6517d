/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a worker reads now may have been there for a while, because the worker itself did not run. */
#ifndef TAILOR_PROXY_LATE_H
#define TAILOR_PROXY_LATE_H

#include <tailor/late.h>

#include "proxy/worker.h"

/*
 * Since when what is read for the first time in this turn may have been there, as the worker was kept from running then; 0: it was not.
 * What came with a connection that was accepted in the turn before is read in this one. Costs a load in the ordinary case.
 */
static inline uint64_t late_from_ns(const struct worker *worker)
{
	const struct tailor_late *late = worker->late;
	uint64_t until_ns = late ? __atomic_load_n(&late->until_ns, __ATOMIC_RELAXED) : 0;

	/* It had looked at the clock twice since. */
	if (until_ns <= worker->before_ns)
		return 0;
	return late->tid == worker->tid ? late->from_ns : 0;
}

#endif /* TAILOR_PROXY_LATE_H */
