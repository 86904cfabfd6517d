/* SPDX-License-Identifier: Apache-2.0 */
/* Causes that the kernel's and the JVM's finer events tell: calls, safepoints, quotas, stops, stalls, faults, the client. */
#include "scene.h"

#define CALL_READ 0
#define CALL_PREAD 17
#define CALL_SENDTO 44
#define CALL_FUTEX 202
#define CALL_NANOSLEEP 35
#define CALL_EPOLL 232

static void sleeps_in(struct scene *scene, uint64_t us, uint32_t tid, enum tailor_task_state state, unsigned int call)
{
	out(scene, us, tid, state, IDLE)->extra = TAILOR_SWITCH(state, call);
}

static void with_text(struct tailor_event *event, const char *text)
{
	((struct tailor_window_event *)(void *)event)->text = text;
}

/* Begins at from, all have stopped at stopped, goes on at to. */
static void safepoint(struct scene *scene, uint64_t from, uint64_t stopped, uint64_t to, const char *operation)
{
	scene_add(scene, from, TAILOR_EVENT_SAFEPOINT_BEGIN, VM_THREAD);
	with_text(scene_add(scene, stopped, TAILOR_EVENT_VM_OPERATION_BEGIN, VM_THREAD), operation);
	scene_add(scene, to - 1, TAILOR_EVENT_VM_OPERATION_END, VM_THREAD);
	scene_add(scene, to, TAILOR_EVENT_SAFEPOINT_END, VM_THREAD);
}

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

static void the_time_to_safepoint_and_the_operation_are_told_apart(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	safepoint(&scene, 2000, 30000, 40000, "PrintThreads");
	sleeps(&scene, 2010, LOOP);
	wakes(&scene, 39999, LOOP, VM_THREAD, 40005);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 30000 - 2010);
	assert_detail(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, "until the other threads had stopped, too, for PrintThreads");
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 39999 - 30000);
	assert_detail(&scene, TAILOR_CAUSE_SAFEPOINT, "PrintThreads, a thread dump");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_TIME_TO_SAFEPOINT);
	scene_close(&scene);

	/* The collector's part of a safepoint stays the collector's. */
	scene_open_at_loop(&scene, 50000);
	safepoint(&scene, 2000, 2100, 40000, "G1CollectForAllocation");
	collects(&scene, SERVER, 2110, 39000, "G1 Young Generation\tG1 Evacuation Pause");
	sleeps(&scene, 2010, LOOP);
	wakes(&scene, 39999, LOOP, VM_THREAD, 40005);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 90);
	assert_took(&scene, TAILOR_CAUSE_GC, 39000 - 2110);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 10 + 999);
	scene_close(&scene);

	/* Without an agent the operation's name says that it collected. */
	scene_open_at_loop(&scene, 50000);
	scene.window.missing = TAILOR_MISSING_AGENT;
	safepoint(&scene, 2000, 2100, 40000, "G1CollectForAllocation");
	sleeps(&scene, 2010, LOOP);
	wakes(&scene, 39999, LOOP, VM_THREAD, 40005);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_GC, 39999 - 2100);
	assert_detail(&scene, TAILOR_CAUSE_GC, "G1CollectForAllocation");
	scene_close(&scene);
}

static void the_jvms_own_count_tells_the_time_to_safepoint_without_probes(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	sleeps(&scene, 1500, LOOP);
	collects(&scene, SERVER, 10000, 44000, "Copy\tAllocation Failure");
	for (size_t i = 0; i < scene.window.event_count; i++) {
		if (scene.events[i].event.kind == TAILOR_EVENT_GC_START)
			scene.events[i].event.arg[1] = US(3000);
	}
	wakes(&scene, 44390, LOOP, VM_THREAD, 44400);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 3000);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, (7000 - 1500) + 390);
	assert_took(&scene, TAILOR_CAUSE_GC, 34000);
	scene_close(&scene);
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

static void a_request_that_came_while_the_proxy_was_stopped_begins_when_it_came(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	scene.window.record.request.begin_ns = US(1000);
	scene.window.record.request.wall_ns = US(900000);
	scene.window.record.late_from_ns = US(400);
	scene.window.record.client_port = 5555;
	out(&scene, 300, PROXY, TAILOR_TASK_STOPPED, IDLE);
	wake(&scene, 990, PROXY, STRANGER);
	scene_add(&scene, 350, TAILOR_EVENT_ARRIVAL, PROXY)->extra = TAILOR_PORTS(8000, 5555);
	scene_add(&scene, 500, TAILOR_EVENT_ARRIVAL, PROXY)->extra = TAILOR_PORTS(8000, 5555);
	scene_add(&scene, 450, TAILOR_EVENT_ARRIVAL, PROXY)->extra = TAILOR_PORTS(8000, 5556);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.request.begin_ns, US(500));
	assert_int_equal(scene.timeline.request.wall_ns, US(899500));
	assert_took(&scene, TAILOR_CAUSE_PROXY_STOPPED, 490);
	scene_close(&scene);
}

static void what_tcp_says_tells_when_a_request_came_that_no_event_tells(void **state)
{
	static const struct {
		uint64_t there_us, begin_us;
	} cases[] = {{600, 600}, {399, 1000}, {0, 1000}, {1200, 1000}}; /* within the time in which the worker was held up, or of no use */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;

		scene_open_at_loop(&scene, 50000);
		scene.window.record.late_from_ns = US(400);
		scene.window.record.late_there_ns = US(cases[i].there_us);
		scene.window.record.client_port = 5555;
		scene_add(&scene, 450, TAILOR_EVENT_ARRIVAL, PROXY)->extra = TAILOR_PORTS(8000, 5556);
		departure(&scene, 50000, LOOP);
		explain(&scene);
		assert_int_equal(scene.timeline.request.begin_ns, US(cases[i].begin_us));
		scene_close(&scene);
	}
}

