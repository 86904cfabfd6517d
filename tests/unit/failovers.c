/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers say of stops of servers, put together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "observer/failovers.h"

#define US TAILOR_NS_PER_US
#define MS TAILOR_NS_PER_MS
#define AT (TAILOR_NS_PER_S * 1000)
#define LATER (AT + TAILOR_NS_PER_S * 100)

static struct tailor_failovers failovers;

static int make(void **state)
{
	(void)state;
	return tailor_failovers_init(&failovers);
}

static int drop(void **state)
{
	(void)state;
	tailor_failovers_free(&failovers);
	return 0;
}

/* A worker's word; times are in us after AT. */
static struct tailor_stopped stop_of(unsigned int server, enum tailor_stop_kind kind, uint64_t begin_us, uint64_t end_us)
{
	return (struct tailor_stopped){.server = server,
	                               .kind = kind,
	                               .begin_ns = AT + begin_us * US,
	                               .end_ns = AT + end_us * US,
	                               .noticed_ns = 30 * US,
	                               .in_flight = 1};
}

static void tell(size_t worker, struct tailor_stopped stopped)
{
	tailor_failovers_stopped(&failovers, worker, &stopped);
}

/* The next one that is settled; fails when there is none. */
static struct tailor_failover next(unsigned int expected_server)
{
	struct tailor_failover failover;
	unsigned int server, why;

	assert_int_equal(tailor_failovers_settled(&failovers, LATER, &failover, &server, &why), 1);
	assert_int_equal(server, expected_server);
	return failover;
}

static void no_more(void)
{
	struct tailor_failover failover;
	unsigned int server, why;

	assert_int_equal(tailor_failovers_settled(&failovers, UINT64_MAX, &failover, &server, &why), 0);
}

static void what_several_workers_say_of_one_stop_is_one_failover(void **state)
{
	struct tailor_stopped first = stop_of(1, TAILOR_STOP_GC, 200, 50000), second = stop_of(1, TAILOR_STOP_SAFEPOINT, 0, 50400);
	struct tailor_failover failover;
	unsigned int server, why;

	(void)state;
	first.in_flight = 7;
	first.moved = 5;
	first.not_moved = 2;
	first.why_not = 3;
	first.replayed_ns = 500 * US;
	strcpy(first.cause, "Allocation Failure");
	second.in_flight = 4;
	second.moved = 1;
	second.not_moved = 3;
	second.why_not = 5;
	second.replayed_ns = 90 * US;
	tell(0, first);
	tell(1, second);
	assert_int_equal(tailor_failovers_settled(&failovers, LATER, &failover, &server, &why), 1);
	assert_int_equal(server, 1);
	assert_int_equal(why, 5);
	assert_int_equal(failover.begin_ns, AT);
	assert_int_equal(failover.end_ns, AT + 50000 * US); /* as soon as one worker knew */
	assert_int_equal(failover.kind, TAILOR_STOP_GC);
	assert_int_equal(failover.noticed, TAILOR_STOP_SAFEPOINT);
	assert_int_equal(failover.noticed_ns, 30 * US);
	assert_int_equal(failover.reacted_ns, 700 * US); /* both times from the one begin */
	assert_int_equal(failover.workers, 2);
	assert_int_equal(failover.in_flight, 11);
	assert_int_equal(failover.moved, 6);
	assert_int_equal(failover.not_moved, 5);
	assert_string_equal(failover.cause, "Allocation Failure");
	no_more();
}

static void stops_of_different_servers_and_one_after_the_other_are_not_joined(void **state)
{
	(void)state;
	tell(0, stop_of(0, TAILOR_STOP_GC, 0, 1000));
	tell(0, stop_of(1, TAILOR_STOP_GC, 500, 1500));
	tell(1, stop_of(0, TAILOR_STOP_GC, 1001, 2000));
	assert_int_equal(next(0).end_ns, AT + 1000 * US);
	assert_int_equal(next(1).end_ns, AT + 1500 * US);
	assert_int_equal(next(0).end_ns, AT + 2000 * US);
	no_more();
}

/* Two stops 3 us apart; each worker sees the first one's end only when the second has begun. */
static void a_worker_that_looks_late_does_not_make_two_stops_one(void **state)
{
	(void)state;
	for (size_t worker = 0; worker < 2; worker++) {
		tell(worker, stop_of(0, TAILOR_STOP_GC, 0, 1010 + worker));
		tell(worker, stop_of(0, TAILOR_STOP_GC, 1003, 3000 + worker));
	}
	for (int i = 0; i < 2; i++) {
		struct tailor_failover failover = next(0);

		assert_int_equal(failover.workers, 2);
		assert_int_equal(failover.begin_ns, i ? AT + 1003 * US : AT);
		assert_int_equal(failover.end_ns, i ? AT + 3000 * US : AT + 1003 * US); /* it must have run before it stopped again */
	}
	no_more();
}

