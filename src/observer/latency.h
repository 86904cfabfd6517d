/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/observer only: how long requests took, counted by one thread and read by any. */
#ifndef TAILOR_OBSERVER_LATENCY_H
#define TAILOR_OBSERVER_LATENCY_H

#include <stdatomic.h>

#include "observer/observer.h"

/* Zeroed before first use. */
struct tailor_latency {
	atomic_uint_fast64_t bucket[TAILOR_OBSERVER_BUCKETS + 1];
	atomic_uint_fast64_t sum_ns;
};

void tailor_latency_count(struct tailor_latency *latency, uint64_t ns);
/* A snapshot; buckets and sum may be some requests apart. */
void tailor_latency_read(struct tailor_latency *latency, struct tailor_observer_latency *ret_latency);

#endif /* TAILOR_OBSERVER_LATENCY_H */
