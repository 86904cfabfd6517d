/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/latency.h"

#include "base/clock.h"

#define US(n) ((n) * TAILOR_NS_PER_US)
#define MS(n) ((n) * TAILOR_NS_PER_MS)

/* Finer where a promise on a search's tail is made. */
const uint64_t tailor_observer_bucket_ns[TAILOR_OBSERVER_BUCKETS] = {
        US(100), US(250), US(500), MS(1),   MS(2),   MS(5),    MS(10),   MS(20),   MS(50),
        MS(100), MS(150), MS(250), MS(500), MS(1000), MS(2500), MS(5000), MS(10000),
};

/* There is one writer: nothing needs to be locked. */
static void add(atomic_uint_fast64_t *counter, uint64_t amount)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

void tailor_latency_count(struct tailor_latency *latency, uint64_t ns)
{
	size_t i = 0;

	while (i < TAILOR_OBSERVER_BUCKETS && ns > tailor_observer_bucket_ns[i])
		i++;
	add(&latency->bucket[i], 1);
	add(&latency->sum_ns, ns);
}

void tailor_latency_read(struct tailor_latency *latency, struct tailor_observer_latency *ret_latency)
{
	for (size_t i = 0; i <= TAILOR_OBSERVER_BUCKETS; i++)
		ret_latency->bucket[i] = atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);
	ret_latency->sum_ns = atomic_load_explicit(&latency->sum_ns, memory_order_relaxed);
}
