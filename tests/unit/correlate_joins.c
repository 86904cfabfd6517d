/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a thread did, as wake-ups tell: each of these scenes is one in which a timeline once claimed somebody else's. */
#include "scene_pool.h"

static void a_worker_that_was_alone_with_the_request_worked_for_it(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	worker_serves(&scene);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 14 + 860 + 65);
	assert_took(&scene, TAILOR_CAUSE_SERVER, 0);
	scene_close(&scene);
}

static void while_another_request_is_there_a_workers_time_is_not_said_to_be_this_ones(void **state)
{
	static const uint64_t others[] = {OTHER, 0};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct scene scene;

		scene_open_at_loop(&scene, 2000);
		worker_serves(&scene);
		/* The worker was asleep before the other one came, and is alone with the request again from 1600 on. */
		other_is_there(&scene, 1200, 1500, others[i]);
		departure(&scene, 2000, LOOP);
		explain(&scene);
		assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
		assert_took(&scene, TAILOR_CAUSE_ON_CPU, 14 + 160 + 300 + 65);
		assert_took(&scene, TAILOR_CAUSE_SERVER, 400);
		assert_detail(&scene, TAILOR_CAUSE_SERVER, "for this request or another that was there");
		assert_string_equal(span_of(&scene, TAILOR_CAUSE_SERVER)->thread, "worker");
		scene_close(&scene);
	}
}

/* It came long before the window's first event, and its response is written long after. */
static void who_has_been_there_for_long_is_not_forgotten(void **state)
{
	const struct tailor_window_point came = {US(50), 0, SERVER, TAILOR_PORTS(8080, PORT + 1), 1};
	const struct tailor_window_point earlier[] = {came, {US(60), 0, SERVER, TAILOR_PORTS(8080, PORT + 1), 0}};

	(void)state;
	for (size_t left = 0; left < 2; left++) {
		struct scene scene;

		scene_open_at_loop(&scene, 2000);
		worker_serves(&scene);
		departure(&scene, 2000, LOOP);
		scene.window.earlier = earlier;
		scene.window.earlier_count = 1 + left;
		explain(&scene);
		/* The loop waited for the worker in either case. What that one did is not said where it may have been at the other one. */
		assert_took(&scene, TAILOR_CAUSE_ON_CPU, left ? 14 + 840 + 65 : 19 + 65);
		assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, left ? 0 : 860);
		scene_close(&scene);
	}
}

/* It unlocked what the holder of another request was asleep for; later it waited for that one. */
static void who_slept_in_the_middle_of_another_request_was_handed_nothing(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	other_is_there(&scene, 800, 1950, 0);
	sleeps(&scene, 900, HOLDER);
	wake(&scene, 1100, HOLDER, LOOP)->request = REQUEST;
	in(&scene, 1105, HOLDER, IDLE);
	sleeps(&scene, 1200, LOOP);
	wakes(&scene, 1800, LOOP, HOLDER, 1810);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 600);
	assert_detail(&scene, TAILOR_CAUSE_BLOCKED_LOCK, "loop waited for it");
	scene_close(&scene);
}

static void a_loop_that_wrote_for_another_since_it_was_woken_proves_nothing(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	worker_serves(&scene);
	writes(&scene, 1930, LOOP, OTHER, 100, 10);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 1975 - 1930);
	assert_detail(&scene, TAILOR_CAUSE_SERVER_QUEUE, "behind request 00000000000000b2");
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1930 - 1020);
	assert_detail(&scene, TAILOR_CAUSE_SERVER, "not certain");
	scene_close(&scene);
}

/* It looks at its sockets before it does what it has been woken for. */
static void a_loop_that_read_for_another_since_it_was_woken_was_woken_for_this_one_all_the_same(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	worker_serves(&scene);
	receives(&scene, 1930, LOOP, OTHER);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 1975 - 1930);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	scene_close(&scene);
}

static void a_worker_that_sleeps_in_the_middle_of_the_request_is_still_the_one_that_was_woken_for_it(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 3000);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(&scene, 1035, LOOP);
	in(&scene, 1040, WORKER, IDLE);
	sleeps(&scene, 1100, WORKER);
	wakes(&scene, 2100, WORKER, IDLE, 2105);
	wakes(&scene, 2900, LOOP, WORKER, 2910);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, 1000);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 0);
	scene_close(&scene);
}

/* The thread went to sleep only after the request had come, but not for the request: the pool gave it that just then. */
static void a_worker_that_became_idle_after_the_request_came_was_given_it_when_woken(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	in(&scene, 900, WORKER, IDLE);
	sleeps(&scene, 1025, WORKER);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(&scene, 1035, LOOP);
	in(&scene, 1040, WORKER, IDLE);
	departure(&scene, 2000, WORKER);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 0);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 14 + 1975 - 1040);
	scene_close(&scene);
}

