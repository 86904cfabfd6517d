/* SPDX-License-Identifier: Apache-2.0 */
/* What waits were for, by the calls that they were in, and what the machine, the JVM's probes and the client have to say. */
#include "scene.h"

/* x86-64 */
enum { CALL_PREAD = 17, CALL_RECVFROM = 45, CALL_FUTEX = 202, CALL_CLOCK_NANOSLEEP = 230, CALL_EPOLL_WAIT = 232 };

static struct tailor_event *leaves(struct scene *scene, uint64_t us, enum tailor_task_state state, uint16_t call)
{
	struct tailor_event *event = out(scene, us, LOOP, state, IDLE);

	event->extra = TAILOR_SWITCH(state, call == TAILOR_CALL_NONE ? call : call + 1);
	return event;
}

/* A request whose thread is off its CPU from 1100 until it is woken at 4100. */
static void open_with_wait(struct scene *scene, enum tailor_task_state state, uint16_t call, uint32_t waker)
{
	scene_open_at_loop(scene, 5000);
	leaves(scene, 1100, state, call);
	wakes(scene, 4100, LOOP, waker, 4105);
	departure(scene, 5000, LOOP);
}

static void a_wait_is_what_its_system_call_waits_for(void **state)
{
	static const struct {
		enum tailor_task_state state;
		uint16_t call;
		uint32_t waker;
		enum tailor_cause cause;
		const char *detail;
	} cases[] = {
		{TAILOR_TASK_SLEEPING, CALL_FUTEX, IDLE, TAILOR_CAUSE_BLOCKED_SLEEP, "in futex, until the time of a wait was over"},
		{TAILOR_TASK_SLEEPING, CALL_FUTEX, STRANGER, TAILOR_CAUSE_BLOCKED_LOCK, "in futex; a lock or monitor; ended by some-task (pid 900)"},
		{TAILOR_TASK_SLEEPING, CALL_CLOCK_NANOSLEEP, IDLE, TAILOR_CAUSE_BLOCKED_SLEEP, "in clock_nanosleep"},
		{TAILOR_TASK_SLEEPING, CALL_EPOLL_WAIT, IDLE, TAILOR_CAUSE_BLOCKED_NETWORK, "in epoll_wait"},
		{TAILOR_TASK_SLEEPING, CALL_RECVFROM, IDLE, TAILOR_CAUSE_BLOCKED_NETWORK, "in recvfrom"},
		{TAILOR_TASK_UNINTERRUPTIBLE, CALL_PREAD, IDLE, TAILOR_CAUSE_BLOCKED_IO, "in pread64"},
		{TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE, IDLE, TAILOR_CAUSE_PAGE_FAULT_MAJOR, ""},
		{TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE, HOLDER, TAILOR_CAUSE_BLOCKED_LOCK, "another thread changed the memory map"},
		{TAILOR_TASK_STOPPED, CALL_FUTEX, IDLE, TAILOR_CAUSE_STOPPED, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;

		open_with_wait(&scene, cases[i].state, cases[i].call, cases[i].waker);
		explain(&scene);
		assert_took(&scene, cases[i].cause, 3000);
		assert_detail(&scene, cases[i].cause, cases[i].detail);
		scene_close(&scene);
	}
}

static void a_major_fault_names_its_file(void **state)
{
	static const struct tailor_window_mapping mappings[] = {{SERVER, 0x1000, 0x2000, "libc.so.6"}, {SERVER, 0x7000, 0x9000, "index/_1.cfs"}};
	struct scene scene;

	(void)state;
	open_with_wait(&scene, TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE, IDLE);
	scene_add(&scene, 1099, TAILOR_EVENT_PAGE_FAULT, LOOP)->arg[0] = 0x8123;
	scene.window.mappings = mappings;
	scene.window.mapping_count = 2;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MAJOR, 3000);
	assert_detail(&scene, TAILOR_CAUSE_PAGE_FAULT_MAJOR, "index/_1.cfs at 8123");
	scene_close(&scene);
}

