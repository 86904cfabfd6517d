/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are due when, and which of a recorded log. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "load/load.h"
#include "load/schedule.h"

#define START_NS (UINT64_C(1000) * TAILOR_NS_PER_S)

static struct tailor_load_options with_rate(double rate, uint64_t duration_ns)
{
	static struct tailor_load_request requests[5];
	static const struct tailor_load_plan plan = {.requests = requests, .count = 5};

	return (struct tailor_load_options){
	        .plan = &plan, .rate = rate, .speed = 1, .duration_ns = duration_ns, .threads = 1, .seed = 1};
}

static uint64_t count_due(const struct tailor_load_options *options, unsigned int index, uint64_t *ret_measured)
{
	struct load_schedule schedule;
	struct load_cursor cursor;
	uint64_t count = 0, last_ns = 0;

	load_schedule_begin(&schedule, options, index, START_NS);
	for (load_cursor_begin(&schedule, &cursor); cursor.due_ns != LOAD_NEVER; load_cursor_next(&schedule, &cursor)) {
		assert_true(cursor.due_ns >= last_ns);
		last_ns = cursor.due_ns;
		*ret_measured += cursor.due_ns >= schedule.measure_ns;
		count++;
	}
	return count;
}

static void uniform_arrivals_are_as_many_as_rate_times_time_whatever_the_rounding(void **state)
{
	static const double rates[] = {0.1, 1, 3, 7.7, 100, 301, 333.333, 4999.5, 50000};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (unsigned int threads = 1; threads <= 3; threads++) {
			struct tailor_load_options options = with_rate(rates[i], 20 * TAILOR_NS_PER_S);
			uint64_t count = 0, measured = 0;

			options.warm_ns = 10 * TAILOR_NS_PER_S;
			options.threads = threads;
			for (unsigned int index = 0; index < threads; index++)
				count += count_due(&options, index, &measured);
			assert_int_equal(count, llround(rates[i] * 10) + llround(rates[i] * 20));
			assert_int_equal(measured, llround(rates[i] * 20));
		}
	}
}

static void uniform_arrivals_do_not_drift_in_days(void **state)
{
	struct tailor_load_options options = with_rate(1e6 / 3, TAILOR_LOAD_FOREVER);
	struct load_schedule schedule;
	struct load_cursor cursor;

	(void)state;
	load_schedule_begin(&schedule, &options, 0, START_NS);
	load_cursor_begin(&schedule, &cursor);
	cursor.number = UINT64_C(1000000) * 86400 - 1; /* the next one is due after three days */
	load_cursor_next(&schedule, &cursor);
	assert_true(llabs((long long)(cursor.due_ns - START_NS) - 3 * 86400 * (long long)TAILOR_NS_PER_S) < 2000);
}

static void poisson_arrivals_have_the_rate_and_the_spread_of_independent_clients(void **state)
{
	struct tailor_load_options options = with_rate(1000, 100 * TAILOR_NS_PER_S);
	uint64_t count = 0, measured = 0;

	(void)state;
	options.arrival = TAILOR_LOAD_POISSON;
	options.warm_ns = TAILOR_NS_PER_S;
	options.threads = 2;
	for (unsigned int index = 0; index < 2; index++) {
		double sum = 0, squares = 0, last = START_NS, mean, deviation;
		struct load_schedule schedule;
		struct load_cursor cursor;
		uint64_t gaps = 0;

		load_schedule_begin(&schedule, &options, index, START_NS);
		for (load_cursor_begin(&schedule, &cursor); cursor.due_ns != LOAD_NEVER;
		     load_cursor_next(&schedule, &cursor)) {
			double gap = (double)cursor.due_ns - last;

			last = (double)cursor.due_ns;
			sum += gap;
			squares += gap * gap;
			gaps++;
		}
		mean = sum / (double)gaps;
		deviation = sqrt(squares / (double)gaps - mean * mean);
		/* A thread has half of the rate; the gaps of an exponential distribution deviate by their mean. */
		assert_true(fabs(mean / 2e6 - 1) < 0.02);
		assert_true(fabs(deviation / mean - 1) < 0.02);
		count += count_due(&options, index, &measured);
	}
	assert_true(count > 100000 && count < 102000);
	assert_true(measured > 99000 && measured < 101000);
}

static void two_cursors_see_the_same_moments_and_another_seed_sees_others(void **state)
{
	struct tailor_load_options options = with_rate(1000, TAILOR_NS_PER_S), other = with_rate(1000, TAILOR_NS_PER_S);
	struct load_schedule schedule, other_schedule;
	struct load_cursor first, second, different;
	unsigned int equal = 0;

	(void)state;
	options.arrival = other.arrival = TAILOR_LOAD_POISSON;
	other.seed = 2;
	load_schedule_begin(&schedule, &options, 0, START_NS);
	load_schedule_begin(&other_schedule, &other, 0, START_NS);
	load_cursor_begin(&schedule, &first);
	load_cursor_begin(&other_schedule, &different);
	load_cursor_begin(&schedule, &second);
	for (size_t i = 0; i < 500; i++) {
		assert_int_equal(first.due_ns, second.due_ns);
		assert_int_equal(first.number, i);
		equal += first.due_ns == different.due_ns;
		load_cursor_next(&schedule, &first);
		load_cursor_next(&other_schedule, &different);
		load_cursor_next(&schedule, &second);
	}
	assert_true(equal < 3);
}

