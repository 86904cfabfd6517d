/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in the server: the walk backward along the critical path. */
#include "scene.h"

static void one_thread_that_receives_works_and_writes_is_on_cpu_and_certain(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 1975 - 1016);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 4);
	assert_took(&scene, TAILOR_CAUSE_REQUEST_TRANSIT, 2);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_TRANSIT, 5);
	assert_took(&scene, TAILOR_CAUSE_PROXY_RUN_QUEUE, 5);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_ON_CPU);
	assert_int_equal(scene.timeline.server_ns, US(1977 - 1020));
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_ON_CPU)->thread, "loop");
	assert_detail(&scene, TAILOR_CAUSE_RUN_QUEUE, "idle and had to wake up");
	scene_close(&scene);
}

static void a_chain_of_three_hops_is_followed_and_confirmed(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(&scene, 600, WORKER);
	sleeps(&scene, 1035, LOOP);
	in(&scene, 1040, WORKER, STRANGER);
	sleeps(&scene, 700, SECOND);
	wake(&scene, 1340, SECOND, WORKER);
	sleeps(&scene, 1345, WORKER);
	in(&scene, 1350, SECOND, IDLE);
	wakes(&scene, 1950, LOOP, SECOND, 1960);
	sleeps(&scene, 1955, SECOND);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	/* loop to 1030, worker 1040..1340, second 1350..1950, loop from 1960 */
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1030 - 1016) + 300 + 600 + 15);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 4 + 10 + 10 + 10);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 0);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	scene_close(&scene);
}

static void a_selector_that_wakes_the_receiving_worker_is_part_of_the_arrival(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 2000);
	proxy_story(&scene, 2000, WORKER);
	sleeps(&scene, 500, LOOP);
	sleeps(&scene, 510, WORKER);
	wakes(&scene, 1012, LOOP, PROXY, 1016);
	wake(&scene, 1030, WORKER, LOOP);
	in(&scene, 1330, WORKER, STRANGER);
	receives(&scene, 1340, WORKER, REQUEST);
	departure(&scene, 2000, WORKER);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_REQUEST_TRANSIT, 2);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 4 + 300);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1030 - 1016) + (1975 - 1330));
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	scene_close(&scene);
}

static void a_thread_woken_while_it_leaves_its_cpu_waits_for_a_cpu_and_not_for_an_unknown_reason(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	wake(&scene, 1999, LOOP, HOLDER);
	sleeps(&scene, 2000, LOOP);
	in(&scene, 2500, LOOP, STRANGER);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 4 + 500);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	scene_close(&scene);
}

static void a_lock_held_by_another_thread_is_blamed_on_its_holder(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	in(&scene, 900, HOLDER, IDLE);
	sleeps(&scene, 1100, LOOP);
	wake(&scene, 1800, LOOP, HOLDER)->request = OTHER;
	in(&scene, 1810, LOOP, HOLDER);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 700);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 4 + 10);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1100 - 1016) + (1975 - 1810));
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_BLOCKED_LOCK)->thread, "holder");
	assert_detail(&scene, TAILOR_CAUSE_BLOCKED_LOCK, "loop waited for it; it served request 00000000000000b2");
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_BLOCKED_LOCK);
	scene_close(&scene);
}

static void a_lock_holder_without_a_request_of_its_own_is_still_no_hand_off(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	sleeps(&scene, 800, HOLDER);
	wakes(&scene, 950, HOLDER, IDLE, 960);
	sleeps(&scene, 1100, LOOP);
	out(&scene, 1200, HOLDER, TAILOR_TASK_RUNNABLE, STRANGER);
	in(&scene, 1500, HOLDER, STRANGER);
	wakes(&scene, 1800, LOOP, HOLDER, 1810);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 100 + 300);
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 300); /* the holder was */
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_PREEMPTED)->thread, "holder");
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	scene_close(&scene);
}

/* A helper that the request's own thread wakes, and in the end waits for a little: what the thread did before that is no lock. */
static void who_waits_for_a_helper_that_it_has_woken_was_at_its_own_work_before(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 9000);
	in(&scene, 900, HOLDER, IDLE);
	sleeps_in(&scene, 1100, HOLDER, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
	for (uint64_t us = 2000; us <= 8000; us += 2000) {
		wake(&scene, us, HOLDER, LOOP)->request = REQUEST;
		in(&scene, us + 10, HOLDER, IDLE);
		if (us < 8000)
			sleeps_in(&scene, us + 500, HOLDER, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
	}
	sleeps_in(&scene, 8020, LOOP, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
	wake(&scene, 8300, LOOP, HOLDER);
	in(&scene, 8310, LOOP, HOLDER);
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_ON_CPU);
	assert_in_range(took_us(&scene, TAILOR_CAUSE_BLOCKED_LOCK), 0, 300);
	assert_true(scene.timeline.join >= TAILOR_JOIN_CONFIRMED);
	scene_close(&scene);
}

static void a_preempted_thread_tells_by_whom(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	out(&scene, 1100, LOOP, TAILOR_TASK_RUNNABLE, STRANGER);
	in(&scene, 4100, LOOP, STRANGER);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 3000);
	assert_detail(&scene, TAILOR_CAUSE_PREEMPTED, "by some-task (pid 900)");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_PREEMPTED);
	scene_close(&scene);
}

