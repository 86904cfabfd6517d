/* SPDX-License-Identifier: Apache-2.0 */
/* Causes that the kernel's and the JVM's finer events tell: calls, locks, quotas, stops, stalls, faults. */
#include "scene.h"

static void the_system_call_tells_what_a_wait_was_for(void **state)
{
	static const struct {
		enum tailor_task_state state;
		unsigned int call;
		uint32_t waker;
		enum tailor_cause cause;
		const char *detail;
	} cases[] = {
		{TAILOR_TASK_SLEEPING, CALL_FUTEX + 1, IDLE, TAILOR_CAUSE_BLOCKED_SLEEP, "in futex, until the time of a wait was over"},
		{TAILOR_TASK_SLEEPING, CALL_FUTEX + 1, STRANGER, TAILOR_CAUSE_BLOCKED_LOCK, "a lock or monitor; ended by some-task"},
		{TAILOR_TASK_SLEEPING, CALL_NANOSLEEP + 1, IDLE, TAILOR_CAUSE_BLOCKED_SLEEP, "in nanosleep"},
		{TAILOR_TASK_SLEEPING, CALL_EPOLL + 1, IDLE, TAILOR_CAUSE_BLOCKED_NETWORK, "in epoll_wait, for other bytes or a time-out"},
		{TAILOR_TASK_SLEEPING, CALL_READ + 1, IDLE, TAILOR_CAUSE_BLOCKED_NETWORK, "in read; ended by an interrupt"},
		{TAILOR_TASK_SLEEPING, CALL_READ + 1, STRANGER, TAILOR_CAUSE_BLOCKED_NETWORK, "in read; ended by some-task (pid 900)"},
		{TAILOR_TASK_UNINTERRUPTIBLE, CALL_PREAD + 1, IDLE, TAILOR_CAUSE_BLOCKED_IO, "in pread64"},
		{TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE, IDLE, TAILOR_CAUSE_PAGE_FAULT_MAJOR, "ended by an interrupt"},
		{TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE, HOLDER, TAILOR_CAUSE_BLOCKED_LOCK, "memory map; ended by holder"},
		{TAILOR_TASK_UNINTERRUPTIBLE, 999 + 1, IDLE, TAILOR_CAUSE_BLOCKED_IO, "in system call 999"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;

		scene_open_at_loop(&scene, 5000);
		sleeps_in(&scene, 1100, LOOP, cases[i].state, cases[i].call);
		/* A collection meanwhile does not make the wait longer. */
		collects(&scene, SERVER, 2000, 2500, "Copy\tAllocation Failure");
		wakes(&scene, 4100, LOOP, cases[i].waker, 4105);
		departure(&scene, 5000, LOOP);
		explain(&scene);
		assert_took(&scene, cases[i].cause, 3000);
		assert_detail(&scene, cases[i].cause, cases[i].detail);
		assert_took(&scene, TAILOR_CAUSE_GC, 0);
		assert_int_equal(scene.timeline.dominant, cases[i].cause);
		scene_close(&scene);
	}
}

static void a_lock_says_that_it_is_one(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	in(&scene, 900, HOLDER, IDLE);
	sleeps_in(&scene, 1100, LOOP, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
	wake(&scene, 1800, LOOP, HOLDER)->request = OTHER;
	in(&scene, 1810, LOOP, HOLDER);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, 700);
	assert_detail(&scene, TAILOR_CAUSE_BLOCKED_LOCK, "loop waited for it (lock or monitor); it served request 00000000000000b2");
	scene_close(&scene);
}

/* HotSpot looks after 1 ms, 8 ms, and so on whether it was forgotten. */
static void a_monitor_that_is_tried_again_is_one_wait_for_it(void **state)
{
	struct scene scene;

	(void)state;
	for (int ends = 0; ends < 2; ends++) {
		scene_open_at_loop(&scene, 20000);
		in(&scene, 900, HOLDER, IDLE);
		sleeps_in(&scene, 1100, LOOP, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
		wakes(&scene, 2100, LOOP, IDLE, 2105);
		sleeps_in(&scene, 2150, LOOP, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
		wakes(&scene, 10150, LOOP, IDLE, 10155);
		sleeps_in(&scene, 10200, LOOP, TAILOR_TASK_SLEEPING, CALL_FUTEX + 1);
		wake(&scene, 18000, LOOP, ends ? HOLDER : IDLE)->request = ends ? OTHER : 0;
		in(&scene, 18010, LOOP, IDLE);
		departure(&scene, 20000, LOOP);
		explain(&scene);
		assert_took(&scene, TAILOR_CAUSE_BLOCKED_LOCK, ends ? 1000 + 8000 + 7800 : 0);
		assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, ends ? 0 : 1000 + 8000 + 7800);
		scene_close(&scene);
	}
}

static void who_is_out_of_quota_is_neither_preempted_nor_in_the_run_queue(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 9000);
	out(&scene, 1100, LOOP, TAILOR_TASK_THROTTLED, IDLE);
	in(&scene, 4100, LOOP, IDLE);
	sleeps(&scene, 5000, LOOP);
	wake(&scene, 6000, LOOP, STRANGER)->extra = TAILOR_WAKEUP_THROTTLED;
	in(&scene, 8000, LOOP, IDLE);
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_THROTTLED, 3000 + 2000);
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 0);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 4);
	scene_close(&scene);
}

