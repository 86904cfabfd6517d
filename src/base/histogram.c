/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Log-linear buckets: each power of two from 2^10 on is cut into 1024 equal buckets, so that a bucket is at most 1/1024
 * of its values wide and its middle at most 0.05% away from any of them. Values below 2048 have a bucket each.
 */
#define STEP_BITS 10
#define VALUE_MAX (UINT64_C(3600) * 1000 * 1000 * 1000)
#define BUCKETS ((31u << STEP_BITS) + (UINT64_C(2) << STEP_BITS))
_Static_assert(VALUE_MAX < UINT64_C(1) << (STEP_BITS + 32), "the last bucket is above one hour");

struct tailor_histogram {
	uint64_t count;
	uint64_t clipped;
	uint64_t min, max;
	unsigned __int128 sum;
	uint64_t bucket[BUCKETS];
};

size_t tailor_histogram_bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < UINT64_C(2) << STEP_BITS)
		return (size_t)ns;
	shift = 63u - (unsigned int)__builtin_clzll(ns) - STEP_BITS;
	return ((size_t)shift << STEP_BITS) + (size_t)(ns >> shift);
}

static uint64_t middle_of(size_t bucket)
{
	unsigned int shift;

	if (bucket < UINT64_C(2) << STEP_BITS)
		return bucket;
	shift = (unsigned int)(bucket >> STEP_BITS) - 1;
	return ((uint64_t)(bucket - ((size_t)shift << STEP_BITS)) << shift) + (UINT64_C(1) << (shift - 1));
}

struct tailor_histogram *tailor_histogram_new(void)
{
	struct tailor_histogram *histogram = malloc(sizeof(*histogram));

	if (histogram)
		tailor_histogram_reset(histogram);
	return histogram;
}

void tailor_histogram_free(struct tailor_histogram *histogram)
{
	free(histogram);
}

void tailor_histogram_reset(struct tailor_histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->min = UINT64_MAX;
}

void tailor_histogram_record(struct tailor_histogram *histogram, uint64_t ns)
{
	if (ns > VALUE_MAX) {
		histogram->clipped++;
		ns = VALUE_MAX;
	}
	histogram->bucket[tailor_histogram_bucket_of(ns)]++;
	histogram->count++;
	histogram->sum += ns;
	if (ns < histogram->min)
		histogram->min = ns;
	if (ns > histogram->max)
		histogram->max = ns;
}

void tailor_histogram_merge(struct tailor_histogram *into, const struct tailor_histogram *from)
{
	if (from->count == 0)
		return;
	/* Buckets outside of from's range are empty. */
	for (size_t i = tailor_histogram_bucket_of(from->min); i <= tailor_histogram_bucket_of(from->max); i++)
		into->bucket[i] += from->bucket[i];
	into->count += from->count;
	into->clipped += from->clipped;
	into->sum += from->sum;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t tailor_histogram_count(const struct tailor_histogram *histogram)
{
	return histogram->count;
}

uint64_t tailor_histogram_min(const struct tailor_histogram *histogram)
{
	return histogram->count ? histogram->min : 0;
}

uint64_t tailor_histogram_max(const struct tailor_histogram *histogram)
{
	return histogram->max;
}

double tailor_histogram_mean(const struct tailor_histogram *histogram)
{
	return histogram->count ? (double)histogram->sum / (double)histogram->count : 0;
}

uint64_t tailor_histogram_clipped(const struct tailor_histogram *histogram)
{
	return histogram->clipped;
}

uint64_t tailor_histogram_percentile(const struct tailor_histogram *histogram, double percent)
{
	uint64_t rank, seen = 0;

	if (histogram->count == 0)
		return 0;
	/* 99.9% of 1000 is rank 999, also when the product comes out a rounding error above it. */
	rank = (uint64_t)ceil(percent / 100 * (double)histogram->count * (1 - 1e-12));
	if (rank <= 1)
		return histogram->min;
	if (rank >= histogram->count)
		return histogram->max;
	for (size_t i = tailor_histogram_bucket_of(histogram->min);; i++) {
		uint64_t value;

		seen += histogram->bucket[i];
		if (seen < rank)
			continue;
		value = middle_of(i);
		if (value < histogram->min)
			return histogram->min;
		return value > histogram->max ? histogram->max : value;
	}
}

static uint64_t count_below(const struct tailor_histogram *histogram, uint64_t ns)
{
	uint64_t below = 0;

	if (ns > histogram->max)
		return histogram->count;
	for (size_t i = 0; i < tailor_histogram_bucket_of(ns); i++)
		below += histogram->bucket[i];
	return below;
}

uint64_t tailor_histogram_between(const struct tailor_histogram *histogram, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t from = count_below(histogram, from_ns), to = count_below(histogram, to_ns);

	return to > from ? to - from : 0;
}

int tailor_histogram_next(const struct tailor_histogram *histogram, size_t *position, uint64_t *ret_ns, uint64_t *ret_count)
{
	if (histogram->count == 0)
		return 0;
	if (*position < tailor_histogram_bucket_of(histogram->min))
		*position = tailor_histogram_bucket_of(histogram->min);
	for (; *position <= tailor_histogram_bucket_of(histogram->max); ++*position) {
		if (histogram->bucket[*position] == 0)
			continue;
		*ret_ns = middle_of(*position);
		*ret_count = histogram->bucket[*position];
		++*position;
		return 1;
	}
	return 0;
}