static void a_thread_that_is_woken_and_gets_no_cpu_waits_in_the_run_queue(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 5000);
	proxy_story(&scene, 5000, LOOP);
	sleeps(&scene, 500, LOOP);
	wake(&scene, 1012, LOOP, PROXY);
	in(&scene, 4012, LOOP, STRANGER);
	receives(&scene, 4020, LOOP, REQUEST);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 3000);
	assert_detail(&scene, TAILOR_CAUSE_RUN_QUEUE, "CPU 1 had some-task (pid 900)");
	scene_close(&scene);
}

static void waits_that_nobody_traced_ended_are_io_sleep_or_a_stop(void **state)
{
	static const struct {
		enum tailor_task_state state;
		int fault;
		enum tailor_cause cause;
	} cases[] = {
	        {TAILOR_TASK_UNINTERRUPTIBLE, 0, TAILOR_CAUSE_BLOCKED_IO},
	        {TAILOR_TASK_UNINTERRUPTIBLE, 1, TAILOR_CAUSE_PAGE_FAULT_MAJOR},
	        {TAILOR_TASK_SLEEPING, 0, TAILOR_CAUSE_BLOCKED_SLEEP},
	        {TAILOR_TASK_SLEEPING, 1, TAILOR_CAUSE_BLOCKED_SLEEP},
	        {TAILOR_TASK_STOPPED, 0, TAILOR_CAUSE_STOPPED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;

		scene_open(&scene, 5000);
		proxy_story(&scene, 5000, LOOP);
		arrival(&scene, LOOP);
		if (cases[i].fault)
			scene_add(&scene, 1099, TAILOR_EVENT_PAGE_FAULT, LOOP);
		out(&scene, 1100, LOOP, cases[i].state, IDLE);
		wakes(&scene, 4100, LOOP, IDLE, 4105);
		departure(&scene, 5000, LOOP);
		explain(&scene);
		assert_took(&scene, cases[i].cause, 3000);
		assert_int_equal(scene.timeline.dominant, cases[i].cause);
		scene_close(&scene);
	}
}

static void a_disk_wait_long_after_a_fault_is_not_called_a_page_fault(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	scene_add(&scene, 1100, TAILOR_EVENT_PAGE_FAULT, LOOP);
	out(&scene, 1600, LOOP, TAILOR_TASK_UNINTERRUPTIBLE, IDLE);
	wakes(&scene, 4100, LOOP, IDLE, 4105);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_IO, 2500);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MAJOR, 0);
	scene_close(&scene);
}

static void a_worker_that_was_busy_with_another_request_is_the_servers_queue(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 3000);
	proxy_story(&scene, 3000, WORKER);
	arrival(&scene, LOOP);
	sleeps(&scene, 1030, LOOP);
	in(&scene, 800, WORKER, IDLE);
	writes(&scene, 2020, WORKER, OTHER, 77, 10);
	departure(&scene, 3000, WORKER);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 1000);
	assert_detail(&scene, TAILOR_CAUSE_SERVER_QUEUE, "behind request 00000000000000b2");
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	scene_close(&scene);
}

static void a_busy_worker_whose_loop_wrote_the_other_response_is_the_queue_too(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 3000);
	sleeps(&scene, 1030, LOOP);
	in(&scene, 800, WORKER, IDLE);
	wakes(&scene, 2020, LOOP, WORKER, 2025);
	writes(&scene, 2030, LOOP, OTHER, 77, 10);
	sleeps(&scene, 2035, LOOP);
	wakes(&scene, 2900, LOOP, WORKER, 2910);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 1000);
	assert_detail(&scene, TAILOR_CAUSE_SERVER_QUEUE, "behind request 00000000000000b2");
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1020 - 1016) + (2900 - 2020) + (2975 - 2910));
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 0);
	/* After that nobody else's request was there, and it was the worker that woke the loop. */
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	scene_close(&scene);
}

static void a_receiver_that_served_another_request_first_is_the_servers_queue(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 3000);
	proxy_story(&scene, 3000, LOOP);
	sleeps(&scene, 500, LOOP);
	wakes(&scene, 600, LOOP, PROXY, 610);
	receives(&scene, 620, LOOP, OTHER);
	writes(&scene, 2010, LOOP, OTHER, 77, 10);
	receives(&scene, 2020, LOOP, REQUEST);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 1000);
	assert_detail(&scene, TAILOR_CAUSE_SERVER_QUEUE, "behind request 00000000000000b2");
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	scene_close(&scene);
}