/* Who wakes another thread of the pool has not finished what that one answers later. */
static void another_thread_of_the_pool_is_no_loop(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(&scene, 1035, LOOP);
	in(&scene, 1040, WORKER, IDLE);
	sleeps(&scene, 700, HOLDER);
	wakes(&scene, 1500, HOLDER, WORKER, 1510);
	writes(&scene, 1990, HOLDER, OTHER, 100, 10);
	departure(&scene, 2000, WORKER);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 0);
	scene_close(&scene);
}

/* It has been told to write for another, and works on that before the write shows; then it blocks, and somebody wakes it. */
static void what_a_loop_does_before_it_writes_for_another_is_not_this_requests(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	other_is_there(&scene, 900, 1990, 0);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1500, WORKER, LOOP)->request = REQUEST;
	in(&scene, 1510, WORKER, IDLE);
	writes(&scene, 1600, LOOP, OTHER, 100, 10);
	departure(&scene, 2000, WORKER);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 1020 - 1016);
	assert_took(&scene, TAILOR_CAUSE_SERVER, (1500 - 1020) + (1975 - 1510));
	scene_close(&scene);
}

/* Its write for another was preempted, and it had not come to an end when the next request was waited for. */
static void who_wrote_for_another_is_not_done_with_that_before_it_has_had_time_on_a_cpu(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	worker_serves(&scene);
	writes(&scene, 50, HOLDER, 0, 100, 10);
	out(&scene, 705, HOLDER, TAILOR_TASK_RUNNABLE, STRANGER);
	in(&scene, 1500, HOLDER, STRANGER);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	/* Until then somebody else's work was about. 345 us of it are left at 1500. */
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1845 - 1040);
	scene_close(&scene);
}

/* After its write it needed a lock that a compiler's thread had. Only when it waits for whatever comes it is done. */
static void a_loop_that_waits_for_a_lock_after_it_wrote_for_another_is_not_done_with_that(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	worker_serves(&scene);
	receives(&scene, 600, SECOND, 0);
	writes(&scene, 1000, SECOND, 0, 100, 10);
	sleeps_in(&scene, 1100, SECOND, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
	in(&scene, 1300, SECOND, IDLE);
	sleeps_in(&scene, 1400, SECOND, TAILOR_TASK_SLEEPING, CALL_EPOLL + 1);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1400 - 1040);
	scene_close(&scene);
}

/* A selector comes to another request first, for which it wakes the pool; a thread of that takes up this one. */
static void a_pool_woken_for_the_first_of_several_requests_takes_up_the_next_ones_too(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 2000);
	proxy_story(&scene, 2000, WORKER);
	sleeps(&scene, 500, LOOP);
	wakes(&scene, 1012, LOOP, PROXY, 1016);
	receives(&scene, 1020, LOOP, OTHER);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1025, WORKER, LOOP)->request = OTHER;
	receives(&scene, 1030, LOOP, REQUEST);
	in(&scene, 1040, WORKER, IDLE);
	departure(&scene, 2000, WORKER);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	scene_close(&scene);
}

static void what_a_thread_did_before_it_came_to_the_request_is_not_the_requests_work(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 3000);
	proxy_story(&scene, 3000, LOOP);
	in(&scene, 900, LOOP, IDLE);
	receives(&scene, 2020, LOOP, REQUEST);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 15 + 2975 - 2020);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 2005 - 1010);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_that_was_alone_with_the_request_worked_for_it),
		cmocka_unit_test(while_another_request_is_there_a_workers_time_is_not_said_to_be_this_ones),
		cmocka_unit_test(who_has_been_there_for_long_is_not_forgotten),
		cmocka_unit_test(who_slept_in_the_middle_of_another_request_was_handed_nothing),
		cmocka_unit_test(a_loop_that_wrote_for_another_since_it_was_woken_proves_nothing),
		cmocka_unit_test(a_loop_that_read_for_another_since_it_was_woken_was_woken_for_this_one_all_the_same),
		cmocka_unit_test(a_worker_that_sleeps_in_the_middle_of_the_request_is_still_the_one_that_was_woken_for_it),
		cmocka_unit_test(a_worker_that_became_idle_after_the_request_came_was_given_it_when_woken),
		cmocka_unit_test(another_thread_of_the_pool_is_no_loop),
		cmocka_unit_test(what_a_loop_does_before_it_writes_for_another_is_not_this_requests),
		cmocka_unit_test(who_wrote_for_another_is_not_done_with_that_before_it_has_had_time_on_a_cpu),
		cmocka_unit_test(a_loop_that_waits_for_a_lock_after_it_wrote_for_another_is_not_done_with_that),
		cmocka_unit_test(a_pool_woken_for_the_first_of_several_requests_takes_up_the_next_ones_too),
		cmocka_unit_test(what_a_thread_did_before_it_came_to_the_request_is_not_the_requests_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
