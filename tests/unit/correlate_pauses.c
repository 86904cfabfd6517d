/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses of a JVM and what failover made of them. */
#include "scene.h"

static void a_pause_in_the_middle_is_cut_into_time_to_safepoint_collection_and_safepoint(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 50000);
	sleeps(&scene, 1100, LOOP);
	collects(&scene, SERVER, 1150, 44350, "Copy\tAllocation Failure");
	wakes(&scene, 44390, LOOP, VM_THREAD, 44400);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_TIME_TO_SAFEPOINT, 50);
	assert_took(&scene, TAILOR_CAUSE_GC, 43200);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 40);
	assert_detail(&scene, TAILOR_CAUSE_SAFEPOINT, "from the collection's end");
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_GC)->detail,
	                    "Serial young, Allocation Failure, pause 43.2 ms");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_GC);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	scene_close(&scene);
}

static void a_pause_while_the_request_waits_in_the_socket_is_the_collectors(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 50000);
	proxy_story(&scene, 50000, LOOP);
	sleeps(&scene, 500, LOOP);
	collects(&scene, SERVER, 900, 44000, NULL);
	wakes(&scene, 1012, LOOP, PROXY, 1016); /* returns from the kernel into the safepoint */
	sleeps(&scene, 1020, LOOP);
	wakes(&scene, 44020, LOOP, VM_THREAD, 44030);
	receives(&scene, 44040, LOOP, REQUEST);
	departure(&scene, 50000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_GC, (44000 - 1020) + 4);
	assert_detail(&scene, TAILOR_CAUSE_GC, "pause 43.1 ms");
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 20);
	scene_close(&scene);
}

static void native_code_that_runs_on_during_a_pause_stays_on_cpu(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	collects(&scene, SERVER, 2000, 3000, "Copy\tAllocation Failure");
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_GC, 0);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 4975 - 1016);
	scene_close(&scene);
}

static void a_safepoint_without_a_collection_is_only_a_safepoint(void **state)
{
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	sleeps(&scene, 2000, LOOP);
	wakes(&scene, 4000, LOOP, VM_THREAD, 4005);
	departure(&scene, 5000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 2000);
	assert_detail(&scene, TAILOR_CAUSE_SAFEPOINT, "not for a collection");
	scene_close(&scene);

	/* Without an agent nobody can say what it was for. */
	scene.window.missing = TAILOR_MISSING_AGENT;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SAFEPOINT, 2000);
	assert_false(says(&scene, TAILOR_CAUSE_SAFEPOINT, "not for a collection"));
	scene_close(&scene);
}

static void without_kernel_events_the_agent_alone_explains_the_pause_and_the_rest_is_the_server(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 50000);
	scene.window.missing = TAILOR_MISSING_KERNEL;
	collects(&scene, SERVER, 2000, 42000, "G1 Young Generation\tG1 Evacuation Pause");
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_GC, 40000);
	assert_took(&scene, TAILOR_CAUSE_SERVER, (2000 - 1006) + (49988 - 42000));
	assert_detail(&scene, TAILOR_CAUSE_GC, "G1 young, G1 Evacuation Pause, pause 40.0 ms");
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_NONE);
	assert_int_equal(scene.timeline.missing, TAILOR_MISSING_KERNEL);
	assert_int_equal(scene.timeline.server_ns, 0);
	scene_close(&scene);
}

static void a_collection_that_has_not_ended_is_said_to_go_on(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 50000);
	scene.window.missing = TAILOR_MISSING_KERNEL;
	collects(&scene, SERVER, 2000, 0, NULL);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_GC, 49988 - 2000);
	assert_detail(&scene, TAILOR_CAUSE_GC, "still going on");
	scene_close(&scene);
}

static void a_moved_request_shows_what_was_lost_on_the_paused_server(void **state)
{
	struct scene scene;
	struct tailor_record *record = &scene.window.record;

	(void)state;
	scene_open(&scene, 3000);
	request_leaves(&scene, 1010);
	arrival(&scene, LOOP);
	collects(&scene, SERVER, 1200, 140000, "Copy\tAllocation Failure");
	record->attempts = record->request.attempts = 2;
	record->answered = 1;
	record->attempt[1] = record->attempt[0];
	record->attempt[1] = (struct tailor_attempt){.server = 1,
	                                             .reason = TAILOR_FAILOVER_GC,
	                                             .port = 41000,
	                                             .begin_ns = US(1280),
	                                             .send_ns = US(1282),
	                                             .response_begin_ns = US(2990),
	                                             .response_end_ns = US(2990)};
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_FAILOVER_WAIT, 80);
	assert_detail(&scene, TAILOR_CAUSE_FAILOVER_WAIT, "server a paused (Serial young), moved to b after 80.0 us");
	assert_took(&scene, TAILOR_CAUSE_GC, 0);
	assert_took(&scene, TAILOR_CAUSE_SERVER, (1200 - 1020) + (2990 - 1282));
	scene_close(&scene);
}

static void a_refused_connection_is_a_failover_wait_that_says_so(void **state)
{
	struct scene scene;
	struct tailor_record *record = &scene.window.record;

	(void)state;
	scene_open(&scene, 3000);
	record->attempts = 2;
	record->answered = 1;
	record->attempt[1] = record->attempt[0];
	record->attempt[0].send_ns = 0;
	record->attempt[0].end = TAILOR_ATTEMPT_END_CONNECT;
	record->attempt[1].server = 1;
	record->attempt[1].reason = TAILOR_FAILOVER_CONNECT;
	record->attempt[1].begin_ns = record->attempt[1].send_ns = US(1505);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_FAILOVER_WAIT, 500);
	assert_detail(&scene, TAILOR_CAUSE_FAILOVER_WAIT, "a could not be reached, moved to b");
	scene_close(&scene);
}

/* Begins at from, all have stopped at stopped, goes on at to. */
static void safepoint(struct scene *scene, uint64_t from, uint64_t stopped, uint64_t to, const char *operation)
{
	scene_add(scene, from, TAILOR_EVENT_SAFEPOINT_BEGIN, VM_THREAD);
	with_text(scene_add(scene, stopped, TAILOR_EVENT_VM_OPERATION_BEGIN, VM_THREAD), operation);
	scene_add(scene, to - 1, TAILOR_EVENT_VM_OPERATION_END, VM_THREAD);
	scene_add(scene, to, TAILOR_EVENT_SAFEPOINT_END, VM_THREAD);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_in_the_middle_is_cut_into_time_to_safepoint_collection_and_safepoint),
		cmocka_unit_test(a_pause_while_the_request_waits_in_the_socket_is_the_collectors),
		cmocka_unit_test(native_code_that_runs_on_during_a_pause_stays_on_cpu),
		cmocka_unit_test(a_safepoint_without_a_collection_is_only_a_safepoint),
		cmocka_unit_test(without_kernel_events_the_agent_alone_explains_the_pause_and_the_rest_is_the_server),
		cmocka_unit_test(a_collection_that_has_not_ended_is_said_to_go_on),
		cmocka_unit_test(a_moved_request_shows_what_was_lost_on_the_paused_server),
		cmocka_unit_test(a_refused_connection_is_a_failover_wait_that_says_so),
		cmocka_unit_test(the_time_to_safepoint_and_the_operation_are_told_apart),
		cmocka_unit_test(the_jvms_own_count_tells_the_time_to_safepoint_without_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
