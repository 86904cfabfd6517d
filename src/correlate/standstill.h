/* SPDX-License-Identifier: Apache-2.0 */
/* Why a server stood still, where a request was moved away from it because it did: as far as that was recorded. */
#ifndef TAILOR_CORRELATE_STANDSTILL_H
#define TAILOR_CORRELATE_STANDSTILL_H

#include "correlate/attempt.h"

struct standstill {
	enum tailor_failover_reason reason; /* GC, SAFEPOINT or STALL, or it is no standstill */
	uint64_t start_ns;         /* 0: not recorded */
	const struct pause *pause; /* of the JVM; NULL: none was recorded */
};

/* Of the process from which the request was moved by the attempt `next`, after it had been sent there at send_ns. */
struct standstill standstill_before(const struct correlation *correlation, uint32_t pid, uint64_t send_ns,
                                    const struct tailor_attempt *next);

/* What the server did, to stand behind its name: "paused (Serial young)", "stopped its threads (PrintThreads)", "was stopped by a signal". */
void standstill_describe(const struct standstill *standstill, char *buffer, size_t size);

#endif /* TAILOR_CORRELATE_STANDSTILL_H */
