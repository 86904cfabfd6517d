/* SPDX-License-Identifier: Apache-2.0 */
/* What happens between proxy, server and client: TCP, pauses, failover, the proxy itself, and what is not recorded. */
#include "scene.h"

/* A server that answers within 100 us; the response's last byte leaves at sent_us, the request ends at end_us. */
static void quick_server(struct scene *scene, uint64_t end_us)
{
	scene_open(scene, end_us);
	arrival(scene, LOOP);
	request_leaves(scene, 1010);
	in(scene, 995, PROXY, IDLE);
	sleeps(scene, 1015, PROXY);
}

static void head_and_body_in_two_writes_show_the_body_buffered_for_40_ms_by_nagle(void **state)
{
	struct scene scene;

	(void)state;
	quick_server(&scene, 41200);
	transmits(&scene, 1100, 9000, 120);
	writes(&scene, 1102, LOOP, REQUEST, 9000, 120);
	writes(&scene, 1120, LOOP, REQUEST, 9120, 4000);
	sleeps(&scene, 1130, LOOP);
	wakes(&scene, 1104, PROXY, LOOP, 1108);
	sleeps(&scene, 1112, PROXY);
	transmits(&scene, 41120, 9120, 4000);
	wakes(&scene, 41122, PROXY, IDLE, 41130);
	scene.window.record.attempt[0].response_begin_ns = US(1110);
	scene.window.record.attempt[0].response_end_ns = US(41140);
	scene.window.record.reply_begin_ns = US(41150);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, 40000);
	assert_detail(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, "4000 bytes, waiting for an ACK (Nagle)");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_RESPONSE_BUFFERED);
	assert_int_equal(scene.timeline.server_ns, US(100));
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 0);
	scene_close(&scene);
}

static void a_buffered_response_without_an_earlier_small_write_is_not_called_nagle(void **state)
{
	struct scene scene;

	(void)state;
	quick_server(&scene, 41200);
	writes(&scene, 1120, LOOP, REQUEST, 4294967000u, 4000); /* the sequence wraps around within it */
	transmits(&scene, 41120, 4294967000u, 4000);
	wakes(&scene, 41122, PROXY, IDLE, 41130);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, 40000);
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED)->detail, "4000 bytes");
	scene_close(&scene);

	/* Nor after a full segment, which is acknowledged without delay. */
	quick_server(&scene, 41200);
	transmits(&scene, 1100, 9000, 60000);
	writes(&scene, 1102, LOOP, REQUEST, 9000, 60000);
	writes(&scene, 1120, LOOP, REQUEST, 69000, 4000);
	transmits(&scene, 41120, 69000, 4000);
	wakes(&scene, 41122, PROXY, IDLE, 41130);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, 40000);
	assert_string_equal(span_of(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED)->detail, "4000 bytes");
	scene_close(&scene);
}

static void a_transmit_inside_the_write_call_is_not_buffering_also_when_the_sequence_wraps(void **state)
{
	struct scene scene;

	(void)state;
	quick_server(&scene, 1200);
	transmits(&scene, 1100, 4294967290u, 400);
	writes(&scene, 1110, LOOP, REQUEST, 4294967290u, 400);
	wakes(&scene, 1102, PROXY, LOOP, 1106);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, 0);
	assert_took(&scene, TAILOR_CAUSE_ON_CPU, 1100 - 1016);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_TRANSIT, 2);
	scene_close(&scene);
}

static void a_lost_response_segment_is_a_retransmission(void **state)
{
	struct scene scene;

	(void)state;
	quick_server(&scene, 202000);
	departure(&scene, 1125, LOOP);
	socket_event(&scene, 201100, TAILOR_EVENT_TCP_RETRANSMIT, STRANGER, 0, 9000, 400, REQUEST);
	transmits(&scene, 201101, 9000, 400);
	wakes(&scene, 201105, PROXY, IDLE, 201110);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RETRANSMISSION, 200000);
	assert_detail(&scene, TAILOR_CAUSE_RETRANSMISSION, "of the response");
	scene_close(&scene);
}

