/* SPDX-License-Identifier: Apache-2.0 */
/* Two stores compared: what can be told of both, and an interval for how far they differ (Efron's percentile bootstrap, over blocks of time). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary.h"

#define SECOND_NS UINT64_C(1000000000)
#define BLOCKS_MAX 1000
#define BLOCKS_MIN 10      /* fewer tell nothing of how much they vary */
#define BLOCKS_USED_MIN 5  /* with requests in them */
#define BEYOND_MIN 10      /* requests beyond a quantile */
#define SEED UINT64_C(0x7461696c6f72)

static const double quantiles[] = {0.5, 0.9, 0.99};
#define QUANTILES 3
#define STATS (1 + 2 * QUANTILES + TAILOR_CAUSES)

/* One kind of requests, slow or ordinary, by latency. */
struct ranked {
	uint64_t latency_ns;
	uint32_t block;
};

struct sample {
	size_t blocks;
	uint64_t block_ns;
	struct ranked *ranked[2]; /* slow, ordinary */
	size_t count[2];
	size_t used[2];                    /* blocks with any of them */
	double (*causes_ns)[TAILOR_CAUSES]; /* of slow requests, for each block */
	double *slow;                      /* slow requests in each block, those without a timeline included */
	double *stored;                    /* those with one */
	uint32_t *weights;                 /* how often each block is drawn */
};

static int by_latency(const void *a, const void *b)
{
	const struct ranked *left = a, *right = b;

	if (left->latency_ns != right->latency_ns)
		return left->latency_ns < right->latency_ns ? -1 : 1;
	return (left->block > right->block) - (left->block < right->block);
}

static void sample_free(struct sample *sample)
{
	free(sample->ranked[0]);
	free(sample->ranked[1]);
	free(sample->causes_ns);
	free(sample->slow);
	free(sample->stored);
	free(sample->weights);
}

static uint64_t first_wall(const struct tailor_summary *summary, uint64_t *ret_last)
{
	uint64_t first = UINT64_MAX;

	*ret_last = 0;
	for (size_t i = 0; i < summary->count; i++) {
		uint64_t wall = summary->requests[i].wall_ns;

		if (wall == 0)
			continue;
		first = wall < first ? wall : first;
		*ret_last = wall > *ret_last ? wall : *ret_last;
	}
	return first;
}

static void fill(struct sample *sample, const struct tailor_summary *summary, uint64_t first)
{
	for (size_t i = 0; i < summary->count; i++) {
		const struct tailor_summary_request *request = &summary->requests[i];
		size_t block = request->wall_ns == 0 ? 0 : (size_t)((request->wall_ns - first) / sample->block_ns);
		int kind = request->ordinary != 0;

		sample->ranked[kind][sample->count[kind]++] = (struct ranked){request->latency_ns, (uint32_t)block};
		sample->slow[block] += (double)request->omitted + !kind;
		if (kind)
			continue;
		sample->stored[block]++;
		for (int cause = 0; cause < TAILOR_CAUSES; cause++)
			sample->causes_ns[block][cause] += (double)request->causes_ns[cause];
	}
}

static void count_used(struct sample *sample)
{
	for (int kind = 0; kind < 2; kind++) {
		memset(sample->weights, 0, sample->blocks * sizeof(*sample->weights));
		for (size_t i = 0; i < sample->count[kind]; i++)
			sample->used[kind] += sample->weights[sample->ranked[kind][i].block]++ == 0;
		if (sample->count[kind] > 0)
			qsort(sample->ranked[kind], sample->count[kind], sizeof(struct ranked), by_latency);
	}
	for (size_t block = 0; block < sample->blocks; block++)
		sample->weights[block] = 1;
}

static int sample_make(const struct tailor_summary *summary, struct sample *sample)
{
	uint64_t last, first = first_wall(summary, &last), length = first <= last ? last - first : 0;

	*sample = (struct sample){.block_ns = length / BLOCKS_MAX + 1};
	sample->block_ns = sample->block_ns > SECOND_NS ? sample->block_ns : SECOND_NS;
	sample->blocks = (size_t)(length / sample->block_ns) + 1;
	for (int kind = 0; kind < 2; kind++)
		sample->ranked[kind] = calloc(summary->count + 1, sizeof(struct ranked));
	sample->causes_ns = calloc(sample->blocks, sizeof(*sample->causes_ns));
	sample->slow = calloc(sample->blocks, sizeof(*sample->slow));
	sample->stored = calloc(sample->blocks, sizeof(*sample->stored));
	sample->weights = calloc(sample->blocks, sizeof(*sample->weights));
	if (!sample->ranked[0] || !sample->ranked[1] || !sample->causes_ns || !sample->slow || !sample->stored ||
	    !sample->weights)
		return -ENOMEM;
	fill(sample, summary, first);
	count_used(sample);
	return 0;
}

/* The quantiles of the requests as often as their blocks were drawn. */
static void weigh_quantiles(const struct sample *sample, int kind, double ret[QUANTILES])
{
	const struct ranked *ranked = sample->ranked[kind];
	uint64_t total = 0, passed = 0;
	size_t next = 0;

	for (size_t i = 0; i < sample->count[kind]; i++)
		total += sample->weights[ranked[i].block];
	for (int i = 0; i < QUANTILES; i++)
		ret[i] = (double)NAN;
	for (size_t i = 0; i < sample->count[kind]; i++) {
		passed += sample->weights[ranked[i].block];
		while (next < QUANTILES && passed > 0 && (double)passed >= quantiles[next] * (double)total)
			ret[next++] = (double)ranked[i].latency_ns;
	}
}