static void what_waits_while_the_client_takes_nothing_waits_for_the_client(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 90000);
	scene.window.record.reply_begin_ns = US(2000);
	scene.window.record.attempt[0].response_begin_ns = US(1900);
	scene.window.record.request.response_bytes = 5000000;
	scene.window.record.client_waits = 1;
	scene.window.record.client_wait[0] =
	        (struct tailor_client_wait){.start_ns = US(3000), .end_ns = US(43000), .bytes = 65536, .window_us = 38000};
	writes(&scene, 1800, LOOP, REQUEST, 8000, 1000);
	sleeps_in(&scene, 2500, LOOP, TAILOR_TASK_SLEEPING, CALL_SENDTO + 1);
	wakes(&scene, 44000, LOOP, IDLE, 44005);
	departure(&scene, 90000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SLOW_CLIENT, 40000);
	assert_detail(&scene, TAILOR_CAUSE_SLOW_CLIENT, "the client's window was closed for 38.0 ms of 40.0 ms; 65536 bytes waited");
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_TRANSIT, 500 + 1000 + 5);
	scene_close(&scene);
}

/* The server is pushed off its CPU and collects while the proxy has bytes that the client does not take. */
static void many_short_waits_for_the_client_are_the_clients_if_most_was_waiting(void **state)
{
	static const struct {
		uint32_t waited_us, window_us;
		enum tailor_cause cause;
		uint64_t us;
	} cases[] = {
	        {6000, 36000, TAILOR_CAUSE_SLOW_CLIENT, 40000}, /* the window was closed for most of it */
	        {30000, 0, TAILOR_CAUSE_SLOW_CLIENT, 5000 + 1000}, /* nothing known of the window: what the server did stays its own */
	        {6000, 4000, TAILOR_CAUSE_SLOW_CLIENT, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;
		struct tailor_record *record = &scene.window.record;

		scene_open_at_loop(&scene, 50000);
		record->reply_begin_ns = US(2000);
		record->attempt[0].response_begin_ns = US(1900);
		record->request.response_bytes = 5000000;
		record->client_waits = 1;
		record->client_wait[0] = (struct tailor_client_wait){.start_ns = US(3000), .end_ns = US(43000), .bytes = 65536,
		                                                     .window_us = cases[i].window_us, .waited_us = cases[i].waited_us};
		out(&scene, 5000, LOOP, TAILOR_TASK_RUNNABLE, STRANGER);
		in(&scene, 35000, LOOP, STRANGER);
		out(&scene, 36000, LOOP, TAILOR_TASK_SLEEPING, IDLE)->extra = TAILOR_SWITCH(TAILOR_TASK_SLEEPING, 7 + 1);
		wakes(&scene, 42000, LOOP, IDLE, 42005);
		departure(&scene, 50000, LOOP);
		explain(&scene);
		assert_took(&scene, cases[i].cause, cases[i].us);
		if (i == 0)
			assert_detail(&scene, TAILOR_CAUSE_SLOW_CLIENT, "the client's window was closed for 36.0 ms of 40.0 ms; in many steps");
		else
			assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 30000);
		scene_close(&scene);
	}
}

static void tcp_says_why_it_kept_the_response(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 41200);
	socket_event(&scene, 1120, TAILOR_EVENT_SYSCALL_WRITE, LOOP, 0, 9120, 4000, REQUEST)->arg[2] = TAILOR_UNSENT(TAILOR_UNSENT_CORK, 4000);
	transmits(&scene, 41175, 9120, 4000);
	explain(&scene);
	assert_detail(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, "4000 bytes, held back by TCP_CORK or MSG_MORE");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_RESPONSE_BUFFERED);
	scene_close(&scene);
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

static void a_server_that_waits_for_room_in_poll_waits_for_the_client(void **state)
{
	struct scene scene;
	struct tailor_record *record = &scene.window.record;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	out(&scene, 1100, LOOP, TAILOR_TASK_SLEEPING, IDLE)->extra = TAILOR_SWITCH(TAILOR_TASK_SLEEPING, 7 + 1);
	wakes(&scene, 4100, LOOP, IDLE, 4105);
	departure(&scene, 5000, LOOP);
	record->client_waits = 1;
	record->client_wait[0] = (struct tailor_client_wait){.start_ns = US(1200), .end_ns = US(4000), .bytes = 65536, .window_us = 2700};
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SLOW_CLIENT, 2800);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 200);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_system_call_tells_what_a_wait_was_for),
		cmocka_unit_test(a_lock_says_that_it_is_one),
		cmocka_unit_test(a_monitor_that_is_tried_again_is_one_wait_for_it),
		cmocka_unit_test(the_time_to_safepoint_and_the_operation_are_told_apart),
		cmocka_unit_test(the_jvms_own_count_tells_the_time_to_safepoint_without_probes),
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
		cmocka_unit_test(a_request_that_came_while_the_proxy_was_stopped_begins_when_it_came),
		cmocka_unit_test(what_tcp_says_tells_when_a_request_came_that_no_event_tells),
		cmocka_unit_test(what_waits_while_the_client_takes_nothing_waits_for_the_client),
		cmocka_unit_test(a_server_that_waits_for_room_in_poll_waits_for_the_client),
		cmocka_unit_test(many_short_waits_for_the_client_are_the_clients_if_most_was_waiting),
		cmocka_unit_test(tcp_says_why_it_kept_the_response),
		cmocka_unit_test(losses_take_certainty_and_completeness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