static void a_lost_request_segment_is_a_retransmission_too(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 202000);
	proxy_story(&scene, 202000, LOOP);
	socket_event(&scene, 201010, TAILOR_EVENT_TCP_RETRANSMIT, STRANGER, 1, 5000, 300, REQUEST);
	sleeps(&scene, 500, LOOP);
	wakes(&scene, 201012, LOOP, IDLE, 201016);
	receives(&scene, 201020, LOOP, REQUEST);
	departure(&scene, 202000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_RETRANSMISSION, 200000);
	assert_detail(&scene, TAILOR_CAUSE_RETRANSMISSION, "of the request");
	assert_took(&scene, TAILOR_CAUSE_REQUEST_TRANSIT, 2);
	scene_close(&scene);
}

static void a_pause_in_the_middle_is_cut_into_time_to_safepoint_collection_and_safepoint(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 50000);
	proxy_story(&scene, 50000, LOOP);
	arrival(&scene, LOOP);
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

/* A connection that was made during the pause: the server's loop hears of it only when something else wakes it. */
static void a_request_in_a_socket_that_nobody_waits_on_is_not_in_transit(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 190000);
	proxy_story(&scene, 190000, LOOP);
	sleeps(&scene, 500, LOOP);
	collects(&scene, SERVER, 1100, 171100, "Serial young\tAllocation Failure");
	wakes(&scene, 180000, LOOP, PROXY, 180004);
	receives(&scene, 180010, LOOP, REQUEST);
	departure(&scene, 190000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_GC, 170000);
	assert_took(&scene, TAILOR_CAUSE_REQUEST_TRANSIT, 0);
	assert_took(&scene, TAILOR_CAUSE_SERVER, (1100 - 1010) + (180000 - 171100));
	assert_detail(&scene, TAILOR_CAUSE_SERVER, "in the socket");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_GC);
	scene_close(&scene);
}

static void a_packet_that_the_kernel_delivers_late_is_in_transit(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 9000);
	proxy_story(&scene, 9000, LOOP);
	sleeps(&scene, 500, LOOP);
	memcpy(&wake(&scene, 6000, LOOP, STRANGER)->arg[1], "ksoftirqd/1\0\0\0\0", 16);
	in(&scene, 6004, LOOP, IDLE);
	receives(&scene, 6010, LOOP, REQUEST);
	departure(&scene, 9000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_REQUEST_TRANSIT, 6000 - 1010);
	scene_close(&scene);
}

static void native_code_that_runs_on_during_a_pause_stays_on_cpu(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 5000);
	proxy_story(&scene, 5000, LOOP);
	arrival(&scene, LOOP);
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
	scene_open(&scene, 5000);
	proxy_story(&scene, 5000, LOOP);
	arrival(&scene, LOOP);
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

static void losses_where_a_threads_story_breaks_leave_it_unexplained(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 5000);
	proxy_story(&scene, 5000, LOOP);
	arrival(&scene, LOOP);
	sleeps(&scene, 2000, LOOP);
	in(&scene, 4000, LOOP, IDLE); /* the wake-up is lost */
	departure(&scene, 5000, LOOP);
	scene.losses[0] = (struct tailor_loss){"cpu0", US(1990), US(4100), 17};
	scene.window.loss_count = 1;
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
	scene_open(&scene, 5000);
	proxy_story(&scene, 5000, LOOP);
	arrival(&scene, LOOP);
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
	scene_open(&scene, 5000);
	proxy_story(&scene, 5000, LOOP);
	arrival(&scene, LOOP);
	departure(&scene, 5000, LOOP);
	scene.losses[0] = (struct tailor_loss){"cpu1", US(2000), US(3000), 5};
	scene.window.loss_count = 1;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1000);
	assert_detail(&scene, TAILOR_CAUSE_UNEXPLAINED, "events of CPU 1 were lost");
	scene_close(&scene);

	/* Also for a thread of which no switch was recorded. */
	scene_open(&scene, 5000);
	receives(&scene, 1020, LOOP, REQUEST);
	departure(&scene, 5000, LOOP);
	scene.losses[0] = (struct tailor_loss){"cpu1", US(2000), US(3000), 5};
	scene.window.loss_count = 1;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 1000);
	scene_close(&scene);
}

