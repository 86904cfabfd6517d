/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <sys/prctl.h>
#include <unistd.h>

#include "collect/harvest.h"
#include "collect/requests.h"
#include "collect/tail.h"
#include "collect/threads.h"

/* A channel in plain memory. */
struct ring {
	struct tailor_channel_head head;
	struct tailor_event slots[64];
	struct tailor_channel channel;
};

static void ring_open(struct ring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->channel = (struct tailor_channel){&ring->head, ring->slots, 63};
}

static void put(struct ring *ring, enum tailor_event_kind kind, uint64_t request, uint64_t time_ns, uint32_t extra, uint64_t arg0,
                uint64_t arg1, uint64_t arg2, const char *text)
{
	struct tailor_event event = {.kind = kind, .request = request, .time_ns = time_ns, .extra = extra, .pid = 10, .tid = 11};

	event.arg[0] = arg0;
	event.arg[1] = arg1;
	event.arg[2] = arg2;
	tailor_channel_write(&ring->channel, &event, text, text ? strlen(text) : 0);
}

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

struct seen {
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

static void events_that_stand_for_others_are_those_too(void **state)
{
	struct tailor_requests *requests;
	struct seen seen = {0};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 8, &requests), 0);
	put_at_once(&ring, 43, 1000);
	tailor_requests_poll(requests, 5000, see, &seen);
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
	tailor_requests_close(requests);
}

static void a_request_is_put_together_from_its_events(void **state)
{
	struct tailor_requests *requests;
	struct seen seen = {0};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 8, &requests), 0);
	put_failed_over(&ring, 42, 1000);
	tailor_requests_poll(requests, 5000, see, &seen);
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
	tailor_requests_close(requests);
}

/* A server began to answer with something that was no HTTP, and the proxy answered in its stead. */
static void a_refused_request_was_answered_by_no_attempt(void **state)
{
	struct tailor_requests *requests;
	struct seen seen = {0};
	struct ring ring;
	uint32_t first = TAILOR_ATTEMPT(0, 0, TAILOR_FAILOVER_NONE);

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 8, &requests), 0);
	put(&ring, TAILOR_EVENT_REQUEST_BEGIN, 42, 1000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_ATTEMPT_BEGIN, 42, 1001, first, 4001, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_RESPONSE_BEGIN, 42, 1002, first, 4001, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_ATTEMPT_END, 42, 1003, first, 4001, TAILOR_ATTEMPT_END_BAD, 0, NULL);
	put(&ring, TAILOR_EVENT_REQUEST_END, 42, 1004, 502, 90, TAILOR_REQUEST_END_REFUSED, TAILOR_ATTEMPT_NONE, NULL);
	tailor_requests_poll(requests, 5000, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.attempts, 1);
	assert_int_equal(seen.last.answered, -1);
	tailor_requests_close(requests);
}

static void requests_in_any_order_keep_apart(void **state)
{
	struct tailor_requests *requests;
	struct seen seen = {0};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 16, &requests), 0);
	for (uint64_t id = 1; id <= 16; id++)
		put(&ring, TAILOR_EVENT_REQUEST_BEGIN, id, 1000 + id, 0, 0, 0, 0, NULL);
	for (uint64_t id = 16; id >= 1; id--)
		put(&ring, TAILOR_EVENT_REQUEST_END, id, 2000 + id, 404, 0, TAILOR_REQUEST_END_REFUSED, 0, NULL);
	tailor_requests_poll(requests, 5000, see, &seen);
	assert_int_equal(seen.count, 16);
	assert_int_equal(seen.last.request.id, 1);
	assert_int_equal(seen.last.request.begin_ns, 1001);
	assert_int_equal(seen.last.answered, -1);
	tailor_requests_close(requests);
}

