/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "load/stall.h"

#define MS TAILOR_NS_PER_MS

static void add(struct tailor_stall_list *list, uint64_t begin_ms, uint64_t end_ms)
{
	tailor_stall_list_add(list, begin_ms * MS, end_ms * MS);
}

static void assert_sum(const struct tailor_stall_list *list, uint64_t episodes, uint64_t longest_ms, uint64_t total_ms)
{
	struct tailor_stalls sum = tailor_stall_list_sum(list);

	assert_int_equal(sum.known, 1);
	assert_int_equal(sum.episodes, episodes);
	assert_int_equal(sum.longest_ns, longest_ms * MS);
	assert_int_equal(sum.total_ns, total_ms * MS);
}

static void without_an_interval_nothing_stood_still_and_that_is_known(void **state)
{
	struct tailor_stall_list list = {0};

	(void)state;
	assert_sum(&list, 0, 0, 0);
	add(&list, 7, 7);
	assert_sum(&list, 0, 0, 0);
}

static void intervals_of_two_cpus_that_overlap_touch_or_are_near_are_one_episode(void **state)
{
	struct tailor_stall_list list = {0};

	(void)state;
	add(&list, 100, 150);
	add(&list, 120, 140); /* within */
	assert_sum(&list, 1, 50, 50);
	add(&list, 150, 160); /* touches */
	assert_sum(&list, 1, 60, 60);
	add(&list, 90, 110); /* told later, began earlier */
	assert_sum(&list, 1, 70, 70);
	add(&list, 179, 184); /* 19 ms later */
	assert_sum(&list, 1, 94, 94);
	add(&list, 204, 210); /* 20 ms later */
	assert_sum(&list, 2, 94, 100);
}

static void an_interval_that_reaches_several_episodes_makes_them_one(void **state)
{
	struct tailor_stall_list list = {0};

	(void)state;
	add(&list, 300, 310);
	add(&list, 100, 110);
	add(&list, 200, 210);
	add(&list, 900, 905);
	assert_sum(&list, 4, 10, 35);
	add(&list, 105, 290);
	assert_sum(&list, 2, 210, 215);
	/* What grew reaches the next one, too. */
	add(&list, 305, 890);
	assert_sum(&list, 1, 805, 805);
}

static void a_full_list_keeps_the_sums_of_its_earliest_episodes(void **state)
{
	enum { MANY = 3 * TAILOR_STALL_OPEN };
	struct tailor_stall_list list = {0};

	(void)state;
	add(&list, 1000, 1140);
	for (uint64_t i = 1; i < MANY; i++)
		add(&list, 1000 + i * 1000, 1000 + i * 1000 + 10);
	assert_int_equal(list.count, TAILOR_STALL_OPEN);
	assert_sum(&list, MANY, 140, 140 + (MANY - 1) * 10);
	/* One from before all that are still open. */
	add(&list, 10, 30);
	assert_sum(&list, MANY + 1, 140, 140 + (MANY - 1) * 10 + 20);
	/* The latest one can still grow. */
	add(&list, MANY * 1000 + 5, MANY * 1000 + 200);
	assert_sum(&list, MANY + 1, 200, 200 + 140 + (MANY - 2) * 10 + 20);
}

static void any_order_gives_the_same_episodes(void **state)
{
	static const uint64_t begin_ms[] = {10, 60, 30, 200, 90, 400, 140, 225, 70};
	enum { COUNT = sizeof(begin_ms) / sizeof(begin_ms[0]) };

	(void)state;
	for (size_t shift = 0; shift < COUNT; shift++) {
		struct tailor_stall_list list = {0};

		for (size_t i = 0; i < COUNT; i++)
			add(&list, begin_ms[(i + shift) % COUNT], begin_ms[(i + shift) % COUNT] + 10);
		assert_sum(&list, 5, 40, 30 + 40 + 10 + 35 + 10);
	}
}

static void a_watch_of_a_machine_ends_and_knows_or_says_why_not(void **state)
{
	struct timespec while_ = {.tv_nsec = 50 * (long)MS};
	uint64_t begin_ns = tailor_clock_ns();
	struct tailor_stall_watch *watch = NULL;
	struct tailor_stalls stalls;
	int ret = tailor_stall_watch_start(begin_ns, &watch);

	(void)state;
	if (ret < 0) {
		assert_null(watch);
		assert_true(ret == -EPERM || ret == -ENOENT || ret == -EINVAL);
		print_message("the machine cannot be watched here: %s\n", strerror(-ret));
	} else {
		nanosleep(&while_, NULL);
		stalls = tailor_stall_watch_stop(watch);
		assert_int_equal(stalls.known, 1);
		assert_true(stalls.longest_ns <= tailor_clock_ns() - begin_ns);
	}
	assert_int_equal(tailor_stall_watch_stop(NULL).known, 0);
}

/* Keeps the first CPU that is allowed from the watch, as a kernel thread or somebody's real-time thread would. */
static void *keep_cpu(void *context)
{
	struct timespec pause = {.tv_nsec = 10 * (long)MS};

	(void)context;
	for (int i = 0; i < 4; i++) {
		uint64_t until_ns = tailor_clock_ns() + 30 * MS;

		while (tailor_clock_ns() < until_ns)
			;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int run_before_the_watch(void)
{
	struct sched_param high = {.sched_priority = 10};
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t allowed, first;
	int cpu = 0, ret;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &high);
	pthread_attr_setaffinity_np(&attributes, sizeof(first), &first);
	ret = pthread_create(&thread, &attributes, keep_cpu, NULL);
	pthread_attr_destroy(&attributes);
	if (ret == 0)
		pthread_join(thread, NULL);
	return -ret;
}

static void a_cpu_that_something_here_keeps_has_not_stood_still(void **state)
{
	(void)state;
	/* A real freeze of the machine may fall into one of the attempts. */
	for (int attempt = 0; attempt < 4; attempt++) {
		struct tailor_stall_watch *watch = NULL;
		struct tailor_stalls stalls;
		int ret = tailor_stall_watch_start(tailor_clock_ns(), &watch);

		if (ret < 0) {
			print_message("the machine cannot be watched here: %s\n", strerror(-ret));
			skip();
		}
		assert_int_equal(run_before_the_watch(), 0);
		stalls = tailor_stall_watch_stop(watch);
		assert_int_equal(stalls.known, 1);
		if (stalls.episodes == 0)
			return;
		print_message("stood still %d times, longest %.1f ms\n", (int)stalls.episodes, (double)stalls.longest_ns / 1e6);
	}
	fail_msg("what kept the CPU from the watch was taken for the host");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_interval_nothing_stood_still_and_that_is_known),
		cmocka_unit_test(intervals_of_two_cpus_that_overlap_touch_or_are_near_are_one_episode),
		cmocka_unit_test(an_interval_that_reaches_several_episodes_makes_them_one),
		cmocka_unit_test(a_full_list_keeps_the_sums_of_its_earliest_episodes),
		cmocka_unit_test(any_order_gives_the_same_episodes),
		cmocka_unit_test(a_watch_of_a_machine_ends_and_knows_or_says_why_not),
		cmocka_unit_test(a_cpu_that_something_here_keeps_has_not_stood_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