static void a_client_that_reads_slowly_is_blamed_only_when_the_worker_slept(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 12000);
	scene.window.record.attempt[0].response_end_ns = US(1990);
	scene.window.record.reply_begin_ns = US(1995);
	proxy_story(&scene, 2000, LOOP);
	arrival(&scene, LOOP);
	departure(&scene, 2000, LOOP);
	sleeps(&scene, 2000, PROXY);
	wakes(&scene, 11980, PROXY, IDLE, 11990);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SLOW_CLIENT, 9980);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_SLOW_CLIENT);
	scene_close(&scene);

	/* The same without the proxy's scheduling: nobody can tell. */
	scene_open(&scene, 12000);
	scene.window.record.attempt[0].response_end_ns = US(1990);
	scene.window.record.reply_begin_ns = US(1995);
	arrival(&scene, LOOP);
	departure(&scene, 2000, LOOP);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_SLOW_CLIENT, 0);
	assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, 12000 - 1995);
	scene_close(&scene);
}

/* The server's thread waits while the proxy passes a long response on: for itself, or because the client reads no faster? */
static void a_wait_in_the_middle_of_a_long_response_is_not_blamed_on_the_server(void **state)
{
	struct scene scene;

	(void)state;
	for (int is_long = 0; is_long < 2; is_long++) {
		scene_open(&scene, 9000);
		proxy_story(&scene, 9000, LOOP);
		arrival(&scene, LOOP);
		sleeps(&scene, 2000, LOOP);
		wakes(&scene, 8000, LOOP, IDLE, 8005);
		departure(&scene, 9000, LOOP);
		scene.window.record.attempt[0].response_begin_ns = US(1900);
		scene.window.record.reply_begin_ns = US(1950);
		scene.window.record.request.response_bytes = is_long ? 50000000 : 400;
		explain(&scene);
		assert_took(&scene, TAILOR_CAUSE_BLOCKED_SLEEP, is_long ? 0 : 6000);
		assert_took(&scene, TAILOR_CAUSE_UNEXPLAINED, is_long ? 6000 : 0);
		if (is_long)
			assert_detail(&scene, TAILOR_CAUSE_UNEXPLAINED, "slow client or slow server");
		scene_close(&scene);
	}
}

static void a_proxy_without_a_cpu_is_the_proxys_own_fault(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 9000);
	request_leaves(&scene, 1010);
	in(&scene, 995, PROXY, IDLE);
	sleeps(&scene, 1015, PROXY);
	arrival(&scene, LOOP);
	departure(&scene, 2000, LOOP);
	wake(&scene, 1976, PROXY, LOOP);
	in(&scene, 8976, PROXY, STRANGER);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PROXY_RUN_QUEUE, 7000);
	assert_detail(&scene, TAILOR_CAUSE_PROXY_RUN_QUEUE, "the CPU had some-task (pid 900)");
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_PROXY_RUN_QUEUE);
	scene_close(&scene);
}

static void connecting_is_waiting_for_a_connection(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 9000);
	scene.window.record.attempt[0].send_ns = US(4005);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_CONNECTION_WAIT, 3000);
	scene_close(&scene);
}