static void measure(const struct sample *sample, double ret[STATS])
{
	double slow = 0, stored = 0, *causes = ret + 1 + 2 * QUANTILES;

	for (int cause = 0; cause < TAILOR_CAUSES; cause++)
		causes[cause] = 0;
	for (size_t block = 0; block < sample->blocks; block++) {
		double weight = sample->weights[block];

		if (sample->weights[block] == 0)
			continue;
		slow += weight * sample->slow[block];
		stored += weight * sample->stored[block];
		for (int cause = 0; cause < TAILOR_CAUSES; cause++)
			causes[cause] += weight * sample->causes_ns[block][cause];
	}
	for (int cause = 0; cause < TAILOR_CAUSES; cause++)
		causes[cause] = stored > 0 ? causes[cause] / stored : (double)NAN;
	/* Time is known in whole stretches only: of a few of them, or of one request, a rate would be far off. */
	ret[0] = sample->blocks < BLOCKS_MIN ? (double)NAN
	                                     : slow / ((double)sample->blocks * (double)sample->block_ns / (double)SECOND_NS);
	weigh_quantiles(sample, 0, ret + 1);
	weigh_quantiles(sample, 1, ret + 1 + QUANTILES);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static void redraw(struct sample *sample, uint64_t *state)
{
	memset(sample->weights, 0, sample->blocks * sizeof(*sample->weights));
	for (size_t i = 0; i < sample->blocks; i++)
		sample->weights[draw(state) % sample->blocks]++;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Whether enough is stored for an interval of that statistic. */
static int is_enough(const struct sample *sample, size_t stat)
{
	int kind = stat > QUANTILES && stat <= 2 * QUANTILES;
	double part = stat == 0 || stat > 2 * QUANTILES ? 0 : quantiles[(stat - 1) % QUANTILES];

	return sample->blocks >= BLOCKS_MIN && sample->used[kind] >= BLOCKS_USED_MIN &&
	       (1 - part) * (double)sample->count[kind] >= BEYOND_MIN - 1e-9;
}

/* `column` is the differences of one statistic, which are put in order. */
static void interval(double *column, struct tailor_difference *difference)
{
	size_t known = 0;

	for (size_t i = 0; i < TAILOR_COMPARE_RESAMPLES; i++) {
		if (!isnan(column[i]))
			column[known++] = column[i];
	}
	if (known < TAILOR_COMPARE_RESAMPLES * 95 / 100)
		return; /* most draws have no such request at all */
	qsort(column, known, sizeof(*column), by_value);
	difference->low = column[known * 25 / 1000];
	difference->high = column[known - 1 - known * 25 / 1000];
}

static void describe(size_t stat, struct tailor_difference *difference)
{
	if (stat == 0) {
		difference->measure = TAILOR_MEASURE_RATE;
	} else if (stat <= 2 * QUANTILES) {
		difference->measure = stat <= QUANTILES ? TAILOR_MEASURE_SLOW : TAILOR_MEASURE_ORDINARY;
		difference->quantile = quantiles[(stat - 1) % QUANTILES];
	} else {
		difference->measure = TAILOR_MEASURE_CAUSE;
		difference->cause = (enum tailor_cause)(stat - 1 - 2 * QUANTILES);
	}
}

static int resample(struct sample *a, struct sample *b, const double before[STATS], const double after[STATS],
                    struct tailor_difference *differences)
{
	double(*draws)[TAILOR_COMPARE_RESAMPLES] = calloc(STATS, sizeof(*draws));
	uint64_t state = SEED;
	double left[STATS], right[STATS];
	int count = 0;

	if (!draws)
		return -ENOMEM;
	for (size_t i = 0; i < TAILOR_COMPARE_RESAMPLES; i++) {
		redraw(a, &state);
		redraw(b, &state);
		measure(a, left);
		measure(b, right);
		for (size_t stat = 0; stat < STATS; stat++)
			draws[stat][i] = right[stat] - left[stat];
	}
	for (size_t stat = 0; stat < STATS; stat++) {
		struct tailor_difference *difference = &differences[count];

		/* Not one request in either had this cause. */
		if (stat > 2 * QUANTILES && !(before[stat] > 0) && !(after[stat] > 0))
			continue;
		*difference = (struct tailor_difference){
		        .a = before[stat], .b = after[stat], .low = (double)NAN, .high = (double)NAN};
		describe(stat, difference);
		if (is_enough(a, stat) && is_enough(b, stat))
			interval(draws[stat], difference);
		count++;
	}
	free(draws);
	return count;
}

int tailor_compare(const struct tailor_summary *a, const struct tailor_summary *b,
                   struct tailor_difference differences[TAILOR_DIFFERENCES_MAX])
{
	struct sample left = {0}, right = {0};
	double before[STATS], after[STATS];
	int result = sample_make(a, &left);

	if (result == 0)
		result = sample_make(b, &right);
	if (result == 0) {
		measure(&left, before);
		measure(&right, after);
		result = resample(&left, &right, before, after, differences);
	}
	sample_free(&left);
	sample_free(&right);
	return result;
}
