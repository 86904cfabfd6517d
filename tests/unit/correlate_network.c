/* SPDX-License-Identifier: Apache-2.0 */
/* What happens between proxy, server and client: TCP, slow clients, the proxy itself. */
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
	assert_detail(&scene, TAILOR_CAUSE_RETRANSMISSION, "of the response, bytes 0..399");
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
	assert_detail(&scene, TAILOR_CAUSE_RETRANSMISSION, "of the request, bytes 0..299");
	assert_took(&scene, TAILOR_CAUSE_REQUEST_TRANSIT, 2);
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
	assert_detail(&scene, TAILOR_CAUSE_PROXY_RUN_QUEUE, "CPU 1 had some-task (pid 900)");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_and_body_in_two_writes_show_the_body_buffered_for_40_ms_by_nagle),
		cmocka_unit_test(a_buffered_response_without_an_earlier_small_write_is_not_called_nagle),
		cmocka_unit_test(a_transmit_inside_the_write_call_is_not_buffering_also_when_the_sequence_wraps),
		cmocka_unit_test(a_lost_response_segment_is_a_retransmission),
		cmocka_unit_test(a_lost_request_segment_is_a_retransmission_too),
		cmocka_unit_test(a_request_in_a_socket_that_nobody_waits_on_is_not_in_transit),
		cmocka_unit_test(a_packet_that_the_kernel_delivers_late_is_in_transit),
		cmocka_unit_test(a_client_that_reads_slowly_is_blamed_only_when_the_worker_slept),
		cmocka_unit_test(a_wait_in_the_middle_of_a_long_response_is_not_blamed_on_the_server),
		cmocka_unit_test(a_proxy_without_a_cpu_is_the_proxys_own_fault),
		cmocka_unit_test(connecting_is_waiting_for_a_connection),
		cmocka_unit_test(a_wait_for_a_place_at_the_server_is_neither_its_nor_the_proxys_work),
		cmocka_unit_test(a_request_that_the_proxy_answers_itself_is_the_proxys),
		cmocka_unit_test(a_write_before_the_request_was_received_is_not_its_response),
		cmocka_unit_test(tcp_says_why_it_kept_the_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
