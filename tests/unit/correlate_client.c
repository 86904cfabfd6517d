/* SPDX-License-Identifier: Apache-2.0 */
/* What the client is the cause of: when its request was there, and how it took the response. */
#include "scene.h"

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

static void a_server_that_waits_for_room_in_poll_waits_for_the_client(void **state)
{
	struct scene scene;
	struct tailor_record *record = &scene.window.record;

	(void)state;
	scene_open_at_loop(&scene, 5000);
	sleeps_in(&scene, 1100, LOOP, TAILOR_TASK_SLEEPING, CALL_POLL + 1);
	wakes(&scene, 4100, LOOP, IDLE, 4105);
	departure(&scene, 5000, LOOP);
	record->client_waits = 1;
	record->client_wait[0] = (struct tailor_client_wait){.start_ns = US(1200), .end_ns = US(4000), .bytes = 65536, .window_us = 2700};
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SLOW_CLIENT, 2800);
	assert_took(&scene, TAILOR_CAUSE_BLOCKED_NETWORK, 200);
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
		sleeps_in(&scene, 36000, LOOP, TAILOR_TASK_SLEEPING, CALL_POLL + 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_that_came_while_the_proxy_was_stopped_begins_when_it_came),
		cmocka_unit_test(what_tcp_says_tells_when_a_request_came_that_no_event_tells),
		cmocka_unit_test(what_waits_while_the_client_takes_nothing_waits_for_the_client),
		cmocka_unit_test(a_server_that_waits_for_room_in_poll_waits_for_the_client),
		cmocka_unit_test(many_short_waits_for_the_client_are_the_clients_if_most_was_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
