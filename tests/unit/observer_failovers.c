/* SPDX-License-Identifier: Apache-2.0 */
/* From the workers' channels to the store, through a running observer. */
#include "base/clock.h"
#include "observer/observer.h"
#include "store_directory.h"

#define WORKERS 2
#define SLOTS 64
#define MS TAILOR_NS_PER_MS

static struct tailor_channel channels[WORKERS];

static int open_all(void **state)
{
	for (int i = 0; i < WORKERS; i++)
		channels[i] = (struct tailor_channel){calloc(1, sizeof(struct tailor_channel_head)), calloc(SLOTS, sizeof(struct tailor_event)), SLOTS - 1};
	return make_directory(state);
}

static int close_all(void **state)
{
	for (int i = 0; i < WORKERS; i++) {
		free(channels[i].head);
		free(channels[i].slots);
	}
	return remove_directory(state);
}

static void put(int worker, uint8_t kind, uint64_t request, uint64_t time_ns, uint32_t extra, uint64_t arg0, uint64_t arg1, uint64_t arg2,
                const char *text)
{
	struct tailor_event event = {.kind = kind, .request = request, .time_ns = time_ns, .extra = extra, .arg = {arg0, arg1, arg2}};

	tailor_channel_write_alone(&channels[worker], &event, text, text ? strlen(text) : 0);
}

/* Moved from server 0 to server 1 and answered there. */
static void put_moved(int worker, uint64_t id, uint64_t begin_ns, uint64_t moved_ns, uint64_t end_ns)
{
	uint32_t second = TAILOR_ATTEMPT(1, 1, TAILOR_FAILOVER_GC);

	put(worker, TAILOR_EVENT_REQUEST_BEGIN, id, begin_ns, 0, 0, 0, 0, NULL);
	put(worker, TAILOR_EVENT_ATTEMPT_SEND, id, begin_ns, TAILOR_ATTEMPT(0, 0, TAILOR_FAILOVER_NONE), 4001, 1, 0, NULL);
	put(worker, TAILOR_EVENT_ATTEMPT_SEND, id, moved_ns, second, 4002, 1, 0, NULL);
	put(worker, TAILOR_EVENT_RESPONSE_BEGIN, id, end_ns, second, 4002, 0, 0, NULL);
	put(worker, TAILOR_EVENT_REQUEST_END, id, end_ns, 200, 0, TAILOR_REQUEST_END_DONE, second, NULL);
}

static void put_stop(int worker, uint64_t begin_ns, uint64_t end_ns, unsigned int moved, const char *cause)
{
	put(worker, TAILOR_EVENT_SERVER_STOPPED, 0, end_ns, TAILOR_STOPPED(0, TAILOR_STOP_GC, moved + 1), begin_ns, TAILOR_STOP_TIMES(40, 400),
	    TAILOR_STOP_MOVES(moved, 1, 3), cause);
}

static const char *word(unsigned int why_not)
{
	return why_not == 3 ? "the-third" : "another";
}

static struct tailor_store_writer *store; /* NULL: none */
static struct tailor_observer *observer;

static void start(void)
{
	const struct tailor_observer_options options = {.request_channels = channels,
	                                                .workers = WORKERS,
	                                                .connections_max = 16,
	                                                .server = {{"left", 1}, {"right", 2}},
	                                                .servers = 2,
	                                                .not_moved_name = word,
	                                                .slow = {.threshold_ns = 3600 * TAILOR_NS_PER_S},
	                                                .store = store};

	assert_int_equal(tailor_observer_start(&options, &observer), 0);
}

static void start_with_store(void)
{
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &store), 0);
	start();
}

/* Stops the observer and reads what there is then; returns how many, the first in *ret_first. */
static int stored(struct tailor_failover *ret_first)
{
	struct tailor_store_reader *reader;
	struct tailor_failover failover;
	int count = 0;

	tailor_observer_stop(observer);
	tailor_store_writer_close(store);
	store = NULL;
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	while (tailor_store_next_failover(reader, &failover) == 1) {
		if (count++ == 0)
			*ret_first = failover;
	}
	tailor_store_reader_close(reader);
	return count;
}

static uint64_t wait_stored(void)
{
	struct tailor_observer_status status = {0};

	for (int i = 0; i < 500 && status.failovers + status.failovers_not_stored == 0; i++) {
		usleep(10000);
		tailor_observer_status(observer, &status);
	}
	return status.failovers;
}

