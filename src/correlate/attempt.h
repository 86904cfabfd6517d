/* SPDX-License-Identifier: Apache-2.0 */
/* The phases of one exchange with one server, from the proxy's choice of it to the last byte of its answer. */
#ifndef TAILOR_CORRELATE_ATTEMPT_H
#define TAILOR_CORRELATE_ATTEMPT_H

#include "correlate/index.h"
#include "correlate/overlays.h"
#include "correlate/pauses.h"
#include "correlate/spans.h"
#include "correlate/traffic.h"
#include "correlate/stalls.h"

/* One call of tailor_correlate(). */
struct correlation {
	const struct tailor_window *window;
	struct thread_index index;
	struct pauses pauses;
	struct traffic traffic;
	struct overlays overlays;
	struct stalls stalls;
	struct span_list spans;
	uint64_t begin_ns; /* of the timeline: when the first bytes came */
	enum tailor_join join;
	uint64_t server_ns;
};

/* Cuts the attempt whose answer the client got, or the last one when nobody answered: from its begin to end_ns. */
void attempt_answered(struct correlation *correlation, const struct tailor_attempt *attempt, uint64_t end_ns);

/* Cuts an attempt that did not answer, from its begin until the request was given to the next one's server. */
void attempt_left(struct correlation *correlation, const struct tailor_attempt *attempt,
                  const struct tailor_attempt *next);

#endif /* TAILOR_CORRELATE_ATTEMPT_H */
