/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "collect/threads.h"

static void a_thread_keeps_its_newest_name(void **state)
{
	struct tailor_threads threads = {0};

	(void)state;
	for (uint32_t tid = 200; tid > 100; tid--)
		assert_int_equal(tailor_threads_learn(&threads, 1, tid, "worker"), 0);
	assert_int_equal(tailor_threads_learn(&threads, 1, 150, "qtp-150"), 0);
	assert_int_equal(threads.count, 100);
	for (size_t i = 1; i < threads.count; i++)
		assert_true(threads.list[i - 1].tid < threads.list[i].tid);
	assert_string_equal(threads.list[49].name, "qtp-150");
	tailor_threads_free(&threads);
}

/* A JVM that starts a thread for each request would else fill the memory with names of the dead. */
static void threads_that_are_gone_for_long_are_forgotten(void **state)
{
	struct tailor_threads threads = {0};
	uint32_t own = (uint32_t)getpid();

	(void)state;
	tailor_threads_learn(&threads, own, own, "Java name");
	for (uint32_t tid = 1; tid <= 50; tid++)
		tailor_threads_learn(&threads, 1u << 30, (1u << 30) + tid, "short-lived");
	for (int second = 0; second < 30; second++) {
		assert_int_equal(tailor_threads_scan(&threads, getpid()), 0);
		tailor_threads_age(&threads);
		/* Timelines of what has just passed still need them. */
		assert_true(second >= 5 || threads.count >= 51);
	}
	for (size_t i = 0; i < threads.count; i++)
		assert_int_equal(threads.list[i].pid, own);
	assert_true(threads.count >= 1);
	assert_string_equal(threads.list[0].name, "Java name");
	tailor_threads_free(&threads);
}

static void a_thread_id_that_passes_on_does_not_keep_the_java_name(void **state)
{
	struct tailor_threads threads = {0};
	uint32_t own = (uint32_t)getpid();

	(void)state;
	tailor_threads_learn(&threads, own, own, "gone");
	tailor_threads_ended(&threads, own, own);
	assert_string_equal(threads.list[0].name, "gone");
	assert_int_equal(prctl(PR_SET_NAME, "next"), 0);
	assert_int_equal(tailor_threads_scan(&threads, getpid()), 0);
	assert_string_equal(threads.list[0].name, "next");
	/* What the kernel calls it may change, too: a JVM names its threads after it has started them. */
	assert_int_equal(prctl(PR_SET_NAME, "renamed"), 0);
	assert_int_equal(tailor_threads_scan(&threads, getpid()), 0);
	assert_string_equal(threads.list[0].name, "renamed");
	tailor_threads_free(&threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_keeps_its_newest_name),
		cmocka_unit_test(threads_that_are_gone_for_long_are_forgotten),
		cmocka_unit_test(a_thread_id_that_passes_on_does_not_keep_the_java_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
