/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/queue.h"

#include <stdlib.h>

static uint64_t latency_of(const struct tailor_queued *queued)
{
	return queued->record.request.end_ns - queued->record.request.begin_ns;
}

static int by_worth(const void *left, const void *right)
{
	const struct tailor_queued *a = left, *b = right;

	if (a->kept != b->kept)
		return a->kept == TAILOR_KEPT_SLOW ? -1 : 1;
	return (latency_of(a) < latency_of(b)) - (latency_of(a) > latency_of(b));
}

static int by_begin(const void *left, const void *right)
{
	uint64_t a = tailor_queued_begin(left), b = tailor_queued_begin(right);

	return (a > b) - (a < b);
}

size_t tailor_queue_settle(struct tailor_queued *queue, size_t count, uint64_t settled_ns)
{
	size_t settled = 0;

	for (size_t i = 0; i < count; i++) {
		struct tailor_queued moved = queue[i];

		if (moved.record.request.end_ns > settled_ns)
			continue;
		queue[i] = queue[settled];
		queue[settled++] = moved;
	}
	if (settled > 1)
		qsort(queue, settled, sizeof(*queue), by_worth);
	return settled;
}

void tailor_queue_by_begin(struct tailor_queued *queue, size_t count)
{
	if (count > 1)
		qsort(queue, count, sizeof(*queue), by_begin);
}

size_t tailor_queue_overlap(const struct tailor_queued *queue, size_t count, uint64_t before_ns, uint64_t after_ns, uint64_t *ret_end_ns)
{
	uint64_t end_ns = queue[0].record.request.end_ns;
	size_t together = 1;

	while (together < count && tailor_queued_begin(&queue[together]) <= end_ns + after_ns + before_ns) {
		if (queue[together].record.request.end_ns > end_ns)
			end_ns = queue[together].record.request.end_ns;
		together++;
	}
	*ret_end_ns = end_ns + after_ns;
	return together;
}