static void an_overrun_channel_is_counted_and_half_requests_are_dropped(void **state)
{
	struct tailor_requests *requests;
	struct seen seen = {0};
	struct tailor_loss loss;
	struct ring ring;

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 8, &requests), 0);
	put(&ring, TAILOR_EVENT_REQUEST_BEGIN, 1, 100, 0, 0, 0, 0, NULL);
	tailor_requests_poll(requests, 5000, see, &seen);
	for (uint64_t i = 0; i < 100; i++)
		put(&ring, TAILOR_EVENT_REQUEST_END, 1000 + i, 200 + i, 200, 0, 0, 0, NULL);
	tailor_requests_poll(requests, 5000, see, &seen);
	assert_int_equal(seen.count, 0);
	assert_int_equal(tailor_requests_lost(requests, 0), 36);
	loss = tailor_requests_last_loss(requests, 0);
	assert_int_equal(loss.events, 36);
	assert_int_equal(loss.from_ns, 100);
	assert_int_equal(loss.to_ns, 236);
	assert_string_equal(loss.channel, "worker0");
	tailor_requests_close(requests);
}

static void requests_whose_end_was_lost_make_room(void **state)
{
	struct tailor_requests *requests;
	struct seen seen = {0};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	assert_int_equal(tailor_requests_open(&ring.channel, 1, 1, &requests), 0);
	for (uint64_t id = 1; id <= 1000; id++) {
		put(&ring, TAILOR_EVENT_REQUEST_BEGIN, id, id, 0, 0, 0, 0, NULL);
		tailor_requests_poll(requests, 5000, see, &seen);
	}
	put(&ring, TAILOR_EVENT_REQUEST_END, 1000, 2000, 200, 0, 0, 0, NULL);
	tailor_requests_poll(requests, 5000, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.request.begin_ns, 1000);
	tailor_requests_close(requests);
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

static void a_harvest_is_ordered_cut_to_its_window_and_keeps_texts(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source sources[2] = {{.name = "cpu0"}, {.name = "jvm:a", .own_pid = 10, .pid = 99, .before_ns = 50000000}};
	struct ring kernel, jvm;

	(void)state;
	ring_open(&kernel);
	ring_open(&jvm);
	put(&kernel, TAILOR_EVENT_SWITCH_IN, 0, 80000000, 0, 0, 0, 0, NULL);
	put(&kernel, TAILOR_EVENT_SWITCH_IN, 0, 110000000, 0, 0, 0, 0, NULL);
	put(&kernel, TAILOR_EVENT_SWITCH_OUT, 0, 130000000, 0, 0, 0, 0, NULL);
	put(&kernel, TAILOR_EVENT_SWITCH_OUT, 0, 900000000, 0, 0, 0, 0, NULL);
	put(&jvm, TAILOR_EVENT_GC_START, 0, 60000000, 0, 0, 0, 0, NULL);
	put(&jvm, TAILOR_EVENT_GC_FINISH, 0, 120000000, 0, 0, 0, 0, "Serial young\tAllocation Failure");
	sources[0].channel = kernel.channel;
	sources[1].channel = jvm.channel;
	assert_int_equal(tailor_harvest_read(&harvest, sources, 2, 100000000, 200000000), 0);
	assert_int_equal(harvest.loss_count, 0);
	assert_int_equal(harvest.event_count, 4);
	assert_int_equal(harvest.events[0].event.kind, TAILOR_EVENT_GC_START);
	assert_int_equal(harvest.events[0].event.pid, 99);
	assert_int_equal(harvest.events[1].event.time_ns, 110000000);
	assert_string_equal(harvest.events[2].text, "Serial young\tAllocation Failure");
	assert_int_equal(harvest.events[3].event.time_ns, 130000000);
	assert_null(harvest.events[3].text);
	/* The same memory serves the next window. */
	assert_int_equal(tailor_harvest_read(&harvest, sources, 1, 100000000, 120000000), 0);
	assert_int_equal(harvest.event_count, 1);
	tailor_harvest_free(&harvest);
}

static void a_harvest_says_what_was_overwritten_and_what_was_dropped(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "cpu1"};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	for (uint64_t i = 0; i < 80; i++) {
		put(&ring, TAILOR_EVENT_SWITCH_IN, 0, 1000000000 + i * 10000000, 0, 0, 0, 0, NULL);
		if (i == 70)
			tailor_channel_reserve(&ring.head, 2);
	}
	source.channel = ring.channel;
	/* All of the window is still there. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1750000000, 1790000000), 0);
	assert_int_equal(harvest.loss_count, 0);
	/* Two dropped between 1.70 s and 1.71 s. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1600000000, 1790000000), 0);
	assert_int_equal(harvest.loss_count, 1);
	assert_int_equal(harvest.losses[0].events, 2);
	assert_int_equal(harvest.losses[0].from_ns, 1700000000);
	assert_int_equal(harvest.losses[0].to_ns, 1710000000);
	assert_string_equal(harvest.losses[0].channel, "cpu1");
	/* The window begins before what is left: 80 + 2 positions, 64 slots. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1000000000, 1790000000), 0);
	assert_int_equal(harvest.loss_count, 2);
	assert_int_equal(harvest.losses[1].from_ns, 0);
	assert_int_equal(harvest.losses[1].to_ns, 1180000000);
	tailor_harvest_free(&harvest);
}

static void what_was_overwritten_before_the_window_is_no_loss_of_it(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "jvm:a", .before_ns = 1000000000};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	for (uint64_t i = 0; i < 80; i++)
		put(&ring, TAILOR_EVENT_GC_START, 0, 1000000000 + i * 10000000, 0, 0, 0, 0, NULL);
	source.channel = ring.channel;
	/* 64 slots reach back to 1.16 s: the window from 1.7 s on is whole, its second before is not. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1700000000, 1790000000), 0);
	assert_int_equal(harvest.event_count, 64);
	assert_int_equal(harvest.loss_count, 0);
	tailor_harvest_free(&harvest);
}

/* A producer that was held up for long between its clock and its place in the channel: everything before it is still there. */
static void a_single_event_that_came_late_does_not_end_the_harvest(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "cpu0", .before_ns = 1000000};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	for (uint64_t i = 0; i < 60; i++)
		put(&ring, TAILOR_EVENT_SWITCH_IN, 0, i == 50 ? 500000000 : 1000000000 + i * 1000000, 0, 0, 0, 0, NULL);
	source.channel = ring.channel;
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1010000000, 1059000000), 0);
	assert_int_equal(harvest.loss_count, 0);
	assert_int_equal(harvest.event_count, 50); /* from 9 ms on, without the late one */
	assert_int_equal(harvest.events[0].event.time_ns, 1009000000);
	tailor_harvest_free(&harvest);
}