static void an_idle_cpu_says_how_deep_it_slept(void **state)
{
	struct scene scene;
	struct tailor_event *event;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	sleeps(&scene, 2000, LOOP);
	wake(&scene, 3000, LOOP, STRANGER);
	event = in(&scene, 3140, LOOP, IDLE);
	event->arg[1] = US(3130);
	event->arg[2] = 2 + 1;
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_detail(&scene, TAILOR_CAUSE_RUN_QUEUE, "CPU 1 was idle in state 2 and needed 130 us to wake up");
	scene_close(&scene);
}

static void a_cpu_that_stood_still_is_the_machines_and_a_wait_elsewhere_is_not(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 90000);
	scene_add(&scene, 42000, TAILOR_EVENT_CPU_STALL, IDLE)->arg[0] = US(2000);
	departure(&scene, 90000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, 40000);
	assert_detail(&scene, TAILOR_CAUSE_MACHINE_STOPPED, "CPU 1 answered no timer for 40.0 ms");
	scene_close(&scene);

	/* It waited for somebody else, who was not held up. */
	scene_open_at_loop(&scene, 90000);
	scene_add(&scene, 42000, TAILOR_EVENT_CPU_STALL, IDLE)->arg[0] = US(2000);
	sleeps_in(&scene, 1500, LOOP, TAILOR_TASK_SLEEPING, CALL_READ + 1);
	wakes(&scene, 80000, LOOP, IDLE, 80005);
	departure(&scene, 90000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, 0);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 80000 - 1500);
	scene_close(&scene);

	/* What would have ended the wait came, or had come, while that CPU stood still. */
	scene_open_at_loop(&scene, 90000);
	scene_add(&scene, 42000, TAILOR_EVENT_CPU_STALL, IDLE)->arg[0] = US(2000);
	sleeps_in(&scene, 1500, LOOP, TAILOR_TASK_SLEEPING, CALL_NANOSLEEP + 1);
	wakes(&scene, 42010, LOOP, IDLE, 42015);
	departure(&scene, 90000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, 40010);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, 500);
	scene_close(&scene);
}

static void a_pause_is_longer_by_what_the_vm_threads_cpu_stood_still(void **state)
{
	struct scene scene;

	(void)state;
	for (int ran = 0; ran < 2; ran++) {
		scene_open_at_loop(&scene, 90000);
		in(&scene, ran ? 1800 : 60000, VM_THREAD, IDLE);
		scene_add(&scene, 42000, TAILOR_EVENT_CPU_STALL, IDLE)->arg[0] = US(3000);
		collects(&scene, SERVER, 2000, 69000, NULL);
		sleeps(&scene, 1900, LOOP);
		wakes(&scene, 69100, LOOP, VM_THREAD, 69105);
		departure(&scene, 90000, LOOP);
		explain(&scene);
		assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, ran ? 39000 : 0);
		assert_took(&scene, TAILOR_CAUSE_GC, ran ? 67000 - 39000 : 67000);
		scene_close(&scene);
	}
}

static void interrupts_are_cut_out_of_the_time_on_a_cpu(void **state)
{
	struct scene scene;
	struct tailor_event *event;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	event = scene_add(&scene, 3000, TAILOR_EVENT_INTERRUPT, LOOP);
	event->arg[0] = US(400);
	event->extra = TAILOR_INTERRUPT(1, 3);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_INTERRUPTS, 400);
	assert_detail(&scene, TAILOR_CAUSE_INTERRUPTS, "softirq NET_RX");
	scene_close(&scene);
}

static void faults(struct scene *scene, uint64_t from, uint64_t to, uint32_t count, uint64_t us)
{
	struct tailor_event *event = scene_add(scene, to, TAILOR_EVENT_PAGE_FAULTS, LOOP);

	event->extra = count;
	event->arg[0] = US(from);
	event->arg[1] = US(us);
	event->arg[2] = 0x7f1200000000;
}

static void a_storm_of_faults_is_one_cause_and_a_few_are_only_counted(void **state)
{
	static const struct tailor_window_mapping heap = {200, 0x7f1200000000, 0x7f1300000000, ""};
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 9000);
	scene.window.mappings = &heap;
	scene.window.mapping_count = 1;
	for (uint64_t at = 2000; at < 7000; at += 1000)
		faults(&scene, at, at + 990, 1000, 800);
	faults(&scene, 7500, 8000, 10, 20);
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MINOR, 4990);
	assert_detail(&scene, TAILOR_CAUSE_PAGE_FAULT_MINOR, "5000 faults in 4.99 ms, 4.00 ms of it in the kernel, at 7f1200000000, memory");
	assert_detail(&scene, TAILOR_CAUSE_ON_CPU, "10 page faults, 20.0 us of it in the kernel");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_PAGE_FAULT_MINOR);
	scene_close(&scene);
}