static void a_collection_during_a_wait_for_the_network_did_not_prolong_it(void **state)
{
	struct scene scene;

	(void)state;
	open_with_wait(&scene, TAILOR_TASK_SLEEPING, CALL_RECVFROM, IDLE);
	collects(&scene, SERVER, 2000, 2500, "Copy\tAllocation Failure");
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 3000);
	assert_took(&scene, TAILOR_CAUSE_GC, 0);
	scene_close(&scene);
}

static void who_has_no_quota_left_is_throttled_whether_it_ran_or_was_woken(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	leaves(&scene, 1100, TAILOR_TASK_THROTTLED, TAILOR_CALL_NONE);
	in(&scene, 2100, LOOP, STRANGER);
	leaves(&scene, 2200, TAILOR_TASK_SLEEPING, CALL_RECVFROM);
	wake(&scene, 2300, LOOP, IDLE)->extra = TAILOR_WAKEUP_THROTTLED;
	in(&scene, 4300, LOOP, STRANGER);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_THROTTLED, 1000 + 2000);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 100);
	assert_took(&scene, TAILOR_CAUSE_PREEMPTED, 0);
	scene_close(&scene);
}

static void an_idle_cpu_tells_how_deep_it_slept(void **state)
{
	struct scene scene;
	struct tailor_event *got;

	(void)state;
	scene_open(&scene, 2000);
	proxy_story(&scene, 2000, LOOP);
	sleeps(&scene, 500, LOOP);
	wake(&scene, 1012, LOOP, PROXY);
	got = in(&scene, 1212, LOOP, IDLE);
	got->arg[1] = US(1210);
	got->arg[2] = 2 + 1;
	receives(&scene, 1220, LOOP, REQUEST);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RUN_QUEUE, 200);
	assert_detail(&scene, TAILOR_CAUSE_RUN_QUEUE, "CPU 1 was idle in state 2 and needed 198 us to wake up");
	scene_close(&scene);
}

static void a_cpu_that_answered_no_timer_stood_still_for_who_ran_or_waited_there(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 60000);
	scene_add(&scene, 1500, TAILOR_EVENT_NONE, STRANGER)->cpu = 2; /* another CPU went on */
	scene_add(&scene, 45000, TAILOR_EVENT_CPU_STALL, STRANGER)->arg[0] = US(5000);
	departure(&scene, 60000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, 40000);
	assert_detail(&scene, TAILOR_CAUSE_MACHINE_STOPPED, "CPU 1 answered no timer");
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 59975 - 1016 - 40000);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_MACHINE_STOPPED);
	scene_close(&scene);
}

static void a_stall_of_another_cpu_is_nothing_to_a_wait(void **state)
{
	struct scene scene;
	struct tailor_event *stall;

	(void)state;
	open_with_wait(&scene, TAILOR_TASK_SLEEPING, CALL_RECVFROM, IDLE);
	stall = scene_add(&scene, 3900, TAILOR_EVENT_CPU_STALL, STRANGER);
	stall->arg[0] = US(1200);
	stall->cpu = 3;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, 0);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 3000);
	scene_close(&scene);
}

static void a_wait_that_a_stall_held_up_was_the_machines_from_then_on(void **state)
{
	struct scene scene;

	(void)state;
	open_with_wait(&scene, TAILOR_TASK_SLEEPING, CALL_RECVFROM, IDLE);
	scene_add(&scene, 3900, TAILOR_EVENT_CPU_STALL, STRANGER)->arg[0] = US(1200);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_MACHINE_STOPPED, 4100 - 1200);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 100);
	scene_close(&scene);
}

static void interrupts_are_cut_out_of_the_time_on_a_cpu(void **state)
{
	struct scene scene;
	struct tailor_event *event;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	event = scene_add(&scene, 3000, TAILOR_EVENT_INTERRUPT, LOOP);
	event->extra = TAILOR_INTERRUPT(1, 3);
	event->arg[0] = US(800);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_INTERRUPTS, 800);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 4975 - 1016 - 800);
	assert_detail(&scene, TAILOR_CAUSE_INTERRUPTS, "softirq NET_RX");
	scene_close(&scene);
}