static void a_harvest_of_nothing_is_empty(void **state)
{
	struct tailor_harvest harvest = {0};

	(void)state;
	assert_int_equal(tailor_harvest_read(&harvest, NULL, 0, 100, 200), 0);
	assert_int_equal(harvest.event_count, 0);
	assert_int_equal(harvest.loss_count, 0);
	tailor_harvest_free(&harvest);
}

#define RANDOM_SLOTS 8192
#define RANDOM_SOURCES 4

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* A channel of its own length, rate and faults: times out of order by less than a millisecond, texts, positions never published. */
static struct tailor_channel random_channel(uint64_t *state, uint64_t until_ns)
{
	struct tailor_channel_head *head = calloc(1, sizeof(*head));
	struct tailor_event *slots = calloc(RANDOM_SLOTS, sizeof(*slots));
	struct tailor_channel channel = {head, slots, RANDOM_SLOTS - 1};
	uint64_t count = draw(state, 3 * RANDOM_SLOTS), step_ns = 1 + draw(state, 40000), time_ns;

	assert_non_null(head);
	assert_non_null(slots);
	time_ns = until_ns - draw(state, 50000000) - count * step_ns / 2;
	for (uint64_t i = 0; i < count; i++) {
		struct tailor_event event = {.kind = TAILOR_EVENT_SWITCH_IN, .pid = 10, .tid = (uint32_t)draw(state, 9)};
		char text[80];

		time_ns += draw(state, step_ns);
		event.time_ns = time_ns - (draw(state, 20) ? 0 : draw(state, 900000));
		memset(text, 'a' + (int)draw(state, 26), sizeof(text));
		if (draw(state, 500) == 0)
			tailor_channel_reserve(head, 1 + draw(state, 40));
		tailor_channel_write(&channel, &event, text, draw(state, 10) ? 0 : draw(state, sizeof(text)));
	}
	return channel;
}