static void a_stop_that_two_workers_met_is_stored_once_while_requests_go_on(void **state)
{
	uint64_t end_ns = tailor_clock_ns(), begin_ns = end_ns - 100 * MS;
	struct tailor_failover failover;
	uint64_t wall_ns;

	(void)state;
	put_moved(0, 1, begin_ns - MS, begin_ns + MS, begin_ns + 3 * MS);
	put_moved(0, 2, begin_ns - MS, begin_ns + MS, begin_ns + 10 * MS);
	put_moved(1, 3, begin_ns - MS, begin_ns + MS, end_ns + 10 * MS);
	put_stop(0, begin_ns, end_ns, 2, NULL);
	put_stop(1, begin_ns, end_ns + MS, 1, "Metadata GC Threshold");
	start_with_store();
	assert_int_equal(wait_stored(), 1);
	wall_ns = tailor_clock_wall_ns() - (tailor_clock_ns() - begin_ns);
	assert_int_equal(stored(&failover), 1);
	assert_string_equal(failover.server, "left");
	assert_string_equal(failover.cause, "Metadata GC Threshold");
	assert_string_equal(failover.why_not, "the-third");
	assert_int_equal(failover.kind, TAILOR_STOP_GC);
	assert_int_equal(failover.workers, 2);
	assert_int_equal(failover.in_flight, 5);
	assert_int_equal(failover.moved, 3);
	assert_int_equal(failover.not_moved, 2);
	assert_int_equal(failover.begin_ns, begin_ns);
	assert_int_equal(failover.end_ns, end_ns);
	assert_int_equal(failover.saved_requests, 2);
	assert_int_equal(failover.saved_ns, (97 + 90) * MS);
	assert_int_equal(failover.incomplete, 0);
	assert_in_range(failover.wall_ns, wall_ns - 50 * MS, wall_ns + 50 * MS);
}

/* It does not wait for workers that may still tell: they are gone, too. */
static void what_is_not_settled_when_the_observer_stops_is_stored_all_the_same(void **state)
{
	uint64_t now_ns = tailor_clock_ns();
	struct tailor_failover failover;

	(void)state;
	start_with_store();
	put_stop(1, now_ns - MS, now_ns, 2, NULL);
	assert_int_equal(stored(&failover), 1);
}

/* More events than the channel holds, faster than anybody looks. */
static void where_events_were_lost_meanwhile_the_failover_says_so(void **state)
{
	uint64_t now_ns = tailor_clock_ns();
	struct tailor_failover failover;

	(void)state;
	start_with_store();
	put_stop(1, now_ns - 100 * MS, now_ns, 2, NULL);
	for (uint64_t i = 0; i < 100 * SLOTS; i++)
		put(0, TAILOR_EVENT_REQUEST_BEGIN, i + 1, now_ns - 50 * MS + i, 0, 0, 0, 0, NULL);
	assert_int_equal(stored(&failover), 1);
	assert_int_equal(failover.incomplete, 1);
}

static void without_a_store_it_is_counted_and_servers_that_do_not_exist_are_not(void **state)
{
	uint64_t now_ns = tailor_clock_ns();
	struct tailor_observer_status status;

	(void)state;
	start();
	put(0, TAILOR_EVENT_SERVER_STOPPED, 0, now_ns, TAILOR_STOPPED(2, TAILOR_STOP_GC, 1), now_ns - MS, 0, 0, NULL);
	put(0, TAILOR_EVENT_SERVER_STOPPED, 0, now_ns, TAILOR_STOPPED(0, TAILOR_STOP_KINDS, 1), now_ns - MS, 0, 0, NULL);
	put_stop(1, now_ns - MS, now_ns, 2, NULL);
	assert_int_equal(wait_stored(), 0);
	usleep(100000);
	tailor_observer_status(observer, &status);
	assert_int_equal(status.failovers_not_stored, 1);
	assert_int_equal(status.store_error, 0); /* that there is none is no error of one */
	tailor_observer_stop(observer);
}

#define observer_test(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        observer_test(a_stop_that_two_workers_met_is_stored_once_while_requests_go_on),
	        observer_test(what_is_not_settled_when_the_observer_stops_is_stored_all_the_same),
	        observer_test(where_events_were_lost_meanwhile_the_failover_says_so),
	        observer_test(without_a_store_it_is_counted_and_servers_that_do_not_exist_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