static void faults_in_a_row(struct scene *scene, uint64_t from_us, uint64_t to_us, uint64_t inside_us, uint32_t count)
{
	struct tailor_event *event = scene_add(scene, to_us, TAILOR_EVENT_PAGE_FAULTS, LOOP);

	event->arg[0] = US(from_us);
	event->arg[1] = US(inside_us);
	event->arg[2] = 0x7f0000;
	event->extra = count;
}

static void a_storm_of_faults_is_one_story_and_few_faults_are_none(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	faults_in_a_row(&scene, 1500, 2500, 800, 1000);
	faults_in_a_row(&scene, 2510, 3500, 700, 900);
	faults_in_a_row(&scene, 4000, 4100, 10, 12);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PAGE_FAULT_MINOR, 2000);
	assert_detail(&scene, TAILOR_CAUSE_PAGE_FAULT_MINOR, "1900 faults in 2.00 ms, 1.50 ms of it in the kernel, at 7f0000");
	scene_close(&scene);
}

static void safepoint(struct scene *scene, uint64_t begin_us, uint64_t stopped_us, uint64_t end_us, const char *operation)
{
	struct tailor_event *event;

	scene_add(scene, begin_us, TAILOR_EVENT_SAFEPOINT_BEGIN, VM_THREAD);
	event = scene_add(scene, stopped_us, TAILOR_EVENT_VM_OPERATION_BEGIN, VM_THREAD);
	((struct tailor_window_event *)(void *)event)->text = operation;
	scene_add(scene, end_us - 2, TAILOR_EVENT_VM_OPERATION_END, VM_THREAD);
	scene_add(scene, end_us, TAILOR_EVENT_SAFEPOINT_END, VM_THREAD);
}

static void a_safepoint_tells_how_long_it_took_to_stop_and_what_for(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	leaves(&scene, 1100, TAILOR_TASK_SLEEPING, CALL_FUTEX);
	safepoint(&scene, 1050, 21100, 40000, "PrintThreads");
	wakes(&scene, 40010, LOOP, VM_THREAD, 40020);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 20000);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 40010 - 21100);
	assert_detail(&scene, TAILOR_CAUSE_SAFEPOINT, "PrintThreads, a thread dump");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_TIME_TO_SAFEPOINT);
	scene_close(&scene);
}

static void a_collection_in_a_safepoint_stays_the_collectors(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	leaves(&scene, 1100, TAILOR_TASK_SLEEPING, CALL_FUTEX);
	safepoint(&scene, 1050, 1150, 44380, "GenCollectForAllocation");
	collects(&scene, SERVER, 1160, 44350, "Copy\tAllocation Failure");
	wakes(&scene, 44390, LOOP, VM_THREAD, 44400);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 50);
	assert_took(&scene, TAILOR_CAUSE_GC, 44350 - 1160);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 10 + 40);
	scene_close(&scene);
}

static void what_the_client_did_not_read_the_server_waited_for_in_vain(void **state)
{
	struct scene scene;
	struct tailor_record *record = &scene.window.record;

	(void)state;
	open_with_wait(&scene, TAILOR_TASK_SLEEPING, CALL_EPOLL_WAIT, IDLE);
	record->client_waits = 1;
	record->client_wait[0] = (struct tailor_client_wait){.start_ns = US(1200), .end_ns = US(4000), .bytes = 65536, .window_us = 2700};
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SLOW_CLIENT, 2800);
	assert_detail(&scene, TAILOR_CAUSE_SLOW_CLIENT, "the client's window was closed for 2.70 ms of 2.80 ms; 65536 bytes waited");
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 200);
	scene_close(&scene);
}

static void a_request_that_came_while_the_proxy_was_stopped_began_then(void **state)
{
	struct scene scene;
	struct tailor_record *record = &scene.window.record;
	struct tailor_event *event;

	(void)state;
	scene_open(&scene, 2000);
	record->request.wall_ns = US(9000000);
	record->late_from_ns = US(400);
	record->client_port = 55555;
	request_leaves(&scene, 1010);
	out(&scene, 300, PROXY, TAILOR_TASK_STOPPED, IDLE);
	event = scene_add(&scene, 600, TAILOR_EVENT_ARRIVAL, STRANGER);
	event->extra = TAILOR_PORTS(8000, 55555);
	event->pid = PROXY;
	wakes(&scene, 990, PROXY, IDLE, 995);
	sleeps(&scene, 1015, PROXY);
	wakes(&scene, 1980, PROXY, LOOP, 1985);
	arrival(&scene, LOOP);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.request.begin_ns, US(600));
	assert_int_equal(scene.timeline.request.wall_ns, US(9000000 - 400));
	assert_took(&scene, TAILOR_CAUSE_PROXY_STOPPED, 390);
	scene_close(&scene);
}

