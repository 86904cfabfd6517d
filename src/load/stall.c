/* SPDX-License-Identifier: Apache-2.0 */
#include "load/stall.h"

#include <string.h>

static int apart(const struct tailor_stall_episode *earlier, uint64_t begin_ns)
{
	return earlier->end_ns + TAILOR_STALL_GAP_NS <= begin_ns;
}

static void count_episode(struct tailor_stalls *sum, const struct tailor_stall_episode *episode)
{
	uint64_t length_ns = episode->end_ns - episode->begin_ns;

	sum->episodes++;
	sum->total_ns += length_ns;
	if (length_ns > sum->longest_ns)
		sum->longest_ns = length_ns;
}

static void remove_episodes(struct tailor_stall_list *list, size_t at, size_t count)
{
	memmove(&list->open[at], &list->open[at + count], (list->count - at - count) * sizeof(list->open[0]));
	list->count -= count;
}

void tailor_stall_list_add(struct tailor_stall_list *list, uint64_t begin_ns, uint64_t end_ns)
{
	struct tailor_stall_episode grown = {.begin_ns = begin_ns, .end_ns = end_ns};
	size_t first = 0, last;

	if (begin_ns >= end_ns)
		return;
	while (first < list->count && apart(&list->open[first], begin_ns))
		first++;
	/* All up to `last` are near: the longer it gets, the more it takes in. */
	for (last = first; last < list->count && !apart(&grown, list->open[last].begin_ns); last++) {
		if (list->open[last].begin_ns < grown.begin_ns)
			grown.begin_ns = list->open[last].begin_ns;
		if (list->open[last].end_ns > grown.end_ns)
			grown.end_ns = list->open[last].end_ns;
	}
	if (last > first) {
		list->open[first] = grown;
		remove_episodes(list, first + 1, last - first - 1);
		return;
	}
	if (list->count == TAILOR_STALL_OPEN) {
		if (first == 0) {
			count_episode(&list->closed, &grown);
			return;
		}
		count_episode(&list->closed, &list->open[0]);
		remove_episodes(list, 0, 1);
		first--;
	}
	memmove(&list->open[first + 1], &list->open[first], (list->count - first) * sizeof(list->open[0]));
	list->open[first] = grown;
	list->count++;
}

struct tailor_stalls tailor_stall_list_sum(const struct tailor_stall_list *list)
{
	struct tailor_stalls sum = list->closed;

	for (size_t i = 0; i < list->count; i++)
		count_episode(&sum, &list->open[i]);
	sum.known = 1;
	return sum;
}