static void the_order_in_which_workers_are_read_does_not_matter(void **state)
{
	(void)state;
	for (size_t worker = 0; worker < 3; worker++) {
		for (uint64_t stop = 0; stop < 10; stop++)
			tell(worker, stop_of(0, TAILOR_STOP_SAFEPOINT, 1000 * stop + worker, 1000 * stop + 900 + worker));
	}
	for (uint64_t stop = 0; stop < 10; stop++) {
		struct tailor_failover failover = next(0);

		assert_int_equal(failover.workers, 3);
		assert_int_equal(failover.begin_ns, AT + 1000 * stop * US);
	}
	no_more();
}

static void nothing_is_settled_while_a_worker_may_still_tell(void **state)
{
	struct tailor_failover failover;
	unsigned int server, why;
	uint64_t end_ns = AT + 100 * US;

	(void)state;
	tell(0, stop_of(0, TAILOR_STOP_GC, 0, 100));
	assert_int_equal(tailor_failovers_settled(&failovers, end_ns - 1, &failover, &server, &why), 0);
	assert_int_equal(tailor_failovers_settled(&failovers, end_ns + TAILOR_FAILOVER_SETTLE_NS - 1, &failover, &server, &why), 0);
	assert_int_equal(tailor_failovers_settled(&failovers, end_ns + TAILOR_FAILOVER_SETTLE_NS, &failover, &server, &why), 1);
	tell(0, stop_of(0, TAILOR_STOP_GC, 0, 100));
	assert_int_equal(tailor_failovers_settled(&failovers, UINT64_MAX, &failover, &server, &why), 1);
}

static void with_too_many_at_a_time_the_oldest_goes_out_and_none_is_lost(void **state)
{
	struct tailor_failover failover;
	unsigned int server, why, count = 0;

	(void)state;
	for (uint64_t stop = 0; stop < 3 * TAILOR_FAILOVERS_OPEN; stop++) {
		tell(0, stop_of(0, TAILOR_STOP_GC, 10 * stop, 10 * stop + 5));
		while (tailor_failovers_settled(&failovers, 0, &failover, &server, &why))
			assert_int_equal(failover.begin_ns, AT + 10 * count++ * US);
	}
	while (tailor_failovers_settled(&failovers, UINT64_MAX, &failover, &server, &why))
		assert_int_equal(failover.begin_ns, AT + 10 * count++ * US);
	assert_int_equal(count, 3 * TAILOR_FAILOVERS_OPEN);
}

static void more_telling_words_for_the_same_stop_win(void **state)
{
	static const struct {
		enum tailor_stop_kind first, second, kind;
		const char *cause;
	} cases[] = {
	        {TAILOR_STOP_SAFEPOINT, TAILOR_STOP_SAFEPOINT, TAILOR_STOP_SAFEPOINT, ""},
	        {TAILOR_STOP_SAFEPOINT, TAILOR_STOP_SAFEPOINT, TAILOR_STOP_GC, "System.gc()"},
	        {TAILOR_STOP_STALL, TAILOR_STOP_SIGNAL, TAILOR_STOP_SIGNAL, ""},
	        {TAILOR_STOP_STALL, TAILOR_STOP_GONE, TAILOR_STOP_GONE, ""},
	        {TAILOR_STOP_GONE, TAILOR_STOP_GC, TAILOR_STOP_GONE, "System.gc()"},
	        {TAILOR_STOP_STALL, TAILOR_STOP_SAFEPOINT, TAILOR_STOP_STALL, ""},
	        {TAILOR_STOP_GC, TAILOR_STOP_STALL, TAILOR_STOP_STALL, "System.gc()"},
	};

	struct tailor_failover failover;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tailor_stopped first = stop_of(0, cases[i].first, 0, 900), second = stop_of(0, cases[i].second, 100, 1000);

		strcpy(second.cause, cases[i].cause);
		tell(0, first);
		tell(1, second);
		failover = next(0);
		assert_int_equal(failover.kind, cases[i].kind);
		/* What it was at when it was stopped is not why. */
		assert_string_equal(failover.cause, cases[i].kind == TAILOR_STOP_GC ? cases[i].cause : "");
		no_more();
	}
}

static void the_jvms_own_word_on_its_collections_says_what_a_stop_was_for(void **state)
{
	struct tailor_failover failover;

	(void)state;
	tailor_failovers_collected(&failovers, 0, AT + 100 * US, AT + 400 * US, "Serial young\tAllocation Failure");
	tailor_failovers_collected(&failovers, 0, AT + 450 * US, AT + 900 * US, "Serial full\tErgonomics");
	tailor_failovers_collected(&failovers, 0, AT + 1500 * US, AT + 2500 * US, "Serial full\tSystem.gc()");
	tailor_failovers_collected(&failovers, 1, AT + 100 * US, AT + 990 * US, "Serial full\tSystem.gc()");
	tailor_failovers_collected(&failovers, 0, AT + 5100 * US, AT + 5200 * US, "unknown\tunknown");
	tell(0, stop_of(0, TAILOR_STOP_SAFEPOINT, 0, 1000));
	tell(0, stop_of(0, TAILOR_STOP_SAFEPOINT, 3000, 4000));
	tell(0, stop_of(0, TAILOR_STOP_SAFEPOINT, 5000, 6000));
	failover = next(0);
	assert_int_equal(failover.kind, TAILOR_STOP_GC);
	assert_int_equal(failover.noticed, TAILOR_STOP_SAFEPOINT);
	assert_string_equal(failover.cause, "Ergonomics");
	failover = next(0);
	assert_int_equal(failover.kind, TAILOR_STOP_SAFEPOINT);
	assert_string_equal(failover.cause, "");
	failover = next(0);
	assert_int_equal(failover.kind, TAILOR_STOP_GC);
	assert_string_equal(failover.cause, "");
}