static void the_sample_of_compared_bodies_has_the_size_that_was_asked_for(void **state)
{
	static const double parts[] = {0, 0.01, 0.5, 1};
	struct tailor_load_options options = with_rate(1, TAILOR_NS_PER_S);
	struct load_schedule schedule;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		uint64_t compared = 0;

		options.same_body = parts[i];
		load_schedule_begin(&schedule, &options, 0, START_NS);
		for (uint64_t number = 0; number < 100000; number++)
			compared += load_schedule_compares(&schedule, number);
		assert_true(fabs((double)compared / 1e5 - parts[i]) < 0.005);
		if (parts[i] == 0 || parts[i] == 1)
			assert_int_equal(compared, parts[i] * 1e5);
	}
}

static void a_request_of_a_far_day_is_not_due_before_it(void **state)
{
	struct tailor_load_recorded recorded[] = {{0, 0, 0}, {UINT64_C(9999999999) * TAILOR_NS_PER_S, 0, 1}};
	struct tailor_load_options options = with_rate(0, TAILOR_LOAD_FOREVER);
	struct tailor_load_plan plan = *options.plan;
	struct load_schedule schedule;
	struct load_cursor cursor;

	(void)state;
	plan.recorded = recorded;
	plan.recorded_count = 2;
	options.plan = &plan;
	options.arrival = TAILOR_LOAD_RECORDED;
	options.speed = 0.001; /* more nanoseconds than 64 bits hold */
	load_schedule_begin(&schedule, &options, 0, START_NS);
	load_cursor_begin(&schedule, &cursor);
	assert_int_equal(cursor.due_ns, START_NS);
	load_cursor_next(&schedule, &cursor);
	assert_true(cursor.due_ns > START_NS + UINT64_C(100) * 365 * 24 * 3600 * TAILOR_NS_PER_S);
	assert_true(cursor.due_ns < INT64_MAX);
}

/* Writes text to a file of its own and reads it as a recorded log. */
static int record(const char *text, struct tailor_load_plan *plan, char error[TAILOR_LOAD_ERROR_BYTES])
{
	static const struct tailor_load_common common = {.host = "h", .method = "GET"};
	char name[] = "/tmp/tailor-log-XXXXXX";
	int fd = mkstemp(name), ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	memset(plan, 0, sizeof(*plan));
	ret = tailor_load_plan_record(plan, &common, name, error);
	unlink(name);
	return ret;
}

static void a_common_log_is_spread_over_its_seconds_and_keeps_its_order(void **state)
{
	static const char text[] =
	        "1.2.3.4 - frank [10/Oct/2000:13:55:37 -0700] \"GET /c HTTP/1.0\" 200 2326\n"
	        "1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?q=1 HTTP/1.1\" 200 2326 \"http://x/\" \"Mozilla [en]\"\n"
	        "1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 0\n"
	        "# a comment\n\n"
	        "1.2.3.4 - - [10/Oct/2000:20:55:36 +0000] \"DELETE /b HTTP/1.1\" 200 1\r\n"
	        "1.2.3.4 - - [10/Oct/2000:13:55:38 -0700] \"GET /a?q=1 HTTP/1.1\" 200 1\n";
	static const char *const paths[] = {"/a?q=1", "/b", "/c", "/a?q=1"};
	static const uint64_t offsets_ms[] = {0, 500, 1000, 2000};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_plan plan;

	(void)state;
	assert_int_equal(record(text, &plan, error), 0);
	assert_int_equal(plan.count, 3);
	assert_int_equal(plan.recorded_count, 4);
	assert_int_equal(plan.recorded_skipped, 1);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(plan.requests[plan.recorded[i].request].path, paths[i]);
		assert_int_equal(plan.recorded[i].offset_ns, offsets_ms[i] * TAILOR_NS_PER_MS);
	}
	assert_int_equal(plan.requests[plan.recorded[1].request].method, HTTP1_DELETE);
	tailor_load_plan_free(&plan);
}

