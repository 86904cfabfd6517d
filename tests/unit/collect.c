/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "collect/requests.h"
#include "collect/tail.h"
#include "collect_ring.h"

/* A whole request: two attempts, the second answers. */
static void put_failed_over(struct ring *ring, uint64_t id, uint64_t start_ns)
{
	uint32_t first = TAILOR_ATTEMPT(0, 0, TAILOR_FAILOVER_NONE), second = TAILOR_ATTEMPT(1, 1, TAILOR_FAILOVER_GC);

	put(ring, TAILOR_EVENT_REQUEST_BEGIN, id, start_ns, 0, 5555, 0, 0, NULL);
	put(ring, TAILOR_EVENT_REQUEST_PARSED, id, start_ns + 1, 0, 0, 0, 0, "GET /search?q=a-target-that-is-longer-than-one-slot-of-text-can-hold");
	put(ring, TAILOR_EVENT_ATTEMPT_BEGIN, id, start_ns + 2, first, 0, 0, 0, NULL);
	put(ring, TAILOR_EVENT_ATTEMPT_SEND, id, start_ns + 3, first, 4001, 0, 0, NULL);
	put(ring, TAILOR_EVENT_ATTEMPT_SENT, id, start_ns + 4, first, 4001, 0, 0, NULL);
	put(ring, TAILOR_EVENT_ATTEMPT_SEND, id, start_ns + 11, second, 4002, 1, 0, NULL); /* on an idle connection */
	put(ring, TAILOR_EVENT_ATTEMPT_SENT, id, start_ns + 12, second, 4002, 0, 0, NULL);
	put(ring, TAILOR_EVENT_RESPONSE_BEGIN, id, start_ns + 20, second, 4002, 0, 0, NULL);
	put(ring, TAILOR_EVENT_ATTEMPT_END, id, start_ns + 21, first, 4001, TAILOR_ATTEMPT_END_LOST, 0, NULL);
	put(ring, TAILOR_EVENT_RESPONSE_END, id, start_ns + 22, second, 4002, 777, 0, NULL);
	put(ring, TAILOR_EVENT_REPLY_BEGIN, id, start_ns + 23, 0, 0, 0, 0, NULL);
	put(ring, TAILOR_EVENT_REQUEST_END, id, start_ns + 24, 200, 777, TAILOR_REQUEST_END_DONE, second, NULL);
}

/* The same for one that came, and was answered, in one piece. */
static void put_at_once(struct ring *ring, uint64_t id, uint64_t start_ns)
{
	uint32_t only = TAILOR_ATTEMPT(0, 0, TAILOR_FAILOVER_NONE);

	put(ring, TAILOR_EVENT_REQUEST_PARSED, id, start_ns + 1, 0, 1, start_ns, TAILOR_CLIENT(5555, 0x7f000001), "GET /at-once");
	put(ring, TAILOR_EVENT_ATTEMPT_SEND, id, start_ns + 1, only, 4001, 1, 0, NULL);
	put(ring, TAILOR_EVENT_ATTEMPT_SENT, id, start_ns + 2, only, 4001, 0, 0, NULL);
	put(ring, TAILOR_EVENT_RESPONSE_END, id, start_ns + 9, only, 4001, 77, TAILOR_RESPONSE_BEGAN | TAILOR_RESPONSE_REPLIED, NULL);
	put(ring, TAILOR_EVENT_REQUEST_END, id, start_ns + 11, 200, 99, TAILOR_REQUEST_END_DONE, only, NULL);
}

/* A worker's channel, its reader, and what that has made of it. */
struct seen {
	struct ring ring;
	struct tailor_requests *requests;
	size_t count;
	struct tailor_record last;
};

static void see(void *context, size_t worker, const struct tailor_record *record)
{
	struct seen *seen = context;

	(void)worker;
	seen->count++;
	seen->last = *record;
}

