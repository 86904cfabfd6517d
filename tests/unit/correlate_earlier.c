/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that was ready already when its window begins: what is known of before tells since when and why. */
#include "scene.h"

/* The loop gets its CPU at 1500, which STRANGER had, and reads the request that has been there for long. */
static void open_ready(struct scene *scene)
{
	scene_open(scene, 2000);
	proxy_story(scene, 2000, LOOP);
	in(scene, 1500, LOOP, STRANGER);
	receives(scene, 1505, LOOP, REQUEST);
	departure(scene, 2000, LOOP);
}

static struct tailor_event switched_out(uint64_t us, uint32_t tid, enum tailor_task_state state, uint32_t after)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_SWITCH_OUT, .time_ns = US(us), .tid = tid, .pid = scene_pid(tid), .extra = state};

	scene_comm(&event, after);
	return event;
}

static struct tailor_event woken(uint64_t us, uint32_t tid, uint32_t extra)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_WAKEUP, .time_ns = US(us), .tid = tid, .pid = scene_pid(tid), .extra = extra};

	scene_comm(&event, IDLE);
	return event;
}

static void explain_with(struct scene *scene, const struct tailor_event *earlier, size_t count, uint64_t whole_us)
{
	open_ready(scene);
	scene->window.earlier_scheduling = earlier;
	scene->window.earlier_scheduling_count = count;
	scene->window.earlier_whole_ns = US(whole_us);
	explain(scene);
}

static void a_thread_woken_before_its_window_waits_for_a_cpu(void **state)
{
	/* In no order; what the thread did before it went to sleep, and what others did, is not asked. */
	const struct tailor_event earlier[] = {
		woken(700, LOOP, 0), switched_out(300, LOOP, TAILOR_TASK_RUNNABLE, STRANGER), woken(600, LOOP, 0),
		switched_out(500, LOOP, TAILOR_TASK_SLEEPING, IDLE), woken(400, LOOP, TAILOR_WAKEUP_THROTTLED),
		switched_out(650, WORKER, TAILOR_TASK_RUNNABLE, STRANGER),
	};
	struct scene scene;

	(void)state;
	explain_with(&scene, earlier, sizeof(earlier) / sizeof(earlier[0]), 100);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 1500 - 1010);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	assert_detail(&scene, TAILOR_CAUSE_RUN_QUEUE, "CPU 1 had some-task");
	scene_close(&scene);
}

static void a_thread_pushed_off_before_its_window_was_preempted(void **state)
{
	const struct tailor_event earlier[] = {woken(400, LOOP, 0), switched_out(500, LOOP, TAILOR_TASK_RUNNABLE, STRANGER)};
	struct scene scene;

	(void)state;
	explain_with(&scene, earlier, 2, 100);
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 1500 - 1010);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	assert_detail(&scene, TAILOR_CAUSE_PREEMPTED, "by some-task");
	scene_close(&scene);
}

static void a_thread_out_of_its_quota_before_its_window_is_not_said_to_wait_for_a_cpu(void **state)
{
	const struct tailor_event pushed_off[] = {switched_out(500, LOOP, TAILOR_TASK_THROTTLED, STRANGER)};
	const struct tailor_event slept[] = {switched_out(500, LOOP, TAILOR_TASK_SLEEPING, STRANGER), woken(600, LOOP, TAILOR_WAKEUP_THROTTLED)};
	struct scene scene;

	(void)state;
	explain_with(&scene, pushed_off, 1, 100);
	assert_took(&scene, TAILOR_CAUSE_THROTTLED, 1500 - 1010);
	scene_close(&scene);
	explain_with(&scene, slept, 2, 100);
	assert_took(&scene, TAILOR_CAUSE_THROTTLED, 1500 - 1010);
	scene_close(&scene);
}

static void a_thread_woken_while_it_left_its_cpu_before_its_window_waits_for_a_cpu(void **state)
{
	const struct tailor_event earlier[] = {woken(580, LOOP, 0), switched_out(600, LOOP, TAILOR_TASK_SLEEPING, STRANGER)};
	struct scene scene;

	(void)state;
	explain_with(&scene, earlier, 2, 100);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 1500 - 1010);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	scene_close(&scene);
}

/* Whether it was woken, pushed off or out of its quota may be in what was lost, or further back than anything is known. */
static void a_gap_or_nothing_before_the_window_leaves_it_unexplained(void **state)
{
	const struct tailor_event earlier[] = {switched_out(500, LOOP, TAILOR_TASK_SLEEPING, IDLE), woken(600, LOOP, 0)};
	struct scene scene;

	(void)state;
	explain_with(&scene, earlier, 2, 700);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1500 - 1010);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 0);
	scene_close(&scene);
	/* Asleep when it was seen last: what woke it is missing. */
	explain_with(&scene, earlier, 1, 100);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1500 - 1010);
	scene_close(&scene);
	explain_with(&scene, NULL, 0, 0);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1500 - 1010);
	scene_close(&scene);
}

/* It may have got a CPU before the window, and lost it in what is missing. */
static void a_loss_in_the_window_leaves_it_unexplained_too(void **state)
{
	const struct tailor_event earlier[] = {switched_out(500, LOOP, TAILOR_TASK_RUNNABLE, STRANGER)};
	struct scene scene;

	(void)state;
	open_ready(&scene);
	scene.window.earlier_scheduling = earlier;
	scene.window.earlier_scheduling_count = 1;
	loses(&scene, "cpu0", 1300, 1400, 2);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1500 - 1010);
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 0);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_woken_before_its_window_waits_for_a_cpu),
		cmocka_unit_test(a_thread_pushed_off_before_its_window_was_preempted),
		cmocka_unit_test(a_thread_out_of_its_quota_before_its_window_is_not_said_to_wait_for_a_cpu),
		cmocka_unit_test(a_thread_woken_while_it_left_its_cpu_before_its_window_waits_for_a_cpu),
		cmocka_unit_test(a_gap_or_nothing_before_the_window_leaves_it_unexplained),
		cmocka_unit_test(a_loss_in_the_window_leaves_it_unexplained_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
