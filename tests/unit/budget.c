/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/clock.h"
#include "proxy/budget.h"

#define START_NS (1000 * TAILOR_NS_PER_S)

/* Takes until there is no more, or `most`. */
static unsigned int take_all(struct budget *budget, uint64_t now_ns, uint64_t requests, double part, unsigned int floor, unsigned int most)
{
	unsigned int taken = 0;

	while (taken < most && budget_take(budget, now_ns, requests, part, floor))
		taken++;
	return taken;
}

static void a_new_one_has_what_the_floor_brings_in_ten_seconds(void **state)
{
	struct budget budget;

	(void)state;
	budget_open(&budget, START_NS, 5, 10);
	assert_int_equal(take_all(&budget, START_NS, 5, 0.1, 10, 1000), 100);
	budget_open(&budget, START_NS, 5, 0);
	assert_int_equal(take_all(&budget, START_NS, 5, 0.1, 0, 1000), 0);
}

static void a_part_of_the_requests_may_be_sent_again(void **state)
{
	uint64_t now_ns = START_NS, requests = 0;
	unsigned int taken = 0;
	struct budget budget;

	(void)state;
	budget_open(&budget, now_ns, 0, 0);
	/* A thousand a second, each of which asks; after ten seconds nothing is left of the beginning. */
	for (int i = 0; i < 60000; i++) {
		now_ns += TAILOR_NS_PER_MS;
		requests++;
		taken += budget_take(&budget, now_ns, requests, 0.1, 0);
	}
	assert_in_range(taken, 5900, 6000);
}

static void the_floor_holds_without_requests(void **state)
{
	uint64_t now_ns = START_NS;
	unsigned int taken = 0;
	struct budget budget;

	(void)state;
	budget_open(&budget, now_ns, 0, 10);
	assert_int_equal(take_all(&budget, now_ns, 0, 0.1, 10, 1000), 100);
	for (int i = 0; i < 10000; i++) {
		now_ns += TAILOR_NS_PER_MS;
		taken += budget_take(&budget, now_ns, 0, 0.1, 10);
	}
	assert_in_range(taken, 99, 100);
}

static void nothing_is_saved_up_beyond_ten_seconds(void **state)
{
	struct budget budget;

	(void)state;
	budget_open(&budget, START_NS, 0, 10);
	/* An hour at 1000 requests a second. */
	assert_int_equal(take_all(&budget, START_NS + 3600 * TAILOR_NS_PER_S, 3600000, 0.1, 10, 100000), 1100);
	/* What was saved up in busy times is gone after a quiet one. */
	budget_open(&budget, START_NS, 0, 0);
	assert_true(budget_take(&budget, START_NS + TAILOR_NS_PER_S, 100000, 0.1, 0));
	assert_int_equal(take_all(&budget, START_NS + 3600 * TAILOR_NS_PER_S, 100000, 0.1, 0, 100000), 0);
}

static void one_given_back_can_be_taken_again(void **state)
{
	struct budget budget;

	(void)state;
	budget_open(&budget, START_NS, 0, 1);
	assert_int_equal(take_all(&budget, START_NS, 0, 0, 1, 100), 10);
	budget_give(&budget);
	assert_true(budget_take(&budget, START_NS, 0, 0, 1));
	assert_false(budget_take(&budget, START_NS, 0, 0, 1));
}

static void clocks_and_counters_that_go_back_bring_nothing_and_take_nothing(void **state)
{
	struct budget budget;

	(void)state;
	budget_open(&budget, START_NS, 1000, 1);
	assert_int_equal(take_all(&budget, START_NS - TAILOR_NS_PER_S, 2000, 1, 1, 100), 10);
	assert_false(budget_take(&budget, START_NS + TAILOR_NS_PER_S, 10, 1, 1));
	assert_int_equal(budget.requests, 1000);
}

struct taker {
	struct budget *budget;
	unsigned int taken;
};

static void *take_much(void *context)
{
	struct taker *taker = context;

	for (int i = 0; i < 200000; i++)
		taker->taken += budget_take(taker->budget, START_NS, 0, 0.1, 1000);
	return NULL;
}

static void several_workers_together_take_no_more_than_there_is(void **state)
{
	struct budget budget;
	struct taker taker[3] = {{&budget, 0}, {&budget, 0}, {&budget, 0}};
	pthread_t thread[3];

	(void)state;
	budget_open(&budget, START_NS, 0, 1000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_much, &taker[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(taker[0].taken + taker[1].taken + taker[2].taken, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_one_has_what_the_floor_brings_in_ten_seconds),
		cmocka_unit_test(a_part_of_the_requests_may_be_sent_again),
		cmocka_unit_test(the_floor_holds_without_requests),
		cmocka_unit_test(nothing_is_saved_up_beyond_ten_seconds),
		cmocka_unit_test(one_given_back_can_be_taken_again),
		cmocka_unit_test(clocks_and_counters_that_go_back_bring_nothing_and_take_nothing),
		cmocka_unit_test(several_workers_together_take_no_more_than_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
