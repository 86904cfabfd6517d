/* SPDX-License-Identifier: Apache-2.0 */
/* What the proxy's worker did: its own scheduling is a hazard, too. */
#ifndef TAILOR_CORRELATE_WORKER_H
#define TAILOR_CORRELATE_WORKER_H

#include "correlate/index.h"
#include "correlate/spans.h"
#include "correlate/stalls.h"

/* What a stretch of the worker's time means; details may be NULL. */
struct worker_story {
	enum tailor_cause working;
	const char *working_detail;
	const char *busy_detail;   /* instead, when it had been on the CPU before the stretch began */
	enum tailor_cause waiting; /* it slept: there was nothing to do for any connection */
	const char *waiting_detail;
};

/* 1 when the worker's scheduling was recorded in this window. */
int worker_recorded(const struct thread_index *index);

/* 1 when it went to sleep within (from_ns, to_ns]. */
int worker_slept(const struct thread_index *index, uint64_t from_ns, uint64_t to_ns);

/*
 * Cuts [from_ns, to_ns] by the worker's scheduling. It must have been on a CPU at to_ns, as it is whenever it writes an
 * event. All is `working` when its scheduling was not recorded.
 */
void worker_cover(const struct thread_index *index, const struct stalls *stalls, struct span_list *spans, uint64_t from_ns,
                  uint64_t to_ns, const struct worker_story *story);

#endif /* TAILOR_CORRELATE_WORKER_H */