static void a_loop_that_idles_for_others_is_passed_to_the_worker_it_woke_as_inferred(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 3000);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	in(&scene, 1040, WORKER, IDLE);
	sleeps(&scene, 1050, LOOP);
	wakes(&scene, 2900, LOOP, PROXY, 2910);
	receives(&scene, 2915, LOOP, OTHER);
	sleeps(&scene, 2950, WORKER);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, 0);
	/* Alone at the server it can have worked for nobody else, until the other one came. */
	assert_true(took_us(&scene, TAILOR_CAUSE_ON_CPU) >= 2900 - 1040);
	scene_close(&scene);
}

/* The kernel names no waker for a wake-up from an interrupt, which is what delivers bytes: what the loop does next tells. */
static void a_loop_that_bytes_for_others_woke_by_an_interrupt_was_idle(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 3000);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	in(&scene, 1040, WORKER, IDLE);
	sleeps(&scene, 1050, LOOP);
	wakes(&scene, 2900, LOOP, IDLE, 2910);
	receives(&scene, 2915, LOOP, OTHER);
	sleeps(&scene, 2950, WORKER);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, 0);
	/* Alone at the server it can have worked for nobody else, until the other one came. */
	assert_true(took_us(&scene, TAILOR_CAUSE_ON_CPU) >= 2900 - 1040);
	scene_close(&scene);
}

static void a_wait_that_another_process_ended_is_its(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	sleeps(&scene, 1100, LOOP);
	wakes(&scene, 4100, LOOP, STRANGER, 4105);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 3000);
	assert_detail(&scene, TAILOR_CAUSE_BLOCKED_LOCK, "ended by some-task (pid 900)");
	scene_close(&scene);
}

static void page_faults_without_durations_are_counted_and_never_blamed(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	for (int i = 0; i < 12; i++)
		scene_add(&scene, 1100 + (uint64_t)i, TAILOR_EVENT_PAGE_FAULT, LOOP);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MINOR, 0);
	assert_detail(&scene, TAILOR_CAUSE_ON_CPU, "12 page faults, durations unknown");
	scene_close(&scene);
}

static void page_faults_with_durations_and_class_loading_are_cut_out_of_on_cpu(void **state)
{
	struct scene scene;
	struct tailor_event *event;

	(void)state;
	scene_open_at_loop(&scene, 3000);
	event = scene_add(&scene, 1300, TAILOR_EVENT_PAGE_FAULT_END, LOOP);
	event->arg[1] = US(100);
	event = scene_add(&scene, 1500, TAILOR_EVENT_PAGE_FAULT_END, LOOP);
	event->arg[1] = US(50);
	event->extra = 1;
	event = scene_add(&scene, 2000, TAILOR_EVENT_CLASS_LOAD, LOOP);
	event->arg[0] = US(300);
	((struct tailor_window_event *)(void *)event)->text = "org.example.Query";
	event = scene_add(&scene, 2100, TAILOR_EVENT_CLASS_PREPARE, LOOP);
	event->arg[0] = US(100);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MINOR, 100);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MAJOR, 50);
	assert_took(&scene, TAILOR_CAUSE_CLASS_LOADING, 400);
	assert_detail(&scene, TAILOR_CAUSE_CLASS_LOADING, "org.example.Query");
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 2975 - 1016 - 550);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(one_thread_that_receives_works_and_writes_is_on_cpu_and_certain),
	        cmocka_unit_test(a_chain_of_three_hops_is_followed_and_confirmed),
	        cmocka_unit_test(a_selector_that_wakes_the_receiving_worker_is_part_of_the_arrival),
	        cmocka_unit_test(a_thread_woken_while_it_leaves_its_cpu_waits_for_a_cpu_and_not_for_an_unknown_reason),
	        cmocka_unit_test(a_lock_held_by_another_thread_is_blamed_on_its_holder),
	        cmocka_unit_test(a_lock_holder_without_a_request_of_its_own_is_still_no_hand_off),
	        cmocka_unit_test(who_waits_for_a_helper_that_it_has_woken_was_at_its_own_work_before),
	        cmocka_unit_test(a_preempted_thread_tells_by_whom),
	        cmocka_unit_test(a_thread_that_is_woken_and_gets_no_cpu_waits_in_the_run_queue),
	        cmocka_unit_test(waits_that_nobody_traced_ended_are_io_sleep_or_a_stop),
	        cmocka_unit_test(a_disk_wait_long_after_a_fault_is_not_called_a_page_fault),
	        cmocka_unit_test(a_worker_that_was_busy_with_another_request_is_the_servers_queue),
	        cmocka_unit_test(a_busy_worker_whose_loop_wrote_the_other_response_is_the_queue_too),
	        cmocka_unit_test(a_receiver_that_served_another_request_first_is_the_servers_queue),
	        cmocka_unit_test(a_loop_that_idles_for_others_is_passed_to_the_worker_it_woke_as_inferred),
	        cmocka_unit_test(a_loop_that_bytes_for_others_woke_by_an_interrupt_was_idle),
	        cmocka_unit_test(a_wait_that_another_process_ended_is_its),
	        cmocka_unit_test(page_faults_without_durations_are_counted_and_never_blamed),
	        cmocka_unit_test(page_faults_with_durations_and_class_loading_are_cut_out_of_on_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
