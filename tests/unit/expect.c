/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "proxy/expect.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static void assert_about(uint64_t ns, uint64_t expected_ns)
{
	if (ns < expected_ns * 3 / 4 || ns > expected_ns * 5 / 4)
		fail_msg("%llu ns, not about %llu", (unsigned long long)ns, (unsigned long long)expected_ns);
}

static void learn(struct expect_stops *stops, enum tailor_stop_kind kind, const char *cause, uint64_t ns, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		expect_learn(stops, kind, cause, ns);
}

static void who_has_learned_nothing_says_so(void **state)
{
	struct expect_stops stops = {0};
	struct expect_rest rest = expect_stop_rest(&stops, TAILOR_STOP_GC, "Allocation Failure", 0);

	(void)state;
	assert_false(rest.known);
	learn(&stops, TAILOR_STOP_GC, "Allocation Failure", 5 * MS, 3);
	/* What a collection takes says nothing about how long people stop a process. */
	assert_false(expect_stop_rest(&stops, TAILOR_STOP_SIGNAL, "", 0).known);
	assert_false(expect_stop_rest(&stops, TAILOR_STOP_STALL, "", 25 * MS).known);
}

static void one_stop_is_enough_to_expect_another_like_it(void **state)
{
	(void)state;
	for (uint64_t ns = 3 * US; ns < 100000 * MS; ns = ns * 3 / 2) {
		struct expect_lengths lengths = {0};
		struct expect_rest rest;

		expect_lengths_learn(&lengths, ns, 16);
		rest = expect_lengths_rest(&lengths, 0);
		assert_true(rest.known && !rest.outlasted);
		assert_about(rest.ns, ns);
		assert_true(rest.error_ns < ns / 4);
		assert_about(expect_lengths_rest(&lengths, ns / 2).ns, ns / 2);
	}
}

static void causes_are_told_apart(void **state)
{
	struct expect_stops stops = {0};

	(void)state;
	learn(&stops, TAILOR_STOP_GC, "Allocation Failure", 2 * MS, 20);
	learn(&stops, TAILOR_STOP_GC, "System.gc()", 200 * MS, 5);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "Allocation Failure", 0).ns, 2 * MS);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "System.gc()", 0).ns, 200 * MS);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "System.gc()", 100 * MS).ns, 90 * MS);
}

static void an_unknown_cause_is_any_collection(void **state)
{
	struct expect_stops stops = {0};

	(void)state;
	learn(&stops, TAILOR_STOP_GC, "Allocation Failure", 100 * MS, 5);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "", 0).ns, 100 * MS);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "Metadata GC Threshold", 0).ns, 100 * MS);
}

static void a_safepoint_may_turn_out_to_be_a_collection(void **state)
{
	struct expect_stops stops = {0};
	struct expect_rest rest;

	(void)state;
	learn(&stops, TAILOR_STOP_SAFEPOINT, "", 60 * US, 30);
	learn(&stops, TAILOR_STOP_GC, "Allocation Failure", 100 * MS, 5);
	rest = expect_stop_rest(&stops, TAILOR_STOP_SAFEPOINT, "", 10 * US);
	/* Most of them are short; but one that goes on is not. */
	assert_about(rest.ns, 55 * US);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_SAFEPOINT, "", 100 * US).ns, 100 * MS);
}

static void one_outlier_is_not_what_is_expected(void **state)
{
	struct expect_stops stops = {0};

	(void)state;
	learn(&stops, TAILOR_STOP_GC, "Warmup", 50 * US, 10);
	learn(&stops, TAILOR_STOP_GC, "Warmup", 140 * MS, 1);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "Warmup", 0).ns, 50 * US);
	/* It is remembered all the same. */
	assert_true(expect_stop_rest(&stops, TAILOR_STOP_GC, "Warmup", 70 * US).ns > 100 * MS);
}

static void what_outlasts_everything_may_last_as_long_again(void **state)
{
	struct expect_stops stops = {0};
	struct expect_rest rest;

	(void)state;
	learn(&stops, TAILOR_STOP_GC, "Pause", 50 * US, 100);
	rest = expect_stop_rest(&stops, TAILOR_STOP_GC, "Pause", MS);
	assert_true(rest.known && rest.outlasted);
	assert_int_equal(rest.ns, MS);
}

static void the_newer_ones_count(void **state)
{
	struct expect_stops stops = {0};

	(void)state;
	learn(&stops, TAILOR_STOP_GC, "A", 100 * MS, 1000);
	learn(&stops, TAILOR_STOP_GC, "A", MS, 16);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "A", 0).ns, MS);
	/* And the old ones are forgotten in the end. */
	learn(&stops, TAILOR_STOP_GC, "A", MS, 100);
	assert_true(expect_stop_rest(&stops, TAILOR_STOP_GC, "A", 3 * MS).outlasted);
}

static void learning_for_ever_keeps_its_measure(void **state)
{
	struct expect_lengths lengths = {0};

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		expect_lengths_learn(&lengths, i % 2 ? 2 * MS : 4 * MS, 16);
		assert_true(lengths.unit > 0 && lengths.unit < 1e13f);
	}
	assert_true(expect_lengths_rest(&lengths, 0).ns > MS && expect_lengths_rest(&lengths, 0).ns < 5 * MS);
	assert_about(expect_lengths_rest(&lengths, 3 * MS).ns, MS);
}

static void more_causes_than_are_kept_give_up_the_oldest(void **state)
{
	struct expect_stops stops = {0};
	char name[16];

	(void)state;
	for (unsigned int i = 0; i < 2 * EXPECT_CAUSES; i++) {
		snprintf(name, sizeof(name), "cause %u", i);
		learn(&stops, TAILOR_STOP_GC, name, (i + 1) * MS, 3);
		learn(&stops, TAILOR_STOP_GC, "often", 500 * MS, 1);
	}
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, "often", 0).ns, 500 * MS);
	assert_about(expect_stop_rest(&stops, TAILOR_STOP_GC, name, 0).ns, 2 * EXPECT_CAUSES * MS);
}

/* Whatever was learned: an answer for every moment, and it is looked at often enough, but not too often. */
static void every_moment_of_a_stop_has_an_answer(void **state)
{
	struct expect_lengths lengths = {0};

	(void)state;
	for (uint64_t ns = 1; ns < UINT64_C(1) << 60; ns = ns * 5 + 3)
		expect_lengths_learn(&lengths, ns, 16);
	for (uint64_t lasted_ns = 0; lasted_ns < UINT64_C(1) << 60; lasted_ns = lasted_ns * 9 / 8 + 1) {
		struct expect_rest rest = expect_lengths_rest(&lengths, lasted_ns);

		assert_true(rest.known);
		assert_true(expect_again_ns(&rest, lasted_ns) >= 20 * US && expect_again_ns(&rest, lasted_ns) >= lasted_ns / 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_learned_nothing_says_so),
		cmocka_unit_test(one_stop_is_enough_to_expect_another_like_it),
		cmocka_unit_test(causes_are_told_apart),
		cmocka_unit_test(an_unknown_cause_is_any_collection),
		cmocka_unit_test(a_safepoint_may_turn_out_to_be_a_collection),
		cmocka_unit_test(one_outlier_is_not_what_is_expected),
		cmocka_unit_test(what_outlasts_everything_may_last_as_long_again),
		cmocka_unit_test(the_newer_ones_count),
		cmocka_unit_test(learning_for_ever_keeps_its_measure),
		cmocka_unit_test(more_causes_than_are_kept_give_up_the_oldest),
		cmocka_unit_test(every_moment_of_a_stop_has_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
