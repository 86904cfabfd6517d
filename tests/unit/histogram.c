/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/histogram.h"

#define SAMPLES 20000
#define HOUR_NS UINT64_C(3600000000000)

static const double percents[] = {0, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};

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

static double few_values(void)
{
	return 1e3 * (double)(1 + next_random() % 5);
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

static void percentiles_are_those_of_the_raw_samples_within_a_thousandth(void **state)
{
	static double (*const distributions[])(void) = {any_octave, exponential, lognormal, pareto, two_humps, few_values};
	static const size_t counts[] = {1, 2, 3, 100, 999, 1000, SAMPLES};
	uint64_t *samples = malloc(SAMPLES * sizeof(*samples));
	struct tailor_histogram *histogram = tailor_histogram_new();

	(void)state;
	assert_non_null(samples);
	assert_non_null(histogram);
	for (uint64_t seed = 1; seed <= 5; seed++) {
		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		for (size_t d = 0; d < sizeof(distributions) / sizeof(distributions[0]); d++) {
			size_t count = counts[next_random() % (sizeof(counts) / sizeof(counts[0]))];
			double sum = 0;

			tailor_histogram_reset(histogram);
			for (size_t i = 0; i < count; i++) {
				samples[i] = (uint64_t)distributions[d]();
				sum += (double)samples[i];
				tailor_histogram_record(histogram, samples[i]);
			}
			qsort(samples, count, sizeof(*samples), by_value);
			assert_int_equal(tailor_histogram_count(histogram), count);
			assert_int_equal(tailor_histogram_min(histogram), samples[0]);
			assert_int_equal(tailor_histogram_max(histogram), samples[count - 1]);
			assert_true(fabs(tailor_histogram_mean(histogram) * (double)count / sum - 1) < 1e-9);
			for (size_t p = 0; p < sizeof(percents) / sizeof(percents[0]); p++) {
				double raw = (double)percentile_of(samples, count, percents[p]);
				double told = (double)tailor_histogram_percentile(histogram, percents[p]);

				if (fabs(told / raw - 1) > 0.001)
					fail_msg("seed %d distribution %zu count %zu p%g: %.0f for %.0f", (int)seed, d, count,
					         percents[p], told, raw);
			}
		}
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
	struct tailor_histogram *one = tailor_histogram_new(), *other = tailor_histogram_new(), *all = tailor_histogram_new();
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
		assert_int_equal(tailor_histogram_percentile(empty, percent), tailor_histogram_percentile(all, percent));
	tailor_histogram_free(one);
	tailor_histogram_free(other);
	tailor_histogram_free(all);
	tailor_histogram_free(empty);
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
		cmocka_unit_test(an_empty_histogram_says_zero),
		cmocka_unit_test(what_is_longer_than_an_hour_counts_as_one_and_is_told),
		cmocka_unit_test(ranges_that_touch_count_every_value_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