static void seen_open(struct seen *seen, size_t open_max)
{
	memset(seen, 0, sizeof(*seen));
	ring_open(&seen->ring);
	assert_int_equal(tailor_requests_open(&seen->ring.channel, 1, open_max, &seen->requests), 0);
}

static void poll_all(struct seen *seen)
{
	tailor_requests_poll(seen->requests, 5000, see, seen);
}

static void events_that_stand_for_others_are_those_too(void **state)
{
	struct seen seen;

	(void)state;
	seen_open(&seen, 8);
	put_at_once(&seen.ring, 43, 1000);
	poll_all(&seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.request.id, 43);
	assert_int_equal(seen.last.request.begin_ns, 1000);
	assert_int_equal(seen.last.client_ip, 0x7f000001);
	assert_int_equal(seen.last.minor, 1);
	assert_int_equal(seen.last.worker_pid, 10);
	assert_int_equal(seen.last.worker_tid, 11);
	assert_string_equal(seen.last.request.target, "GET /at-once");
	assert_int_equal(seen.last.parsed_ns, 1001);
	assert_int_equal(seen.last.attempts, 1);
	assert_int_equal(seen.last.attempt[0].begin_ns, 1001);
	assert_int_equal(seen.last.attempt[0].response_begin_ns, 1009);
	assert_int_equal(seen.last.attempt[0].response_end_ns, 1009);
	assert_int_equal(seen.last.reply_begin_ns, 1009);
	assert_int_equal(seen.last.answered, 0);
	assert_int_equal(seen.last.request.end_ns, 1011);
	tailor_requests_close(seen.requests);
}

static void a_request_is_put_together_from_its_events(void **state)
{
	struct seen seen;

	(void)state;
	seen_open(&seen, 8);
	put_failed_over(&seen.ring, 42, 1000);
	poll_all(&seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.request.id, 42);
	assert_int_equal(seen.last.request.begin_ns, 1000);
	assert_int_equal(seen.last.request.end_ns, 1024);
	assert_int_equal(seen.last.request.status, 200);
	assert_int_equal(seen.last.request.response_bytes, 777);
	assert_int_equal(seen.last.request.failover, TAILOR_FAILOVER_GC);
	assert_string_equal(seen.last.request.target, "GET /search?q=a-target-that-is-longer-than-one-slot-of-text-can-hold");
	assert_int_equal(seen.last.attempts, 2);
	assert_int_equal(seen.last.answered, 1);
	assert_int_equal(seen.last.attempt[0].end, TAILOR_ATTEMPT_END_LOST);
	assert_int_equal(seen.last.attempt[0].begin_ns, 1002);
	assert_int_equal(seen.last.attempt[0].send_ns, 1003);
	assert_int_equal(seen.last.attempt[1].begin_ns, 1011);
	assert_int_equal(seen.last.attempt[1].send_ns, 1011);
	assert_int_equal(seen.last.attempt[0].response_begin_ns, 0);
	assert_int_equal(seen.last.attempt[1].server, 1);
	assert_int_equal(seen.last.attempt[1].port, 4002);
	assert_int_equal(seen.last.attempt[1].response_end_ns, 1022);
	assert_int_equal(seen.last.worker_tid, 11);
	tailor_requests_close(seen.requests);
}