static void an_arrival_at_another_port_or_before_the_lateness_is_somebody_elses(void **state)
{
	struct scene scene;
	struct tailor_event *event;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	scene.window.record.late_from_ns = US(400);
	scene.window.record.client_port = 55555;
	event = scene_add(&scene, 600, TAILOR_EVENT_ARRIVAL, STRANGER);
	event->extra = TAILOR_PORTS(8000, 44444);
	event->pid = PROXY;
	event = scene_add(&scene, 300, TAILOR_EVENT_ARRIVAL, STRANGER);
	event->extra = TAILOR_PORTS(8000, 55555);
	event->pid = PROXY;
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.request.begin_ns, US(1000));
	scene_close(&scene);
}

static void what_was_lost_makes_a_timeline_incomplete_and_a_wait_doubtful(void **state)
{
	struct scene scene;

	(void)state;
	open_with_wait(&scene, TAILOR_TASK_SLEEPING, CALL_RECVFROM, IDLE);
	loses(&scene, "cpu2", 2000, 3000, 77);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1000);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 2000);
	assert_int_equal(scene.timeline.complete, 750);
	scene_close(&scene);
}

static void a_server_that_was_stopped_is_told_from_a_proxy_that_was(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 50000);
	request_leaves(&scene, 1010);
	in(&scene, 995, PROXY, IDLE);
	sleeps(&scene, 1015, PROXY);
	wake(&scene, 2980, PROXY, LOOP);
	in(&scene, 2985, PROXY, IDLE);
	out(&scene, 2986, PROXY, TAILOR_TASK_STOPPED, IDLE);
	wakes(&scene, 49980, PROXY, STRANGER, 49985);
	arrival(&scene, LOOP);
	departure(&scene, 3000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PROXY_STOPPED, 49980 - 2986);
	assert_took(&scene, TAILOR_CAUSE_STOPPED, 0);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_PROXY_STOPPED);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_wait_is_what_its_system_call_waits_for),
	        cmocka_unit_test(a_major_fault_names_its_file),
	        cmocka_unit_test(a_collection_during_a_wait_for_the_network_did_not_prolong_it),
	        cmocka_unit_test(who_has_no_quota_left_is_throttled_whether_it_ran_or_was_woken),
	        cmocka_unit_test(an_idle_cpu_tells_how_deep_it_slept),
	        cmocka_unit_test(a_cpu_that_answered_no_timer_stood_still_for_who_ran_or_waited_there),
	        cmocka_unit_test(a_stall_of_another_cpu_is_nothing_to_a_wait),
	        cmocka_unit_test(a_wait_that_a_stall_held_up_was_the_machines_from_then_on),
	        cmocka_unit_test(interrupts_are_cut_out_of_the_time_on_a_cpu),
	        cmocka_unit_test(a_storm_of_faults_is_one_story_and_few_faults_are_none),
	        cmocka_unit_test(a_safepoint_tells_how_long_it_took_to_stop_and_what_for),
	        cmocka_unit_test(a_collection_in_a_safepoint_stays_the_collectors),
	        cmocka_unit_test(what_the_client_did_not_read_the_server_waited_for_in_vain),
	        cmocka_unit_test(a_request_that_came_while_the_proxy_was_stopped_began_then),
	        cmocka_unit_test(an_arrival_at_another_port_or_before_the_lateness_is_somebody_elses),
	        cmocka_unit_test(what_was_lost_makes_a_timeline_incomplete_and_a_wait_doubtful),
	        cmocka_unit_test(a_server_that_was_stopped_is_told_from_a_proxy_that_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