static void a_wait_for_a_place_at_the_server_is_neither_its_nor_the_proxys_work(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 9000);
	scene.window.record.queued_ns = US(1005);
	scene.window.record.attempt[0].begin_ns = US(5005);
	scene.window.record.attempt[0].send_ns = US(5006);
	scene.window.record.attempt[0].sent_ns = US(5012);
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_LIMIT_WAIT, 4000);
	assert_detail(&scene, TAILOR_CAUSE_LIMIT_WAIT, "the server had as many requests as limits.in_flight allows");
	scene_close(&scene);

	/* In vain: refused when the time in the queue was over. */
	scene_open(&scene, 9000);
	scene.window.record.queued_ns = US(1005);
	scene.window.record.attempts = 0;
	scene.window.record.answered = -1;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_LIMIT_WAIT, 8995 - 1005);
	assert_int_equal(scene.timeline.dominant, TAILOR_CAUSE_LIMIT_WAIT);
	scene_close(&scene);
}

static void a_request_that_the_proxy_answers_itself_is_the_proxys(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 1100);
	scene.window.record.attempts = 0;
	scene.window.record.answered = -1;
	explain(&scene);
	assert_took(&scene, TAILOR_CAUSE_PROXY, 100);
	scene_close(&scene);
}

/* The connection's last exchange: its write was preempted after the bytes had left, and returned when the tag was new. */
static void a_write_before_the_request_was_received_is_not_its_response(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 1200);
	proxy_story(&scene, 1200, LOOP);
	writes(&scene, 1008, LOOP, REQUEST, 8000, 400);
	arrival(&scene, LOOP);
	explain(&scene);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_NONE);
	assert_int_equal(scene.timeline.server_ns, 0);
	assert_took(&scene, TAILOR_CAUSE_RESPONSE_BUFFERED, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(head_and_body_in_two_writes_show_the_body_buffered_for_40_ms_by_nagle),
	        cmocka_unit_test(a_buffered_response_without_an_earlier_small_write_is_not_called_nagle),
	        cmocka_unit_test(a_transmit_inside_the_write_call_is_not_buffering_also_when_the_sequence_wraps),
	        cmocka_unit_test(a_lost_response_segment_is_a_retransmission),
	        cmocka_unit_test(a_lost_request_segment_is_a_retransmission_too),
	        cmocka_unit_test(a_pause_in_the_middle_is_cut_into_time_to_safepoint_collection_and_safepoint),
	        cmocka_unit_test(a_pause_while_the_request_waits_in_the_socket_is_the_collectors),
	        cmocka_unit_test(native_code_that_runs_on_during_a_pause_stays_on_cpu),
	        cmocka_unit_test(a_safepoint_without_a_collection_is_only_a_safepoint),
	        cmocka_unit_test(without_kernel_events_the_agent_alone_explains_the_pause_and_the_rest_is_the_server),
	        cmocka_unit_test(a_collection_that_has_not_ended_is_said_to_go_on),
	        cmocka_unit_test(a_moved_request_shows_what_was_lost_on_the_paused_server),
	        cmocka_unit_test(a_refused_connection_is_a_failover_wait_that_says_so),
	        cmocka_unit_test(losses_where_a_threads_story_breaks_leave_it_unexplained),
	        cmocka_unit_test(two_switch_ins_in_a_row_are_not_bridged),
	        cmocka_unit_test(a_cpu_whose_events_were_lost_proves_nothing_about_who_ran_there),
	        cmocka_unit_test(a_client_that_reads_slowly_is_blamed_only_when_the_worker_slept),
	        cmocka_unit_test(a_wait_in_the_middle_of_a_long_response_is_not_blamed_on_the_server),
	        cmocka_unit_test(a_proxy_without_a_cpu_is_the_proxys_own_fault),
	        cmocka_unit_test(connecting_is_waiting_for_a_connection),
	        cmocka_unit_test(a_wait_for_a_place_at_the_server_is_neither_its_nor_the_proxys_work),
	        cmocka_unit_test(a_request_that_the_proxy_answers_itself_is_the_proxys),
	        cmocka_unit_test(a_write_before_the_request_was_received_is_not_its_response),
	        cmocka_unit_test(a_record_without_an_end_is_refused),
		cmocka_unit_test(a_request_in_a_socket_that_nobody_waits_on_is_not_in_transit),
		cmocka_unit_test(a_packet_that_the_kernel_delivers_late_is_in_transit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