/* A server began to answer with something that was no HTTP, and the proxy answered in its stead. */
static void a_refused_request_was_answered_by_no_attempt(void **state)
{
	struct seen seen;
	uint32_t first = TAILOR_ATTEMPT(0, 0, TAILOR_FAILOVER_NONE);

	(void)state;
	seen_open(&seen, 8);
	put(&seen.ring, TAILOR_EVENT_REQUEST_BEGIN, 42, 1000, 0, 0, 0, 0, NULL);
	put(&seen.ring, TAILOR_EVENT_ATTEMPT_BEGIN, 42, 1001, first, 4001, 0, 0, NULL);
	put(&seen.ring, TAILOR_EVENT_RESPONSE_BEGIN, 42, 1002, first, 4001, 0, 0, NULL);
	put(&seen.ring, TAILOR_EVENT_ATTEMPT_END, 42, 1003, first, 4001, TAILOR_ATTEMPT_END_BAD, 0, NULL);
	put(&seen.ring, TAILOR_EVENT_REQUEST_END, 42, 1004, TAILOR_ENDED(502, TAILOR_REFUSED_SERVER_FAILED), 90, TAILOR_REQUEST_END_REFUSED,
	    TAILOR_ATTEMPT_NONE, NULL);
	poll_all(&seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.attempts, 1);
	assert_int_equal(seen.last.answered, -1);
	assert_int_equal(seen.last.request.status, 502);
	assert_int_equal(seen.last.refusal, TAILOR_REFUSED_SERVER_FAILED);
	assert_int_equal(tailor_failed_attempt(&seen.last), 0);
	tailor_requests_close(seen.requests);
}

static void requests_in_any_order_keep_apart(void **state)
{
	struct seen seen;

	(void)state;
	seen_open(&seen, 16);
	for (uint64_t id = 1; id <= 16; id++)
		put(&seen.ring, TAILOR_EVENT_REQUEST_BEGIN, id, 1000 + id, 0, 0, 0, 0, NULL);
	for (uint64_t id = 16; id >= 1; id--)
		put(&seen.ring, TAILOR_EVENT_REQUEST_END, id, 2000 + id, 404, 0, TAILOR_REQUEST_END_REFUSED, 0, NULL);
	poll_all(&seen);
	assert_int_equal(seen.count, 16);
	assert_int_equal(seen.last.request.id, 1);
	assert_int_equal(seen.last.request.begin_ns, 1001);
	assert_int_equal(seen.last.answered, -1);
	tailor_requests_close(seen.requests);
}

static void an_overrun_channel_is_counted_and_half_requests_are_dropped(void **state)
{
	struct seen seen;
	struct tailor_loss loss;

	(void)state;
	seen_open(&seen, 8);
	put(&seen.ring, TAILOR_EVENT_REQUEST_BEGIN, 1, 100, 0, 0, 0, 0, NULL);
	poll_all(&seen);
	for (uint64_t i = 0; i < 100; i++)
		put(&seen.ring, TAILOR_EVENT_REQUEST_END, 1000 + i, 200 + i, 200, 0, 0, 0, NULL);
	poll_all(&seen);
	assert_int_equal(seen.count, 0);
	assert_int_equal(tailor_requests_lost(seen.requests, 0), 36);
	loss = tailor_requests_last_loss(seen.requests, 0);
	assert_int_equal(loss.events, 36);
	assert_int_equal(loss.from_ns, 100);
	assert_int_equal(loss.to_ns, 236);
	assert_string_equal(loss.channel, "worker0");
	tailor_requests_close(seen.requests);
}

static void requests_whose_end_was_lost_make_room(void **state)
{
	struct seen seen;

	(void)state;
	seen_open(&seen, 1);
	for (uint64_t id = 1; id <= 1000; id++) {
		put(&seen.ring, TAILOR_EVENT_REQUEST_BEGIN, id, id, 0, 0, 0, 0, NULL);
		poll_all(&seen);
	}
	put(&seen.ring, TAILOR_EVENT_REQUEST_END, 1000, 2000, 200, 0, 0, 0, NULL);
	poll_all(&seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.request.begin_ns, 1000);
	tailor_requests_close(seen.requests);
}

