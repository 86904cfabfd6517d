/* SPDX-License-Identifier: Apache-2.0 */
/* What was not recorded explains nothing. */
#include "scene.h"

static void losses_where_a_threads_story_breaks_leave_it_unexplained(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	sleeps(&scene, 2000, LOOP);
	in(&scene, 4000, LOOP, IDLE); /* the wake-up is lost */
	departure(&scene, 5000, LOOP);
	loses(&scene, "cpu0", 1990, 4100, 17);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 2000);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, 0);
	assert_true(scene.timeline.missing & TAILOR_MISSING_EVENTS);
	assert_int_equal(scene.timeline.loss_count, 1);
	scene_close(&scene);
}

static void two_switch_ins_in_a_row_are_not_bridged(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	in(&scene, 4000, LOOP, IDLE);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 4000 - 1020); /* at the receive it ran again */
	scene_close(&scene);
}

static void a_cpu_whose_events_were_lost_proves_nothing_about_who_ran_there(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	departure(&scene, 5000, LOOP);
	loses(&scene, "cpu1", 2000, 3000, 5);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1000);
	assert_detail(&scene, TAILOR_CAUSE_UNEXPLAINED, "events of CPU 1 were lost");
	scene_close(&scene);

	/* Also for a thread of which no switch was recorded. */
	scene_open(&scene, 5000);
	receives(&scene, 1020, LOOP, REQUEST);
	departure(&scene, 5000, LOOP);
	loses(&scene, "cpu1", 2000, 3000, 5);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1000);
	scene_close(&scene);
}

static void a_record_without_an_end_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 1100);
	scene.window.record.request.end_ns = 0;
	assert_int_equal(tailor_correlate(&scene.window, &scene.timeline), -22);
	scene.window.record.request.end_ns = US(999);
	assert_int_equal(tailor_correlate(&scene.window, &scene.timeline), -22);
}

static void losses_take_certainty_and_completeness(void **state)
{
	struct scene scene;

	(void)state;
	/* The wait is told by its two ends, and what happened in between is not known. */
	scene_open_at_loop(&scene, 11000);
	sleeps_in(&scene, 1500, LOOP, TAILOR_TASK_SLEEPING, CALL_NANOSLEEP + 1);
	wakes(&scene, 9500, LOOP, IDLE, 9505);
	departure(&scene, 11000, LOOP);
	loses(&scene, "cpu0", 2000, 8000, 5);
	loses(&scene, "jvm:b", 1000, 11000, 5);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 6000);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, 2000);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_UNEXPLAINED);
	assert_int_equal(scene.timeline.complete, 400);
	scene_close(&scene);

	loses(&scene, "jvm:a", 7000, 9000, 5);
	explain(&scene);
	assert_int_equal(scene.timeline.complete, 300);
	scene_close(&scene);
	scene.window.loss_count = 0;
	explain(&scene);
	assert_int_equal(scene.timeline.complete, 1000);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_where_a_threads_story_breaks_leave_it_unexplained),
		cmocka_unit_test(two_switch_ins_in_a_row_are_not_bridged),
		cmocka_unit_test(a_cpu_whose_events_were_lost_proves_nothing_about_who_ran_there),
		cmocka_unit_test(a_record_without_an_end_is_refused),
		cmocka_unit_test(losses_take_certainty_and_completeness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
