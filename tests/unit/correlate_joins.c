/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a thread did: each of these scenes is one in which a timeline once claimed somebody else's. */
#include "scene.h"

#define CARRIER 220
#define OTHER_CARRIER 221

/* Another request at the server, from its receive to its write, by a thread of its own that is done 100 us later; id 0: it came past the proxy. */
static void other_is_there(struct scene *scene, uint64_t from_us, uint64_t to_us, uint64_t id)
{
	struct tailor_event *event = socket_event(scene, from_us, TAILOR_EVENT_RECEIVE, SECOND, 0, 1, 100, id);

	event->extra = TAILOR_PORTS(8080, PORT + 1);
	event = socket_event(scene, to_us, TAILOR_EVENT_SYSCALL_WRITE, SECOND, 0, 1, 100, id);
	event->extra = TAILOR_PORTS(8080, PORT + 1);
	sleeps_in(scene, to_us + 100, SECOND, TAILOR_TASK_SLEEPING, CALL_EPOLL + 1);
}

/* The loop reads the request and gives it to the worker, which has slept since 600 and wakes the loop at 1900. */
static void worker_serves(struct scene *scene)
{
	sleeps(scene, 600, WORKER);
	wake(scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(scene, 1035, LOOP);
	in(scene, 1040, WORKER, IDLE);
	wakes(scene, 1900, LOOP, WORKER, 1910);
	sleeps(scene, 1905, WORKER);
}

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

static void mounts(struct scene *scene, uint64_t us, uint32_t tid, uint64_t vthread)
{
	scene_add(scene, us, TAILOR_EVENT_VTHREAD_MOUNT, tid)->arg[0] = vthread;
}

static void unmounts(struct scene *scene, uint64_t us, uint32_t tid, uint64_t vthread)
{
	scene_add(scene, us, TAILOR_EVENT_VTHREAD_UNMOUNT, tid)->arg[0] = vthread;
}

/* Virtual thread 7 receives on one carrier and writes on the other; the first carrier runs thread 8 meanwhile. */
static void virtual_thread_serves(struct scene *scene)
{
	static const struct tailor_window_thread names[] = {
		{PROXY, PROXY, "proxy-0"}, {200, CARRIER, "ForkJoinPool-1-worker-1"}, {200, OTHER_CARRIER, "ForkJoinPool-1-worker-2"}};

	scene_open(scene, 2000);
	proxy_story(scene, 2000, OTHER_CARRIER);
	arrival(scene, CARRIER);
	sleeps(scene, 600, OTHER_CARRIER);
	wakes(scene, 1790, OTHER_CARRIER, CARRIER, 1800);
	departure(scene, 2000, OTHER_CARRIER);
	scene->window.threads = names;
	scene->window.thread_count = 3;
}

static void virtual_thread_is_mounted(struct scene *scene)
{
	mounts(scene, 1017, CARRIER, 7);
	unmounts(scene, 1100, CARRIER, 7);
	mounts(scene, 1110, CARRIER, 8);
	mounts(scene, 1805, OTHER_CARRIER, 7);
}

static void a_virtual_thread_is_followed_from_carrier_to_carrier(void **state)
{
	struct scene scene;

	(void)state;
	virtual_thread_serves(&scene);
	virtual_thread_is_mounted(&scene);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1020 - 1016) + (1100 - 1020) + (1975 - 1805));
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1805 - 1100);
	assert_detail(&scene, TAILOR_CAUSE_SERVER, "parked");
	scene_close(&scene);
}

static void carriers_without_an_account_of_mounts_are_refused(void **state)
{
	struct scene scene;

	(void)state;
	virtual_thread_serves(&scene);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 1020 - 1016);
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1975 - 1020);
	scene_close(&scene);
}

static void a_virtual_thread_is_refused_where_its_mounts_may_have_been_lost(void **state)
{
	struct scene scene;

	(void)state;
	virtual_thread_serves(&scene);
	virtual_thread_is_mounted(&scene);
	loses(&scene, "jvm:a", 1200, 1300, 5);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 1020 - 1016);
	scene_close(&scene);
}

static void a_response_that_another_virtual_thread_wrote_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	virtual_thread_serves(&scene);
	mounts(&scene, 1017, CARRIER, 7);
	mounts(&scene, 1805, OTHER_CARRIER, 9);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_INFERRED);
	scene_close(&scene);
}