static void a_plain_log_has_times_to_the_nanosecond_and_bodies(void **state)
{
	static const char text[] = "1700000000.000000001 GET /a\n"
	                           "2023-11-14T22:13:20.25Z POST /b {\"query\": [1]}\n"
	                           "1700000000.5 GET /a\n";
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_plan plan;

	(void)state;
	assert_int_equal(record(text, &plan, error), 0);
	assert_int_equal(plan.count, 2);
	assert_int_equal(plan.recorded_count, 3);
	assert_int_equal(plan.recorded[1].offset_ns, 249999999);
	assert_int_equal(plan.recorded[2].offset_ns, 499999999);
	assert_non_null(strstr(plan.requests[plan.recorded[1].request].bytes, "\r\n\r\n{\"query\": [1]}"));
	tailor_load_plan_free(&plan);
}

static void a_replay_is_as_fast_as_asked_and_split_over_threads(void **state)
{
	struct tailor_load_options options = with_rate(0, TAILOR_LOAD_FOREVER);
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_plan plan;
	struct load_schedule schedule;
	struct load_cursor cursor;
	uint64_t measured = 0;

	(void)state;
	assert_int_equal(record("1 GET /a\n2.5 GET /b\n4 GET /c\n", &plan, error), 0);
	options.plan = &plan;
	options.arrival = TAILOR_LOAD_RECORDED;
	options.speed = 2;
	options.threads = 2;
	load_schedule_begin(&schedule, &options, 1, START_NS);
	load_cursor_begin(&schedule, &cursor);
	assert_int_equal(cursor.due_ns, START_NS + 750 * TAILOR_NS_PER_MS);
	assert_int_equal(load_schedule_request(&schedule, cursor.number), 1);
	load_cursor_next(&schedule, &cursor);
	assert_int_equal(cursor.due_ns, LOAD_NEVER);
	assert_int_equal(count_due(&options, 0, &measured), 2);
	options.duration_ns = TAILOR_NS_PER_S;
	assert_int_equal(count_due(&options, 0, &measured), 1);
	tailor_load_plan_free(&plan);
}

static void a_log_that_is_none_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *named;
	} cases[] = {
	        {"", "holds no request"},
	        {"# nothing\n\n", "holds no request"},
	        {"1 GET /a\nhello\n", ":2: a line is"},
	        {"x GET /a\n", ":1: a line is"},
	        {"-1 GET /a\n", ":1: a line is"},
	        {"1 GET a\n", ":1: a line is"},
	        {"1 G[T /a\n", "no valid request"},
	        {"h - - [99/Oct/2000:13:55:37 -0700] \"GET /c HTTP/1.0\" 200 2326\n", ":1: a line is"},
	        {"h - - [10/Oct/2000:13:55:37 -0700] \"-\" 408 0\n", "holds no request"},
	};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(record(cases[i].text, &plan, error), -EINVAL);
		if (!strstr(error, cases[i].named))
			fail_msg("case %zu: %s", i, error);
		tailor_load_plan_free(&plan);
	}
}

static void a_refusal_of_a_log_is_one_line_whatever_the_log_holds(void **state)
{
	static const char *const logs[] = {"\x1b[2J\r\n", "1 G\rET /a\n", "\xc2\x9b[2J\n"};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		assert_int_equal(record(logs[i], &plan, error), -EINVAL);
		for (const char *at = error; *at; at++)
			assert_true((uint8_t)*at >= 0x20 && *at != 0x7f && ((uint8_t)*at != 0xc2 || (uint8_t)at[1] >= 0xa0));
		tailor_load_plan_free(&plan);
	}
}

/* Nanoseconds since 1970 end in 2554: a later time would come out as some other one. */
static void a_log_of_a_far_future_is_refused(void **state)
{
	static const char *const logs[] = {"1 GET /a\n9999-01-01T00:00:00Z GET /b\n", "10000000001 GET /a\n",
	                                   "h - - [10/Oct/2700:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 0\n"};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_plan plan;

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		assert_int_equal(record(logs[i], &plan, error), -EINVAL);
		tailor_load_plan_free(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_arrivals_are_as_many_as_rate_times_time_whatever_the_rounding),
		cmocka_unit_test(uniform_arrivals_do_not_drift_in_days),
		cmocka_unit_test(poisson_arrivals_have_the_rate_and_the_spread_of_independent_clients),
		cmocka_unit_test(two_cursors_see_the_same_moments_and_another_seed_sees_others),
		cmocka_unit_test(the_sample_of_compared_bodies_has_the_size_that_was_asked_for),
		cmocka_unit_test(a_common_log_is_spread_over_its_seconds_and_keeps_its_order),
		cmocka_unit_test(a_plain_log_has_times_to_the_nanosecond_and_bodies),
		cmocka_unit_test(a_replay_is_as_fast_as_asked_and_split_over_threads),
		cmocka_unit_test(a_log_that_is_none_is_refused_with_its_line),
		cmocka_unit_test(a_request_of_a_far_day_is_not_due_before_it),
		cmocka_unit_test(a_refusal_of_a_log_is_one_line_whatever_the_log_holds),
		cmocka_unit_test(a_log_of_a_far_future_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