static void assert_same_window(const struct tailor_harvest *cut, const struct tailor_harvest *alone)
{
	assert_int_equal(cut->event_count, alone->event_count);
	for (size_t i = 0; i < alone->event_count; i++) {
		assert_memory_equal(&cut->events[i].event, &alone->events[i].event, sizeof(alone->events[i].event));
		assert_int_equal(cut->events[i].text == NULL, alone->events[i].text == NULL);
		if (alone->events[i].text)
			assert_string_equal(cut->events[i].text, alone->events[i].text);
	}
	assert_int_equal(cut->loss_count, alone->loss_count);
	for (size_t i = 0; i < alone->loss_count; i++)
		assert_memory_equal(&cut->losses[i], &alone->losses[i], sizeof(alone->losses[i]));
}

/* Every readable event of the window, and no other, in the order of time. */
static void assert_window(const struct tailor_harvest *harvest, const struct tailor_source *sources, uint64_t from_ns, uint64_t to_ns)
{
	size_t expected = 0;

	for (size_t i = 0; i < RANDOM_SOURCES; i++) {
		const struct tailor_channel *channel = &sources[i].channel;
		uint64_t end = tailor_channel_end(channel);

		for (uint64_t p = end > RANDOM_SLOTS ? end - RANDOM_SLOTS : 0; p < end; p++) {
			struct tailor_event event;

			expected += tailor_channel_read(channel, p, &event) == TAILOR_READ_OK && event.kind != TAILOR_EVENT_TEXT &&
			            event.time_ns + sources[i].before_ns >= from_ns && event.time_ns <= to_ns;
		}
	}
	assert_int_equal(harvest->event_count, expected);
	for (size_t i = 1; i < harvest->event_count; i++)
		assert_true(harvest->events[i - 1].event.time_ns <= harvest->events[i].event.time_ns);
}

/* What is read once for many requests must give each of them the window that it would have had alone. */
static void windows_cut_from_one_harvest_are_those_of_harvests_of_their_own(void **state)
{
	struct tailor_harvest together = {0}, alone = {0};
	uint64_t random = 88172645463325252, losses = 0, events = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		const uint64_t now_ns = 20000000000, first_ns = now_ns - draw(&random, 200000000);
		struct tailor_source sources[RANDOM_SOURCES] = {
			{.name = "cpu0"}, {.name = "cpu1"}, {.name = "jvm:a", .own_pid = 10, .pid = 99}, {.name = "jvm:b"}};
		const uint64_t before_ns[RANDOM_SOURCES] = {2000000, 2000000, 100000000, 50000000};
		uint64_t from_ns = first_ns;

		for (size_t i = 0; i < RANDOM_SOURCES; i++) {
			sources[i].channel = random_channel(&random, now_ns);
			sources[i].before_ns = before_ns[i];
		}
		assert_int_equal(tailor_harvest_read(&together, sources, RANDOM_SOURCES, first_ns, now_ns), 0);
		assert_window(&together, sources, first_ns, now_ns);
		for (int i = 0; i < 20 && from_ns < now_ns; i++, from_ns += draw(&random, 20000000)) {
			uint64_t to_ns = from_ns + draw(&random, now_ns - from_ns + 1);

			assert_int_equal(tailor_harvest_cut(&together, from_ns, to_ns), 0);
			assert_int_equal(tailor_harvest_read(&alone, sources, RANDOM_SOURCES, from_ns, to_ns), 0);
			assert_same_window(&together, &alone);
			events += alone.event_count;
			losses += alone.loss_count;
		}
		for (size_t i = 0; i < RANDOM_SOURCES; i++) {
			free(sources[i].channel.head);
			free(sources[i].channel.slots);
		}
	}
	assert_true(events > 100000 && losses > 100); /* or this tested nothing */
	tailor_harvest_free(&together);
	tailor_harvest_free(&alone);
}