static void says_it_works(struct scene *scene, uint64_t from_us, uint64_t to_us, uint32_t tid, uint64_t vthread)
{
	struct tailor_event *event = scene_add(scene, from_us, TAILOR_EVENT_APP_BEGIN, tid);

	event->request = REQUEST;
	event->arg[0] = vthread;
	event = scene_add(scene, to_us, TAILOR_EVENT_APP_END, tid);
	event->request = REQUEST;
	event->arg[0] = vthread;
}

/* By the kernel's account the worker did it all; the application says that the second thread did, and that the worker was at another. */
static void the_applications_word_goes_before_what_wake_ups_suggest(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	worker_serves(&scene);
	other_is_there(&scene, 900, 1990, OTHER);
	in(&scene, 950, HOLDER, IDLE);
	says_it_works(&scene, 1200, 1700, HOLDER, 0);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_ON_CPU)->thread, "loop");
	for (size_t i = 0; i < scene.timeline.span_count; i++) {
		const struct tailor_span *span = &scene.timeline.spans[i];

		if (span->start_ns >= US(1200) && span->end_ns <= US(1700)) {
			assert_int_equal(span->cause, TAILOR_CAUSE_ON_CPU);
			assert_string_equal(span->thread, "holder");
		}
		assert_false(span->cause == TAILOR_CAUSE_ON_CPU && strcmp(span->thread, "worker") == 0);
	}
	scene_close(&scene);
}

/* As wherever the walk itself comes to a thread that the VM Thread let go. */
static void a_collection_that_stops_whom_the_application_named_is_the_collectors(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	in(&scene, 950, HOLDER, IDLE);
	says_it_works(&scene, 1200, 49000, HOLDER, 0);
	sleeps(&scene, 1300, HOLDER);
	collects(&scene, SERVER, 1350, 44350, "Copy\tSystem.gc()");
	wakes(&scene, 44390, HOLDER, VM_THREAD, 44400);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 50);
	assert_took(&scene, TAILOR_CAUSE_GC, 43000);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 40);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_GC);
	scene_close(&scene);
}

/* An end of another request, begun by nobody, ends nothing; a begin of one does. */
static void the_applications_word_holds_until_it_says_otherwise(void **state)
{
	struct tailor_event *event;
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	in(&scene, 950, HOLDER, IDLE);
	scene_add(&scene, 1200, TAILOR_EVENT_APP_BEGIN, HOLDER)->request = REQUEST;
	scene_add(&scene, 1300, TAILOR_EVENT_APP_END, HOLDER)->request = OTHER;
	event = scene_add(&scene, 1700, TAILOR_EVENT_APP_BEGIN, HOLDER);
	event->request = OTHER;
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	/* It was on a CPU before, too; for whom, it does not say. */
	assert_took(&scene, TAILOR_CAUSE_SERVER, 1200 - 1020);
	for (size_t i = 0; i < scene.timeline.span_count; i++) {
		const struct tailor_span *span = &scene.timeline.spans[i];

		if (span->cause == TAILOR_CAUSE_ON_CPU && span->end_ns > US(1020))
			assert_int_equal(strcmp(span->thread, "holder") == 0, span->start_ns >= US(1200) && span->end_ns <= US(1700));
	}
	scene_close(&scene);
}

static void the_word_of_a_virtual_thread_holds_wherever_it_is_mounted(void **state)
{
	struct tailor_event *begin;
	struct scene scene;

	(void)state;
	virtual_thread_serves(&scene);
	virtual_thread_is_mounted(&scene);
	begin = scene_add(&scene, 1018, TAILOR_EVENT_APP_BEGIN, CARRIER);
	begin->request = REQUEST;
	begin->arg[0] = 7;
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, (1100 - 1016) + (1975 - 1805));
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
		cmocka_unit_test(a_virtual_thread_is_followed_from_carrier_to_carrier),
		cmocka_unit_test(carriers_without_an_account_of_mounts_are_refused),
		cmocka_unit_test(a_virtual_thread_is_refused_where_its_mounts_may_have_been_lost),
		cmocka_unit_test(a_response_that_another_virtual_thread_wrote_is_refused),
		cmocka_unit_test(the_applications_word_goes_before_what_wake_ups_suggest),
		cmocka_unit_test(a_collection_that_stops_whom_the_application_named_is_the_collectors),
		cmocka_unit_test(the_applications_word_holds_until_it_says_otherwise),
		cmocka_unit_test(the_word_of_a_virtual_thread_holds_wherever_it_is_mounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
