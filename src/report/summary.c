/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "report/summary.h"

int tailor_summary_add(struct tailor_summary *summary, const struct tailor_timeline *timeline)
{
	struct tailor_summary_request *request;

	if (summary->count == summary->capacity) {
		size_t capacity = summary->capacity ? summary->capacity * 2 : 64;
		struct tailor_summary_request *more = reallocarray(summary->requests, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		summary->requests = more;
		summary->capacity = capacity;
	}
	request = &summary->requests[summary->count++];
	*request = (struct tailor_summary_request){
	        .id = timeline->request.id,
	        .wall_ns = timeline->request.wall_ns,
	        .latency_ns = timeline->request.end_ns - timeline->request.begin_ns,
	        .omitted = timeline->omitted,
	        .dominant = timeline->dominant,
	        .ordinary = timeline->kept == TAILOR_KEPT_BASELINE,
	};
	for (size_t i = 0; i < timeline->span_count; i++)
		request->causes_ns[timeline->spans[i].cause] += timeline->spans[i].end_ns - timeline->spans[i].start_ns;
	return 0;
}

static int slowest_first(const void *a, const void *b)
{
	const struct tailor_summary_request *left = a, *right = b;

	if (left->latency_ns != right->latency_ns)
		return left->latency_ns > right->latency_ns ? -1 : 1;
	return (left->wall_ns > right->wall_ns) - (left->wall_ns < right->wall_ns);
}

void tailor_summary_cut(struct tailor_summary *summary, uint64_t slowest)
{
	if (summary->count <= slowest)
		return;
	qsort(summary->requests, summary->count, sizeof(*summary->requests), slowest_first);
	summary->left_out += summary->count - slowest;
	summary->count = slowest;
}

void tailor_summary_free(struct tailor_summary *summary)
{
	free(summary->requests);
	*summary = (struct tailor_summary){0};
}

int tailor_summary_compare_u64(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

uint64_t tailor_summary_quantile(const uint64_t *sorted, size_t count, double part)
{
	double wanted = part * (double)count;
	size_t rank = (size_t)wanted;

	if (count == 0)
		return 0;
	rank += (double)rank < wanted;
	return sorted[rank == 0 ? 0 : (rank < count ? rank : count) - 1];
}

static int most_first(const void *a, const void *b)
{
	const struct tailor_cause_sum *left = a, *right = b;

	if (left->total_ns != right->total_ns)
		return left->total_ns > right->total_ns ? -1 : 1;
	return (int)left->cause - (int)right->cause;
}

static void sum_cause(const struct tailor_summary *summary, struct tailor_cause_sum *sum, uint64_t *values)
{
	for (size_t i = 0; i < summary->count; i++) {
		const struct tailor_summary_request *request = &summary->requests[i];
		uint64_t ns = request->causes_ns[sum->cause];

		if (request->ordinary)
			continue;
		sum->dominant_in += request->dominant == sum->cause;
		if (ns == 0)
			continue;
		values[sum->seen_in++] = ns;
		sum->total_ns += ns;
		if (ns > sum->max_ns) {
			sum->max_ns = ns;
			sum->worst = request->id;
		}
	}
	if (sum->seen_in > 0)
		qsort(values, sum->seen_in, sizeof(*values), tailor_summary_compare_u64);
	sum->median_ns = tailor_summary_quantile(values, sum->seen_in, 0.5);
}

int tailor_summary_by_cause(const struct tailor_summary *summary, struct tailor_cause_sum sums[TAILOR_CAUSES],
                            uint64_t *ret_requests, uint64_t *ret_total_ns)
{
	uint64_t *values = calloc(summary->count + 1, sizeof(*values));
	int count = 0;

	if (!values)
		return -ENOMEM;
	*ret_requests = *ret_total_ns = 0;
	for (size_t i = 0; i < summary->count; i++) {
		*ret_requests += !summary->requests[i].ordinary;
		*ret_total_ns += summary->requests[i].ordinary ? 0 : summary->requests[i].latency_ns;
	}
	for (int cause = 0; cause < TAILOR_CAUSES; cause++) {
		sums[count] = (struct tailor_cause_sum){.cause = (enum tailor_cause)cause};
		sum_cause(summary, &sums[count], values);
		count += sums[count].seen_in > 0;
	}
	free(values);
	qsort(sums, (size_t)count, sizeof(*sums), most_first);
	return count;
}
