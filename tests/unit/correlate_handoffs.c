/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that was awake takes a request from a queue, and no wake-up shows it: what proves all the same that it was at it. */
#include "scene.h"

#include <unistd.h>

static void other_is_there(struct scene *scene, uint64_t from_us, uint64_t to_us)
{
	struct tailor_event *event = socket_event(scene, from_us, TAILOR_EVENT_RECEIVE, SECOND, 0, 1, 100, OTHER);

	event->extra = TAILOR_PORTS(8080, PORT + 1);
	event = socket_event(scene, to_us, TAILOR_EVENT_SYSCALL_WRITE, SECOND, 0, 1, 100, OTHER);
	event->extra = TAILOR_PORTS(8080, PORT + 1);
}

static void polls(struct scene *scene, uint64_t us, uint32_t tid)
{
	sleeps_in(scene, us, tid, TAILOR_TASK_SLEEPING, CALL_EPOLL + 1);
}

static void waits_for_the_disk(struct scene *scene, uint64_t us, uint32_t tid, uint64_t until_us)
{
	sleeps_in(scene, us, tid, TAILOR_TASK_UNINTERRUPTIBLE, CALL_PREAD + 1);
	wakes(scene, until_us, tid, IDLE, until_us);
}

/* The loop reads, and is asleep from 1050 until the worker wakes it, which had been on a CPU since 900. */
static void busy_worker_serves(struct scene *scene)
{
	polls(scene, 1050, LOOP);
	in(scene, 900, WORKER, IDLE);
	wakes(scene, 1900, LOOP, WORKER, 1910);
	sleeps(scene, 1905, WORKER);
}

/* The loop reads and goes back to its wait; the worker, on a CPU since 900, is who answers. */
static void scene_open_taken_over(struct scene *scene)
{
	scene_open(scene, 4000);
	proxy_story(scene, 4000, WORKER);
	arrival(scene, LOOP);
	polls(scene, 1050, LOOP);
	in(scene, 900, WORKER, IDLE);
}

/* The loop, which has not slept since 900, comes to the request after something of its own. */
static void scene_open_at_busy_loop(struct scene *scene)
{
	scene_open(scene, 4000);
	proxy_story(scene, 4000, LOOP);
	in(scene, 900, LOOP, IDLE);
}

static void who_ended_the_receivers_wait_for_whatever_comes_was_at_the_request(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	other_is_there(&scene, 800, 1990);
	busy_worker_serves(&scene);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	/* Since when is not known; but until it slept the loop had the request. */
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1050 - 1016) + (1975 - 1910));
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1900 - 1050);
	assert_detail(&scene, TAILOR_CAUSE_SERVER, "for this request or another that was there");
	scene_close(&scene);
}

static void a_receiver_that_wrote_for_another_first_was_not_told_about_the_request(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	other_is_there(&scene, 800, 1990);
	busy_worker_serves(&scene);
	writes(&scene, 1930, LOOP, OTHER, 100, 10);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	scene_close(&scene);
}

static void who_ended_it_when_another_thread_had_woken_him_is_not_said_to_have_had_it_before(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	other_is_there(&scene, 800, 1990);
	polls(&scene, 1050, LOOP);
	in(&scene, 900, HOLDER, IDLE);
	sleeps(&scene, 1040, WORKER);
	wakes(&scene, 1500, WORKER, HOLDER, 1510);
	wakes(&scene, 1900, LOOP, WORKER, 1910);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 0);
	assert_took(&scene, TAILOR_CAUSE_SERVER, (1500 - 1040) + (1900 - 1510));
	assert_detail(&scene, TAILOR_CAUSE_SERVER, "which thread had the request is not certain");
	for (size_t i = 0; i < scene.timeline.span_count; i++)
		assert_int_not_equal(scene.timeline.spans[i].tid, HOLDER);
	scene_close(&scene);
}

/* It had been at the other one until 1300. */
static void who_works_while_nobody_elses_request_is_there_works_for_this_one(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_taken_over(&scene);
	other_is_there(&scene, 800, 1300);
	departure(&scene, 4000, WORKER);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	scene_close(&scene);
}

/* A JVM that has just started may need long for what comes after a response: until then its writer is at nothing else. */
static void who_wrote_for_another_is_not_said_to_be_at_this_one_for_a_while_however_long_that_goes_on(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_taken_over(&scene);
	other_is_there(&scene, 800, 850);
	socket_event(&scene, 950, TAILOR_EVENT_SYSCALL_WRITE, WORKER, 0, 1, 100, OTHER)->extra = TAILOR_PORTS(8080, PORT + 1);
	departure(&scene, 4000, WORKER);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SERVER, 950 + 1000 - 1020);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
	scene_close(&scene);
}

/* It wrote for the other one and was pushed off its CPU, for longer than what comes after a response may take. */
static void for_how_long_is_counted_in_time_on_a_cpu(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_taken_over(&scene);
	other_is_there(&scene, 800, 850);
	socket_event(&scene, 950, TAILOR_EVENT_SYSCALL_WRITE, WORKER, 0, 1, 100, OTHER)->extra = TAILOR_PORTS(8080, PORT + 1);
	out(&scene, 1100, WORKER, TAILOR_TASK_RUNNABLE, STRANGER);
	in(&scene, 2600, WORKER, STRANGER);
	departure(&scene, 4000, WORKER);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SERVER, (1100 - 1020) + (950 + 1000 + 1500 - 2600));
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 1500);
	scene_close(&scene);
}

