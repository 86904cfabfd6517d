/* SPDX-License-Identifier: Apache-2.0 */
/* What a record says of the client: when it took no more of its response, and whether its request was read late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "collect/requests.h"

#define REQUEST 7
#define BEGIN_NS UINT64_C(1000000)
#define US UINT64_C(1000)

struct ring {
	struct tailor_channel_head head;
	struct tailor_event slots[64];
	struct tailor_channel channel;
	struct tailor_record record; /* the last one that ended */
};

static void put(struct ring *ring, enum tailor_event_kind kind, uint64_t time_ns, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	struct tailor_event event = {.kind = kind, .request = REQUEST, .time_ns = time_ns, .pid = 10, .tid = 11, .arg = {arg0, arg1, arg2}};

	tailor_channel_write(&ring->channel, &event, NULL, 0);
}

static void open_ring(struct ring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->channel = (struct tailor_channel){&ring->head, ring->slots, 63};
	put(ring, TAILOR_EVENT_REQUEST_BEGIN, BEGIN_NS, 5555, 0, 0);
}

static void put_wait(struct ring *ring, uint64_t start_us, uint64_t us, uint64_t bytes)
{
	put(ring, TAILOR_EVENT_CLIENT_WAIT, BEGIN_NS + (start_us + us) * US, BEGIN_NS + start_us * US, bytes, TAILOR_CLIENT_WAIT(us - 1, 1));
}

static void keep(void *context, size_t worker, const struct tailor_record *record)
{
	(void)worker;
	*(struct tailor_record *)context = *record;
}

static const struct tailor_record *end(struct ring *ring)
{
	struct tailor_requests *requests;

	put(ring, TAILOR_EVENT_REQUEST_END, BEGIN_NS + 100000 * US, 1, TAILOR_REQUEST_END_REFUSED, TAILOR_ATTEMPT_NONE);
	assert_int_equal(tailor_requests_open(&ring->channel, 1, 8, &requests), 0);
	tailor_requests_poll(requests, BEGIN_NS, keep, &ring->record);
	tailor_requests_close(requests);
	assert_int_equal(ring->record.request.id, REQUEST);
	return &ring->record;
}

static void a_wait_is_told_as_it_was(void **state)
{
	const struct tailor_record *record;
	struct ring ring;

	(void)state;
	open_ring(&ring);
	put_wait(&ring, 500, 300, 4096);
	record = end(&ring);
	assert_int_equal(record->client_waits, 1);
	assert_int_equal(record->client_wait[0].start_ns, BEGIN_NS + 500 * US);
	assert_int_equal(record->client_wait[0].end_ns, BEGIN_NS + 800 * US);
	assert_int_equal(record->client_wait[0].bytes, 4096);
	assert_int_equal(record->client_wait[0].window_us, 299);
	assert_int_equal(record->client_wait[0].buffer_us, 1);
	assert_int_equal(record->attempts, 0);
	assert_int_equal(record->late_from_ns, 0);
}

static void of_many_waits_the_longest_stay_in_order(void **state)
{
	static const uint64_t us[] = {210, 900, 220, 800, 230, 700, 240, 600, 250, 500, 215, 400, 901};
	static const uint64_t kept[] = {900, 800, 700, 600, 250, 500, 400, 901};
	const struct tailor_record *record;
	struct ring ring;

	(void)state;
	open_ring(&ring);
	for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++)
		put_wait(&ring, 3000 * i, us[i], us[i]);
	record = end(&ring);
	assert_int_equal(record->client_waits, TAILOR_CLIENT_WAITS_MAX);
	for (size_t i = 0; i < TAILOR_CLIENT_WAITS_MAX; i++) {
		assert_int_equal(record->client_wait[i].bytes, kept[i]);
		assert_int_equal(record->client_wait[i].end_ns - record->client_wait[i].start_ns, kept[i] * US);
	}
}