static void a_fault_that_slept_names_its_file(void **state)
{
	static const struct tailor_window_mapping file = {200, 0x7000, 0x9000, "index/_0.cfs"};
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 9000);
	scene.window.mappings = &file;
	scene.window.mapping_count = 1;
	scene_add(&scene, 1700, TAILOR_EVENT_PAGE_FAULT, LOOP)->arg[0] = 0x8000;
	sleeps_in(&scene, 2000, LOOP, TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE);
	wakes(&scene, 7000, LOOP, IDLE, 7005);
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MAJOR, 5000);
	assert_detail(&scene, TAILOR_CAUSE_PAGE_FAULT_MAJOR, "index/_0.cfs at 8000; ended by an interrupt");
	scene_close(&scene);
}

static void reading_a_class_from_a_slow_disk_is_class_loading(void **state)
{
	struct scene scene;
	struct tailor_event *event;

	(void)state;
	scene_open_at_loop(&scene, 9000);
	sleeps_in(&scene, 2000, LOOP, TAILOR_TASK_UNINTERRUPTIBLE, CALL_READ + 1);
	wakes(&scene, 7000, LOOP, IDLE, 7005);
	event = scene_add(&scene, 7200, TAILOR_EVENT_CLASS_LOAD, LOOP);
	event->arg[0] = US(100);
	with_text(event, "org.example.Slow");
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_CLASS_LOADING, 5100);
	assert_detail(&scene, TAILOR_CAUSE_CLASS_LOADING, "reading org.example.Slow; in read; ended by an interrupt");
	scene_close(&scene);
}

static void a_stopped_server_and_a_stopped_proxy_are_told_apart(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 9000);
	out(&scene, 2000, LOOP, TAILOR_TASK_STOPPED, IDLE);
	wakes(&scene, 7000, LOOP, STRANGER, 7005);
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_STOPPED, 5000);
	scene_close(&scene);

	scene_open(&scene, 9000);
	request_leaves(&scene, 1010);
	in(&scene, 995, PROXY, IDLE);
	out(&scene, 1015, PROXY, TAILOR_TASK_STOPPED, IDLE);
	arrival(&scene, LOOP);
	departure(&scene, 2000, LOOP);
	wakes(&scene, 8976, PROXY, STRANGER, 8980);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PROXY_STOPPED, 8976 - 1975);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_PROXY_STOPPED);
	scene_close(&scene);
}

static void a_server_that_was_stopped_before_the_window_was_stopped(void **state)
{
	for (int stopped = 0; stopped < 2; stopped++) {
		struct scene scene;

		(void)state;
		scene_open(&scene, 9000);
		request_leaves(&scene, 1010);
		proxy_story(&scene, 9000, LOOP);
		wake(&scene, 7000, LOOP, STRANGER)->extra = stopped ? TAILOR_WAKEUP_STOPPED : 0;
		in(&scene, 7005, LOOP, IDLE);
		receives(&scene, 7020, LOOP, REQUEST);
		departure(&scene, 9000, LOOP);
		explain(&scene);
		assert_took(&scene, TAILOR_CAUSE_STOPPED, stopped ? 7000 - 1010 : 0);
		assert_int_equal(scene.timeline.dominant, stopped ? TAILOR_CAUSE_STOPPED : TAILOR_CAUSE_SERVER);
		scene_close(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_system_call_tells_what_a_wait_was_for),
		cmocka_unit_test(a_lock_says_that_it_is_one),
		cmocka_unit_test(a_monitor_that_is_tried_again_is_one_wait_for_it),
		cmocka_unit_test(who_is_out_of_quota_is_neither_preempted_nor_in_the_run_queue),
		cmocka_unit_test(an_idle_cpu_says_how_deep_it_slept),
		cmocka_unit_test(a_cpu_that_stood_still_is_the_machines_and_a_wait_elsewhere_is_not),
		cmocka_unit_test(a_pause_is_longer_by_what_the_vm_threads_cpu_stood_still),
		cmocka_unit_test(interrupts_are_cut_out_of_the_time_on_a_cpu),
		cmocka_unit_test(a_storm_of_faults_is_one_cause_and_a_few_are_only_counted),
		cmocka_unit_test(a_fault_that_slept_names_its_file),
		cmocka_unit_test(reading_a_class_from_a_slow_disk_is_class_loading),
		cmocka_unit_test(a_stopped_server_and_a_stopped_proxy_are_told_apart),
		cmocka_unit_test(a_server_that_was_stopped_before_the_window_was_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
