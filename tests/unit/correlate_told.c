/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a thread did where that was told: by a JVM that mounts virtual threads, or by the application. */
#include "scene_pool.h"

#define CARRIER 220
#define OTHER_CARRIER 221

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
