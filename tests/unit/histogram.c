/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/histogram.h"

#define SAMPLES 100000
#define HOUR_NS UINT64_C(3600000000000)

/* Besides each half per cent. */
static const double percents[] = {0.001, 0.01, 0.1, 99.9, 99.95, 99.99, 99.999};

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* In (0, 1]. */
static double uniform(void)
{
	return ((double)(next_random() >> 11) + 1) / 9007199254740992.0;
}

static double any_octave(void)
{
	return 1e3 * pow(3.6e9, uniform());
}

static double exponential(void)
{
	return 1e3 - log(uniform()) * 2e6;
}

static double lognormal(void)
{
	return 1e3 + 5e5 * exp(1.5 * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
}

static double pareto(void)
{
	return fmin(1e3 / pow(uniform(), 1 / 0.8), (double)HOUR_NS);
}

/* Mostly fast, one in fifty stopped by a collection. */
static double two_humps(void)
{
	return uniform() < 0.02 ? 140e6 + 10e6 * uniform() : 1e6 + 2e5 * uniform();
}

static double even(void)
{
	return 1e3 + 2e7 * uniform();
}

/* One in ten thousand is ten thousand times as slow. */
static double far_outliers(void)
{
	return (uniform() < 1e-4 ? 1e4 : 1) * (1e5 + 1e4 * uniform());
}

static double few_values(void)
{
	return 1e3 * (double)(1 + next_random() % 5);
}

static double constant(void)
{
	return 123456789;
}

static double (*const distributions[])(void) = {even,      any_octave,   exponential, lognormal, pareto,
                                                two_humps, far_outliers, few_values,  constant};
#define DISTRIBUTIONS (sizeof(distributions) / sizeof(distributions[0]))

/* 1 to SAMPLES, of each order of magnitude as many. */
static size_t any_size(void)
{
	size_t size = (size_t)pow(SAMPLES, uniform());

	return size < 1 ? 1 : size;
}

static int by_value(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return a < b ? -1 : a > b;
}

static uint64_t percentile_of(const uint64_t *sorted, uint64_t count, double percent)
{
	/* Per mille of per cent in whole numbers: an independent way to the rank. */
	uint64_t scaled = (uint64_t)llround(percent * 1000) * count;
	uint64_t rank = (scaled + 99999) / 100000;

	return sorted[rank ? rank - 1 : 0];
}

static void check_percentile(const struct tailor_histogram *histogram, const uint64_t *sorted, size_t count,
                             double percent, uint64_t round)
{
	double raw = (double)percentile_of(sorted, count, percent);
	double told = (double)tailor_histogram_percentile(histogram, percent);

	if (fabs(told / raw - 1) > 0.001)
		fail_msg("round %d, %zu samples, p%g: %.0f for %.0f", (int)round, count, percent, told, raw);
}

static void percentiles_are_those_of_the_raw_samples_within_a_thousandth(void **state)
{
	uint64_t *samples = malloc(SAMPLES * sizeof(*samples));
	struct tailor_histogram *histogram = tailor_histogram_new();

	(void)state;
	assert_non_null(samples);
	assert_non_null(histogram);
	for (uint64_t round = 0; round < 8 * DISTRIBUTIONS; round++) {
		double sum = 0;
		size_t count;

		random_state = (round + 1) * UINT64_C(0x9e3779b97f4a7c15);
		/* Each distribution once with one sample and once with all. */
		count = round < DISTRIBUTIONS ? 1 : round < 2 * DISTRIBUTIONS ? SAMPLES : any_size();
		tailor_histogram_reset(histogram);
		for (size_t i = 0; i < count; i++) {
			samples[i] = (uint64_t)distributions[round % DISTRIBUTIONS]();
			sum += (double)samples[i];
			tailor_histogram_record(histogram, samples[i]);
		}
		qsort(samples, count, sizeof(*samples), by_value);
		assert_int_equal(tailor_histogram_count(histogram), count);
		assert_int_equal(tailor_histogram_min(histogram), samples[0]);
		assert_int_equal(tailor_histogram_max(histogram), samples[count - 1]);
		assert_true(fabs(tailor_histogram_mean(histogram) * (double)count / sum - 1) < 1e-9);
		for (int half = 0; half <= 200; half++)
			check_percentile(histogram, samples, count, half / 2.0, round);
		for (size_t p = 0; p < sizeof(percents) / sizeof(percents[0]); p++)
			check_percentile(histogram, samples, count, percents[p], round);
	}
	tailor_histogram_free(histogram);
	free(samples);
}

static void one_value_is_told_within_a_thousandth_at_every_bucket_edge(void **state)
{
	struct tailor_histogram *histogram = tailor_histogram_new();

	(void)state;
	assert_non_null(histogram);
	/* Three values, of which the middle one is neither minimum nor maximum. */
	for (int power = 10; power < 42; power++) {
		for (int64_t offset = -2; offset <= 2; offset++) {
			uint64_t value = (UINT64_C(1) << power) + (uint64_t)offset, told;

			if (value > HOUR_NS)
				continue;
			tailor_histogram_reset(histogram);
			tailor_histogram_record(histogram, 0);
			tailor_histogram_record(histogram, value);
			tailor_histogram_record(histogram, HOUR_NS);
			told = tailor_histogram_percentile(histogram, 50);
			assert_true(fabs((double)told / (double)value - 1) <= 0.001);
			if (value < 2048)
				assert_int_equal(told, value);
		}
	}
	tailor_histogram_free(histogram);
}

static void a_merge_is_the_same_as_recording_everything_in_one(void **state)
{
	struct tailor_histogram *one = tailor_histogram_new(), *other = tailor_histogram_new(),
	                        *all = tailor_histogram_new();
	struct tailor_histogram *empty = tailor_histogram_new();

	(void)state;
	assert_true(one && other && all && empty);
	random_state = 7;
	for (int i = 0; i < SAMPLES; i++) {
		uint64_t value = (uint64_t)(i % 3 ? lognormal() : any_octave() * 1.2);

		tailor_histogram_record(i % 2 ? one : other, value);
		tailor_histogram_record(all, value);
	}
	tailor_histogram_merge(one, empty);
	tailor_histogram_merge(one, other);
	tailor_histogram_merge(empty, one);
	assert_int_equal(tailor_histogram_count(empty), SAMPLES);
	assert_int_equal(tailor_histogram_min(empty), tailor_histogram_min(all));
	assert_int_equal(tailor_histogram_max(empty), tailor_histogram_max(all));
	assert_true(tailor_histogram_mean(empty) == tailor_histogram_mean(all));
	assert_int_equal(tailor_histogram_clipped(empty), tailor_histogram_clipped(all));
	assert_true(tailor_histogram_clipped(all) > 0);
	for (double percent = 0; percent <= 100; percent += 0.1)
		assert_int_equal(tailor_histogram_percentile(empty, percent),
		                 tailor_histogram_percentile(all, percent));
	tailor_histogram_free(one);
	tailor_histogram_free(other);
	tailor_histogram_free(all);
	tailor_histogram_free(empty);
}

static void assert_same_buckets(const struct tailor_histogram *one, const struct tailor_histogram *other)
{
	size_t one_position = 0, other_position = 0;
	uint64_t one_ns, other_ns, one_count, other_count;

	while (tailor_histogram_next(one, &one_position, &one_ns, &one_count)) {
		assert_true(tailor_histogram_next(other, &other_position, &other_ns, &other_count));
		assert_int_equal(one_ns, other_ns);
		assert_int_equal(one_count, other_count);
	}
	assert_false(tailor_histogram_next(other, &other_position, &other_ns, &other_count));
}

/* As threads do it: each has one of its own, and they are put together in the end. */
static void any_parts_together_have_the_buckets_of_the_whole(void **state)
{
	struct tailor_histogram *whole = tailor_histogram_new(), *together = tailor_histogram_new(), *parts[7];

	(void)state;
	assert_true(whole && together);
	for (size_t i = 0; i < 7; i++)
		assert_non_null(parts[i] = tailor_histogram_new());
	for (uint64_t round = 0; round < 2 * DISTRIBUTIONS; round++) {
		size_t count, used;

		random_state = (round + 1) * UINT64_C(0xd1342543de82ef95);
		count = any_size();
		used = 1 + next_random() % 7;
		tailor_histogram_reset(whole);
		tailor_histogram_reset(together);
		for (size_t i = 0; i < 7; i++)
			tailor_histogram_reset(parts[i]);
		for (size_t i = 0; i < count; i++) {
			uint64_t value = (uint64_t)distributions[round % DISTRIBUTIONS]();

			tailor_histogram_record(whole, value);
			tailor_histogram_record(parts[next_random() % used], value);
		}
		for (size_t i = 0; i < 7; i++)
			tailor_histogram_merge(together, parts[i]);
		assert_same_buckets(whole, together);
		assert_int_equal(tailor_histogram_count(together), count);
		assert_int_equal(tailor_histogram_min(together), tailor_histogram_min(whole));
		assert_int_equal(tailor_histogram_max(together), tailor_histogram_max(whole));
		assert_true(tailor_histogram_mean(together) == tailor_histogram_mean(whole));
	}
	for (size_t i = 0; i < 7; i++)
		tailor_histogram_free(parts[i]);
	tailor_histogram_free(whole);
	tailor_histogram_free(together);
}

static void a_walk_meets_every_sample_once_and_in_order(void **state)
{
	uint64_t *samples = malloc(SAMPLES * sizeof(*samples)), ns, in_bucket;
	struct tailor_histogram *histogram = tailor_histogram_new();

	(void)state;
	assert_non_null(samples);
	assert_non_null(histogram);
	for (uint64_t round = 0; round < 3 * DISTRIBUTIONS; round++) {
		size_t count, position = 0, seen = 0;
		uint64_t before_ns = 0;

		random_state = (round + 1) * UINT64_C(0xaf251af3b0f025b5);
		count = round < DISTRIBUTIONS ? 1 : any_size();
		tailor_histogram_reset(histogram);
		for (size_t i = 0; i < count; i++) {
			samples[i] = (uint64_t)distributions[round % DISTRIBUTIONS]();
			tailor_histogram_record(histogram, samples[i]);
		}
		qsort(samples, count, sizeof(*samples), by_value);
		while (tailor_histogram_next(histogram, &position, &ns, &in_bucket)) {
			assert_true(seen == 0 || ns > before_ns);
			before_ns = ns;
			assert_true(in_bucket > 0 && in_bucket <= count - seen);
			/* All samples of a bucket lie around its middle. */
			assert_true(fabs((double)ns / (double)samples[seen] - 1) <= 0.001);
			assert_true(fabs((double)ns / (double)samples[seen + in_bucket - 1] - 1) <= 0.001);
			seen += in_bucket;
		}
		assert_int_equal(seen, count);
		assert_false(tailor_histogram_next(histogram, &position, &ns, &in_bucket));
	}
	tailor_histogram_free(histogram);
	free(samples);
}

static void a_walk_meets_the_first_and_the_last_bucket(void **state)
{
	struct tailor_histogram *histogram = tailor_histogram_new();
	size_t position = 0;
	uint64_t ns, count;

	(void)state;
	assert_non_null(histogram);
	assert_false(tailor_histogram_next(histogram, &position, &ns, &count));
	tailor_histogram_record(histogram, 0);
	tailor_histogram_record(histogram, HOUR_NS + 1);
	tailor_histogram_record(histogram, 0);
	position = 0;
	assert_true(tailor_histogram_next(histogram, &position, &ns, &count));
	assert_int_equal(ns, 0);
	assert_int_equal(count, 2);
	assert_true(tailor_histogram_next(histogram, &position, &ns, &count));
	assert_true(fabs((double)ns / (double)HOUR_NS - 1) <= 0.001);
	assert_int_equal(count, 1);
	assert_false(tailor_histogram_next(histogram, &position, &ns, &count));
	tailor_histogram_free(histogram);
}

static void an_empty_histogram_says_zero(void **state)
{
	struct tailor_histogram *histogram = tailor_histogram_new();

	(void)state;
	assert_non_null(histogram);
	assert_int_equal(tailor_histogram_count(histogram), 0);
	assert_int_equal(tailor_histogram_min(histogram), 0);
	assert_int_equal(tailor_histogram_max(histogram), 0);
	assert_true(tailor_histogram_mean(histogram) == 0);
	assert_int_equal(tailor_histogram_percentile(histogram, 99), 0);
	assert_int_equal(tailor_histogram_between(histogram, 0, UINT64_MAX), 0);
	tailor_histogram_free(histogram);
}

static void what_is_longer_than_an_hour_counts_as_one_and_is_told(void **state)
{
	struct tailor_histogram *histogram = tailor_histogram_new();

	(void)state;
	assert_non_null(histogram);
	tailor_histogram_record(histogram, HOUR_NS);
	assert_int_equal(tailor_histogram_clipped(histogram), 0);
	tailor_histogram_record(histogram, HOUR_NS + 1);
	tailor_histogram_record(histogram, UINT64_MAX);
	assert_int_equal(tailor_histogram_clipped(histogram), 2);
	assert_int_equal(tailor_histogram_count(histogram), 3);
	assert_int_equal(tailor_histogram_max(histogram), HOUR_NS);
	assert_true(tailor_histogram_mean(histogram) == (double)HOUR_NS);
	tailor_histogram_free(histogram);
}

static void ranges_that_touch_count_every_value_once(void **state)
{
	struct tailor_histogram *histogram = tailor_histogram_new();
	static const uint64_t edges[] = {0, 500, 1000000, 1100000, 141000000, HOUR_NS, UINT64_MAX};
	uint64_t total = 0;

	(void)state;
	assert_non_null(histogram);
	random_state = 3;
	for (int i = 0; i < SAMPLES; i++)
		tailor_histogram_record(histogram, (uint64_t)two_humps());
	tailor_histogram_record(histogram, HOUR_NS);
	for (size_t i = 0; i + 1 < sizeof(edges) / sizeof(edges[0]); i++)
		total += tailor_histogram_between(histogram, edges[i], edges[i + 1]);
	assert_int_equal(total, SAMPLES + 1);
	assert_int_equal(tailor_histogram_between(histogram, 2000000, 100000000), 0);
	assert_int_equal(tailor_histogram_between(histogram, HOUR_NS, UINT64_MAX), 1);
	assert_int_equal(tailor_histogram_between(histogram, 5, 4), 0);
	tailor_histogram_free(histogram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(percentiles_are_those_of_the_raw_samples_within_a_thousandth),
	        cmocka_unit_test(one_value_is_told_within_a_thousandth_at_every_bucket_edge),
	        cmocka_unit_test(a_merge_is_the_same_as_recording_everything_in_one),
	        cmocka_unit_test(any_parts_together_have_the_buckets_of_the_whole),
	        cmocka_unit_test(a_walk_meets_every_sample_once_and_in_order),
	        cmocka_unit_test(a_walk_meets_the_first_and_the_last_bucket),
	        cmocka_unit_test(an_empty_histogram_says_zero),
	        cmocka_unit_test(what_is_longer_than_an_hour_counts_as_one_and_is_told),
	        cmocka_unit_test(ranges_that_touch_count_every_value_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