static void who_was_at_nobodys_request_when_this_one_came_is_not_proved_to_have_taken_it(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_taken_over(&scene);
	departure(&scene, 4000, WORKER);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	scene_close(&scene);
}

/* What it read from the disk was not for a request that it did not know of yet. */
static void a_disk_wait_of_a_thread_that_was_at_work_when_the_request_came_is_the_servers_queue(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_busy_loop(&scene);
	waits_for_the_disk(&scene, 1100, LOOP, 2900);
	receives(&scene, 3000, LOOP, REQUEST);
	scene_add(&scene, 3200, TAILOR_EVENT_CLASS_LOAD, LOOP);
	departure(&scene, 4000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_IO, 0);
	/* For some us before the disk and before the receive it may have been about to read. */
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 3000 - 2 * 15 - 1010);
	assert_detail(&scene, TAILOR_CAUSE_SERVER_QUEUE, "waited for a disk");
	scene_close(&scene);
}

static void a_lock_between_work_and_disk_makes_no_thread_idle(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_busy_loop(&scene);
	sleeps_in(&scene, 1050, LOOP, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
	wakes(&scene, 1060, LOOP, HOLDER, 1060);
	waits_for_the_disk(&scene, 1100, LOOP, 2900);
	receives(&scene, 3000, LOOP, REQUEST);
	departure(&scene, 4000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_IO, 0);
	assert_detail(&scene, TAILOR_CAUSE_SERVER_QUEUE, "waited for a disk");
	scene_close(&scene);
}

static void a_disk_wait_of_a_thread_that_the_request_has_woken_is_the_requests(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 4000);
	proxy_story(&scene, 4000, LOOP);
	sleeps(&scene, 500, LOOP);
	wakes(&scene, 1012, LOOP, PROXY, 1016);
	waits_for_the_disk(&scene, 1018, LOOP, 2900);
	receives(&scene, 2905, LOOP, REQUEST);
	departure(&scene, 4000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_IO, 2900 - 1018);
	assert_took(&scene, TAILOR_CAUSE_SERVER_QUEUE, 0);
	scene_close(&scene);
}

static void a_disk_wait_while_another_request_is_there_is_not_said_to_be_for_this_one(void **state)
{
	struct scene scene;

	(void)state;
	for (int others = 0; others < 2; others++) {
		scene_open_at_loop(&scene, 4000);
		if (others)
			other_is_there(&scene, 800, 3990);
		sleeps(&scene, 600, WORKER);
		wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
		polls(&scene, 1035, LOOP);
		in(&scene, 1040, WORKER, IDLE);
		waits_for_the_disk(&scene, 1500, WORKER, 3000);
		wakes(&scene, 3900, LOOP, WORKER, 3910);
		departure(&scene, 4000, LOOP);
		explain(&scene);
		assert_int_equal(scene.timeline.join, TAILOR_JOIN_CONFIRMED);
		assert_took(&scene, TAILOR_CAUSE_BLOCKED_IO, 1500);
		assert_int_equal(says(&scene, TAILOR_CAUSE_BLOCKED_IO, "for this request or another: in pread64"), others);
		scene_close(&scene);
	}
}

/* Threads that wake each other all the time, none of which the request can be proved to have come to. */
static void however_many_chains_of_wake_ups_there_are_few_are_followed(void **state)
{
	enum { THREADS = 9, FIRST = 230 };
	struct scene scene;

	(void)state;
	scene_open(&scene, 2000);
	proxy_story(&scene, 2000, WORKER);
	arrival(&scene, LOOP);
	polls(&scene, 1050, LOOP);
	sleeps(&scene, 1040, WORKER);
	for (uint32_t i = 0; i < 450; i++)
		wake(&scene, 1060 + i, FIRST + i % THREADS, FIRST + (i + 1 + i / THREADS % (THREADS - 1)) % THREADS);
	wakes(&scene, 1900, WORKER, FIRST, 1905);
	departure(&scene, 2000, WORKER);
	alarm(20);
	explain(&scene);
	alarm(0);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_ended_the_receivers_wait_for_whatever_comes_was_at_the_request),
		cmocka_unit_test(a_receiver_that_wrote_for_another_first_was_not_told_about_the_request),
		cmocka_unit_test(who_ended_it_when_another_thread_had_woken_him_is_not_said_to_have_had_it_before),
		cmocka_unit_test(who_works_while_nobody_elses_request_is_there_works_for_this_one),
		cmocka_unit_test(who_wrote_for_another_is_not_said_to_be_at_this_one_for_a_while_however_long_that_goes_on),
		cmocka_unit_test(for_how_long_is_counted_in_time_on_a_cpu),
		cmocka_unit_test(who_was_at_nobodys_request_when_this_one_came_is_not_proved_to_have_taken_it),
		cmocka_unit_test(a_disk_wait_of_a_thread_that_was_at_work_when_the_request_came_is_the_servers_queue),
		cmocka_unit_test(a_lock_between_work_and_disk_makes_no_thread_idle),
		cmocka_unit_test(a_disk_wait_of_a_thread_that_the_request_has_woken_is_the_requests),
		cmocka_unit_test(a_disk_wait_while_another_request_is_there_is_not_said_to_be_for_this_one),
		cmocka_unit_test(however_many_chains_of_wake_ups_there_are_few_are_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