/* A channel whose writer lies about the time is no reason to work for minutes. */
static void a_harvest_of_events_in_backward_order_ends_soon(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "jvm:a", .before_ns = 10000000000};
	struct tailor_channel_head head = {0};
	const uint64_t slots = 65536;
	uint64_t now_ns = 20000000000;

	(void)state;
	source.channel = (struct tailor_channel){&head, calloc(slots, sizeof(struct tailor_event)), slots - 1};
	assert_non_null(source.channel.slots);
	for (uint64_t i = 0; i < slots; i++) {
		struct tailor_event event = {.kind = TAILOR_EVENT_GC_START, .time_ns = now_ns - i};

		tailor_channel_write(&source.channel, &event, NULL, 0);
	}
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, now_ns - 1000, now_ns), 0);
	assert_int_equal(harvest.event_count, slots);
	for (size_t i = 1; i < harvest.event_count; i++)
		assert_true(harvest.events[i - 1].event.time_ns < harvest.events[i].event.time_ns);
	free(source.channel.slots);
	tailor_harvest_free(&harvest);
}

static void a_thread_keeps_its_newest_name(void **state)
{
	struct tailor_threads threads = {0};

	(void)state;
	for (uint32_t tid = 200; tid > 100; tid--)
		assert_int_equal(tailor_threads_learn(&threads, 1, tid, "worker"), 0);
	assert_int_equal(tailor_threads_learn(&threads, 1, 150, "qtp-150"), 0);
	assert_int_equal(threads.count, 100);
	for (size_t i = 1; i < threads.count; i++)
		assert_true(threads.list[i - 1].tid < threads.list[i].tid);
	assert_string_equal(threads.list[49].name, "qtp-150");
	tailor_threads_free(&threads);
}

/* A JVM that starts a thread for each request would else fill the memory with names of the dead. */
static void threads_that_are_gone_for_long_are_forgotten(void **state)
{
	struct tailor_threads threads = {0};
	uint32_t own = (uint32_t)getpid();

	(void)state;
	tailor_threads_learn(&threads, own, own, "Java name");
	for (uint32_t tid = 1; tid <= 50; tid++)
		tailor_threads_learn(&threads, 1u << 30, (1u << 30) + tid, "short-lived");
	for (int second = 0; second < 30; second++) {
		assert_int_equal(tailor_threads_scan(&threads, getpid()), 0);
		tailor_threads_age(&threads);
		/* Timelines of what has just passed still need them. */
		assert_true(second >= 5 || threads.count >= 51);
	}
	for (size_t i = 0; i < threads.count; i++)
		assert_int_equal(threads.list[i].pid, own);
	assert_true(threads.count >= 1);
	assert_string_equal(threads.list[0].name, "Java name");
	tailor_threads_free(&threads);
}

static void a_thread_id_that_passes_on_does_not_keep_the_java_name(void **state)
{
	struct tailor_threads threads = {0};
	uint32_t own = (uint32_t)getpid();

	(void)state;
	tailor_threads_learn(&threads, own, own, "gone");
	tailor_threads_ended(&threads, own, own);
	assert_string_equal(threads.list[0].name, "gone");
	assert_int_equal(prctl(PR_SET_NAME, "next"), 0);
	assert_int_equal(tailor_threads_scan(&threads, getpid()), 0);
	assert_string_equal(threads.list[0].name, "next");
	/* What the kernel calls it may change, too: a JVM names its threads after it has started them. */
	assert_int_equal(prctl(PR_SET_NAME, "renamed"), 0);
	assert_int_equal(tailor_threads_scan(&threads, getpid()), 0);
	assert_string_equal(threads.list[0].name, "renamed");
	tailor_threads_free(&threads);
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
		cmocka_unit_test(a_position_that_is_never_published_is_skipped_after_a_while),
		cmocka_unit_test(a_harvest_is_ordered_cut_to_its_window_and_keeps_texts),
		cmocka_unit_test(a_harvest_says_what_was_overwritten_and_what_was_dropped),
		cmocka_unit_test(a_single_event_that_came_late_does_not_end_the_harvest),
		cmocka_unit_test(a_harvest_of_nothing_is_empty),
		cmocka_unit_test(what_was_overwritten_before_the_window_is_no_loss_of_it),
		cmocka_unit_test(windows_cut_from_one_harvest_are_those_of_harvests_of_their_own),
		cmocka_unit_test(a_harvest_of_events_in_backward_order_ends_soon),
		cmocka_unit_test(a_thread_keeps_its_newest_name),
		cmocka_unit_test(threads_that_are_gone_for_long_are_forgotten),
		cmocka_unit_test(a_thread_id_that_passes_on_does_not_keep_the_java_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
