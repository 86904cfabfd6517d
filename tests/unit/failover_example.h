/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_TESTS_UNIT_FAILOVER_EXAMPLE_H
#define TAILOR_TESTS_UNIT_FAILOVER_EXAMPLE_H

#include <tailor/failover.h>

/* A collection of 136 ms, with all fields in use but `incomplete`. */
static inline struct tailor_failover failover_example(uint64_t begin_ns)
{
	return (struct tailor_failover){
	        .begin_ns = begin_ns,
	        .end_ns = begin_ns + 136000000,
	        .wall_ns = UINT64_C(1769860800123456789),
	        .server = "a",
	        .cause = "Allocation Failure",
	        .kind = TAILOR_STOP_GC,
	        .noticed = TAILOR_STOP_SAFEPOINT,
	        .workers = 2,
	        .in_flight = 8,
	        .moved = 7,
	        .not_moved = 1,
	        .why_not = "begun",
	        .noticed_ns = 31000,
	        .reacted_ns = 412000,
	        .saved_ns = 900000000,
	        .saved_requests = 7,
	};
}

#endif /* TAILOR_TESTS_UNIT_FAILOVER_EXAMPLE_H */