static void of_many_waits_with_little_between_all_are_told(void **state)
{
	uint64_t waited_us = 0, window_us = 0, covered_ns = 0;
	const struct tailor_record *record;
	struct ring ring;

	(void)state;
	open_ring(&ring);
	/* One that stands alone, then forty with 100 us between. */
	put_wait(&ring, 1000, 5000, 9);
	for (size_t i = 0; i < 40; i++)
		put_wait(&ring, 20000 + 400 * i, 300, 4096 + i);
	record = end(&ring);
	assert_int_equal(record->client_waits, TAILOR_CLIENT_WAITS_MAX);
	assert_int_equal(record->client_wait[0].end_ns - record->client_wait[0].start_ns, 5000 * US);
	assert_int_equal(record->client_wait[0].waited_us, 0);
	for (size_t i = 1; i < TAILOR_CLIENT_WAITS_MAX; i++) {
		const struct tailor_client_wait *wait = &record->client_wait[i];

		assert_true(wait->start_ns >= wait[-1].end_ns);
		covered_ns += wait->end_ns - wait->start_ns;
		waited_us += wait->waited_us ? wait->waited_us : (wait->end_ns - wait->start_ns) / US;
		window_us += wait->window_us;
	}
	assert_int_equal(waited_us, 40 * 300);
	assert_int_equal(window_us, 40 * 299);
	assert_true(covered_ns > (40 * 300 + 32 * 100) * US);
	assert_int_equal(record->client_wait[7].end_ns, BEGIN_NS + (20000 + 39 * 400 + 300) * US);
	assert_int_equal(record->client_wait[7].bytes, 4096 + 39);
}

static void waits_with_more_between_than_they_are_stay_apart(void **state)
{
	const struct tailor_record *record;
	struct ring ring;

	(void)state;
	open_ring(&ring);
	for (size_t i = 0; i < 20; i++)
		put_wait(&ring, 1000 * i, 210 + i, 1);
	record = end(&ring);
	for (size_t i = 0; i < TAILOR_CLIENT_WAITS_MAX; i++) {
		assert_int_equal(record->client_wait[i].waited_us, 0);
		assert_int_equal(record->client_wait[i].end_ns - record->client_wait[i].start_ns, (210 + 12 + i) * US);
	}
}

static void many_short_waits_that_the_proxy_has_summed_are_told_as_such(void **state)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_CLIENT_WAIT, .request = REQUEST, .time_ns = BEGIN_NS + 900 * US,
	                             .extra = 600, .arg = {BEGIN_NS + 100 * US, 4096, TAILOR_CLIENT_WAIT(500, 0)}};
	const struct tailor_record *record;
	struct ring ring;

	(void)state;
	open_ring(&ring);
	tailor_channel_write(&ring.channel, &event, NULL, 0);
	record = end(&ring);
	assert_int_equal(record->client_waits, 1);
	assert_int_equal(record->client_wait[0].waited_us, 600);
}

static void a_wait_that_ends_before_it_begins_is_none(void **state)
{
	struct ring ring;

	(void)state;
	open_ring(&ring);
	put(&ring, TAILOR_EVENT_CLIENT_WAIT, BEGIN_NS + 10, BEGIN_NS + 10, 1, 0);
	put(&ring, TAILOR_EVENT_CLIENT_WAIT, BEGIN_NS + 10, UINT64_MAX, 1, 0);
	assert_int_equal(end(&ring)->client_waits, 0);
}

static void a_request_that_was_read_late_says_since_when(void **state)
{
	const struct tailor_record *record;
	struct ring ring;

	(void)state;
	open_ring(&ring);
	put(&ring, TAILOR_EVENT_REQUEST_LATE, BEGIN_NS, BEGIN_NS - 5000, BEGIN_NS - 2000, 0);
	record = end(&ring);
	assert_int_equal(record->late_there_ns, BEGIN_NS - 2000);
	assert_int_equal(record->late_from_ns, BEGIN_NS - 5000);
	assert_int_equal(record->request.begin_ns, BEGIN_NS);
	assert_int_equal(record->attempts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_wait_is_told_as_it_was),
	        cmocka_unit_test(of_many_waits_the_longest_stay_in_order),
	        cmocka_unit_test(of_many_waits_with_little_between_all_are_told),
	        cmocka_unit_test(waits_with_more_between_than_they_are_stay_apart),
	        cmocka_unit_test(many_short_waits_that_the_proxy_has_summed_are_told_as_such),
	        cmocka_unit_test(a_wait_that_ends_before_it_begins_is_none),
	        cmocka_unit_test(a_request_that_was_read_late_says_since_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