static void a_position_that_is_never_published_is_skipped_after_a_while(void **state)
{
	struct tailor_event event;
	struct tailor_tail tail;
	uint64_t position;
	struct ring ring;

	(void)state;
	ring_open(&ring);
	tailor_tail_open(&tail, &ring.channel, 1);
	put(&ring, TAILOR_EVENT_GC_START, 0, 10, 0, 0, 0, 0, NULL);
	tailor_channel_reserve(&ring.head, 1); /* a producer that died here */
	put(&ring, TAILOR_EVENT_GC_FINISH, 0, 30, 0, 0, 0, 0, NULL);
	assert_int_equal(tailor_tail_next(&tail, 1000, &event, &position), 1);
	assert_int_equal(tailor_tail_next(&tail, 1000, &event, &position), 0);
	assert_int_equal(tailor_tail_next(&tail, 500000, &event, &position), 0);
	assert_int_equal(tailor_tail_next(&tail, 1500000, &event, &position), 1);
	assert_int_equal(event.kind, TAILOR_EVENT_GC_FINISH);
	assert_int_equal(tail.lost, 1);
}

struct stops {
	size_t count;
	struct tailor_stopped last;
};

static void see_stop(void *context, size_t worker, const struct tailor_stopped *stopped)
{
	struct stops *stops = context;

	assert_int_equal(worker, 0);
	stops->count++;
	stops->last = *stopped;
}

static void what_a_worker_did_about_a_stop_is_told_in_full(void **state)
{
	struct tailor_requests *requests;
	struct stops stops = {0};
	struct seen seen = {0};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 8, &requests), 0);
	put(&ring, TAILOR_EVENT_SERVER_STOPPED, 0, 100, 0, 50, 0, 0, NULL); /* nobody asks yet */
	tailor_requests_poll(requests, 5000, see, &seen);
	tailor_requests_watch_stops(requests, see_stop, &stops);
	put(&ring, TAILOR_EVENT_SERVER_STOPPED, 0, 900000, TAILOR_STOPPED(3, TAILOR_STOP_SAFEPOINT, 12), 500, TAILOR_STOP_TIMES(31, 412),
	    TAILOR_STOP_MOVES(9, 3, 5), "GCLocker Initiated GC");
	put_at_once(&ring, 43, 1000);
	tailor_requests_poll(requests, 5000, see, &seen);
	assert_int_equal(stops.count, 1);
	assert_int_equal(stops.last.server, 3);
	assert_int_equal(stops.last.kind, TAILOR_STOP_SAFEPOINT);
	assert_int_equal(stops.last.begin_ns, 500);
	assert_int_equal(stops.last.end_ns, 900000);
	assert_int_equal(stops.last.noticed_ns, 31000);
	assert_int_equal(stops.last.replayed_ns, 412000);
	assert_int_equal(stops.last.in_flight, 12);
	assert_int_equal(stops.last.moved, 9);
	assert_int_equal(stops.last.not_moved, 3);
	assert_int_equal(stops.last.why_not, 5);
	assert_string_equal(stops.last.cause, "GCLocker Initiated GC");
	assert_int_equal(seen.count, 1); /* requests go on beside it */
	/* Without a cause; and one that ends before it began is none. */
	put(&ring, TAILOR_EVENT_SERVER_STOPPED, 0, 950000, TAILOR_STOPPED(0, TAILOR_STOP_STALL, 1), 940000, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SERVER_STOPPED, 0, 960000, TAILOR_STOPPED(0, TAILOR_STOP_STALL, 1), 960001, 0, 0, NULL);
	tailor_requests_poll(requests, 5000, see, &seen);
	assert_int_equal(stops.count, 2);
	assert_string_equal(stops.last.cause, "");
	tailor_requests_close(requests);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_put_together_from_its_events),
		cmocka_unit_test(events_that_stand_for_others_are_those_too),
		cmocka_unit_test(a_refused_request_was_answered_by_no_attempt),
		cmocka_unit_test(requests_in_any_order_keep_apart),
		cmocka_unit_test(an_overrun_channel_is_counted_and_half_requests_are_dropped),
		cmocka_unit_test(requests_whose_end_was_lost_make_room),
		cmocka_unit_test(what_a_worker_did_about_a_stop_is_told_in_full),
		cmocka_unit_test(a_position_that_is_never_published_is_skipped_after_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
