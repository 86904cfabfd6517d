/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are to have a timeline: which of them first, and which together. Pure. */
#ifndef TAILOR_OBSERVER_QUEUE_H
#define TAILOR_OBSERVER_QUEUE_H

#include <stddef.h>
#include <tailor/window.h>

struct tailor_queued {
	struct tailor_record record;
	size_t worker;
	enum tailor_why_kept kept;
	int suspected; /* slow only if it came before the proxy could read it, which the timeline tells */
};

/* From when on it may have been there: the proxy may have been held up when it came. */
static inline uint64_t tailor_queued_begin(const struct tailor_queued *queued)
{
	const struct tailor_record *record = &queued->record;

	return record->late_from_ns && record->late_from_ns < record->request.begin_ns ? record->late_from_ns : record->request.begin_ns;
}

/*
 * Moves those that ended at settled_ns or before to the front, the most worth explaining first: slow ones before baseline ones, then by
 * latency, the slowest first. Returns how many they are.
 */
size_t tailor_queue_settle(struct tailor_queued *queue, size_t count, uint64_t settled_ns);

/* Orders by when they may have begun. */
void tailor_queue_by_begin(struct tailor_queued *queue, size_t count);

/*
 * Of requests ordered by that: how many from the first on have windows [begin - before_ns, end + after_ns] that one
 * stretch without a hole covers, and its last moment, which is that of the latest end.
 */
size_t tailor_queue_overlap(const struct tailor_queued *queue, size_t count, uint64_t before_ns, uint64_t after_ns, uint64_t *ret_end_ns);

#endif /* TAILOR_OBSERVER_QUEUE_H */