/* A request of so many attempts, that the last one answered unless said otherwise. Times are in us after AT. */
static struct tailor_record request_of(uint8_t attempts, const uint8_t *servers, const uint64_t *begins_us, uint64_t end_us)
{
	struct tailor_record record = {.attempts = attempts, .answered = (int8_t)(attempts - 1), .request.end_ns = AT + end_us * US};

	for (unsigned int i = 0; i < attempts; i++)
		record.attempt[i] = (struct tailor_attempt){
		        .server = servers[i], .reason = i ? TAILOR_FAILOVER_GC : TAILOR_FAILOVER_NONE, .begin_ns = AT + begins_us[i] * US};
	return record;
}

static struct tailor_record moved_once(uint64_t moved_us, uint64_t end_us)
{
	return request_of(2, (const uint8_t[]){0, 1}, (const uint64_t[]){0, moved_us}, end_us);
}

static void what_was_saved_is_what_the_moved_requests_did_not_wait_of_the_stop(void **state)
{
	struct tailor_record record;
	struct tailor_failover failover;

	(void)state;
	record = moved_once(1100, 3000);
	tailor_failovers_ended(&failovers, &record);
	record = moved_once(1200, 5000);
	tailor_failovers_ended(&failovers, &record);
	record = moved_once(1200, 200000); /* answered after the stop: perhaps it saved something, but who knows */
	tailor_failovers_ended(&failovers, &record);
	record = moved_once(900, 5000); /* for another stop */
	tailor_failovers_ended(&failovers, &record);
	record = moved_once(1200, 5000); /* the one that stood still answered after all */
	record.answered = 0;
	tailor_failovers_ended(&failovers, &record);
	record = moved_once(1200, 5000); /* not for a stop */
	record.attempt[1].reason = TAILOR_FAILOVER_CONNECT;
	tailor_failovers_ended(&failovers, &record);
	record = moved_once(1200, 5000); /* nobody answered */
	record.answered = -1;
	tailor_failovers_ended(&failovers, &record);
	tell(0, stop_of(0, TAILOR_STOP_GC, 1000, 101000));
	failover = next(0);
	assert_int_equal(failover.saved_requests, 2);
	assert_int_equal(failover.saved_ns, (98000 + 96000) * US);
	/* Each of them once. */
	tell(0, stop_of(0, TAILOR_STOP_GC, 1000, 101000));
	assert_int_equal(next(0).saved_requests, 0);
}

static void a_request_that_moves_twice_counts_for_both_stops_once(void **state)
{
	struct tailor_record record =
	        request_of(3, (const uint8_t[]){0, 1, 2}, (const uint64_t[]){0, 1000, 2000}, 4000);
	struct tailor_failover failover;

	(void)state;
	tailor_failovers_ended(&failovers, &record);
	tell(0, stop_of(0, TAILOR_STOP_GC, 900, 50000));
	tell(0, stop_of(1, TAILOR_STOP_GC, 1900, 60000));
	failover = next(0);
	assert_int_equal(failover.saved_requests, 1);
	assert_int_equal(failover.saved_ns, 46000 * US);
	failover = next(1);
	assert_int_equal(failover.saved_requests, 1);
	assert_int_equal(failover.saved_ns, 56000 * US);
	no_more();
}

static void of_a_process_that_has_ended_nothing_is_said_to_be_saved(void **state)
{
	struct tailor_record record = moved_once(1100, 3000);

	(void)state;
	tailor_failovers_ended(&failovers, &record);
	tell(0, stop_of(0, TAILOR_STOP_GONE, 1000, 101000));
	assert_int_equal(next(0).saved_ns, 0);
}

#define with_failovers(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        with_failovers(what_several_workers_say_of_one_stop_is_one_failover),
	        with_failovers(stops_of_different_servers_and_one_after_the_other_are_not_joined),
	        with_failovers(a_worker_that_looks_late_does_not_make_two_stops_one),
	        with_failovers(the_order_in_which_workers_are_read_does_not_matter),
	        with_failovers(nothing_is_settled_while_a_worker_may_still_tell),
	        with_failovers(with_too_many_at_a_time_the_oldest_goes_out_and_none_is_lost),
	        with_failovers(more_telling_words_for_the_same_stop_win),
	        with_failovers(the_jvms_own_word_on_its_collections_says_what_a_stop_was_for),
	        with_failovers(what_was_saved_is_what_the_moved_requests_did_not_wait_of_the_stop),
	        with_failovers(a_request_that_moves_twice_counts_for_both_stops_once),
	        with_failovers(of_a_process_that_has_ended_nothing_is_said_to_be_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
