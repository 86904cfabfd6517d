/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collect/harvest.h"
#include "collect/hold.h"

#define MS UINT64_C(1000000)

static struct tailor_channel channel_of(size_t slots)
{
	struct tailor_channel channel = {calloc(1, sizeof(struct tailor_channel_head)), calloc(slots, sizeof(struct tailor_event)), slots - 1};

	assert_non_null(channel.head);
	assert_non_null(channel.slots);
	return channel;
}

static void free_channel(struct tailor_channel *channel)
{
	free(channel->head);
	free(channel->slots);
}

static void put(const struct tailor_channel *channel, uint64_t time_ns, const char *text)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_SWITCH_IN, .time_ns = time_ns, .pid = 10, .tid = (uint32_t)(time_ns % 5 + 1)};

	tailor_channel_write(channel, &event, text, text ? strlen(text) : 0);
}

/* Faults are told when their thread leaves its CPU, which may be long after the last of them. */
static void put_faults(const struct tailor_channel *channel, uint64_t time_ns)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_PAGE_FAULTS, .time_ns = time_ns, .pid = 10, .tid = 1, .extra = 3};

	event.arg[0] = time_ns - 1000;
	tailor_channel_write(channel, &event, NULL, 0);
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

static void assert_same_window(const struct tailor_harvest *one, const struct tailor_harvest *other)
{
	assert_int_equal(one->event_count, other->event_count);
	for (size_t i = 0; i < other->event_count; i++) {
		assert_memory_equal(&one->events[i].event, &other->events[i].event, sizeof(other->events[i].event));
		assert_int_equal(one->events[i].text == NULL, other->events[i].text == NULL);
		if (other->events[i].text)
			assert_string_equal(one->events[i].text, other->events[i].text);
	}
	assert_int_equal(one->loss_count, other->loss_count);
	for (size_t i = 0; i < other->loss_count; i++)
		assert_memory_equal(&one->losses[i], &other->losses[i], sizeof(other->losses[i]));
}

/* The same events into a ring that goes around all the time, and into one that never does: with texts, disorder and dropped ones. */
static void a_small_ring_that_is_followed_gives_the_windows_of_a_large_one(void **state)
{
	static const char *const texts[] = {NULL, NULL, NULL, "short", "a text that takes more than one of the slots that a channel has for it"};
	uint64_t random = 88172645463325252, compared = 0;

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct tailor_channel small = channel_of(512), large = channel_of(65536);
		struct tailor_harvest followed = {0}, whole = {0};
		struct tailor_hold hold = {0};
		struct tailor_source sources[2] = {{.channel = small, .name = "cpu0", .before_ns = 2 * MS, .hold = &hold},
		                                   {.channel = large, .name = "cpu0", .before_ns = 2 * MS}};
		uint64_t time_ns = 1000 * MS, begin_ns = time_ns + draw(&random, 5 * MS);
		size_t room = 1 << 20;

		for (int i = 0; i < 12000; i++) {
			const char *text = texts[draw(&random, 5)];
			uint64_t late_ns = draw(&random, 20) ? 0 : draw(&random, MS / 2);

			time_ns += draw(&random, 40000);
			if (draw(&random, 200) == 0) {
				uint64_t dropped = 1 + draw(&random, 3);

				tailor_channel_reserve(small.head, dropped);
				tailor_channel_reserve(large.head, dropped);
			}
			put(&small, time_ns - late_ns, text);
			put(&large, time_ns - late_ns, text);
			if ((i % 32 == 0 || draw(&random, 20) == 0) && time_ns > begin_ns)
				assert_int_equal(tailor_hold_follow(&hold, &small, begin_ns - 2 * MS, 0, &room), 0);
		}
		for (int i = 0; i < 10; i++) {
			uint64_t from_ns = begin_ns + draw(&random, time_ns - begin_ns);
			uint64_t to_ns = from_ns + draw(&random, time_ns + 2 * MS - from_ns);

			if (i == 0)
				from_ns = begin_ns;
			assert_int_equal(tailor_harvest_read(&followed, &sources[0], 1, from_ns, to_ns), 0);
			assert_int_equal(tailor_harvest_read(&whole, &sources[1], 1, from_ns, to_ns), 0);
			assert_same_window(&followed, &whole);
			compared += whole.event_count;
		}
		assert_int_equal(hold.lost[TAILOR_LOST_OVERWRITTEN], 0);
		assert_int_equal(hold.lost[TAILOR_LOST_TORN], 0);
		assert_true(hold.lost[TAILOR_LOST_DROPPED] > 0);
		tailor_hold_drop(&hold, &room);
		assert_int_equal(room, 1 << 20);
		tailor_harvest_free(&followed);
		tailor_harvest_free(&whole);
		free_channel(&small);
		free_channel(&large);
	}
	assert_true(compared > 500000); /* or this tested nothing */
}

static void nothing_is_copied_while_the_ring_reaches_back_far_enough(void **state)
{
	struct tailor_channel channel = channel_of(1024);
	struct tailor_hold hold = {0};
	size_t room = 1 << 20;

	(void)state;
	for (uint64_t i = 0; i < 600; i++)
		put(&channel, 1000 * MS + i * MS, NULL);
	/* The newer half begins at 1088 ms. */
	assert_int_equal(tailor_hold_follow(&hold, &channel, 1100 * MS, 0, &room), 0);
	assert_int_equal(room, 1 << 20);
	assert_int_equal(tailor_hold_follow(&hold, &channel, 1050 * MS, 0, &room), 0);
	assert_true(room < 1 << 20);
	tailor_hold_drop(&hold, &room);
	/* Unless it is asked for. */
	assert_int_equal(tailor_hold_follow(&hold, &channel, 1590 * MS, 1, &room), 0);
	assert_true(room <= (1 << 20) - 10 && room > (1 << 20) - 100);
	tailor_hold_drop(&hold, &room);
	free_channel(&channel);
}

static void without_room_the_begin_and_the_end_stay_and_the_middle_is_a_loss(void **state)
{
	struct tailor_channel channel = channel_of(256);
	struct tailor_harvest harvest = {0};
	struct tailor_hold hold = {0};
	struct tailor_source source = {.channel = channel, .name = "cpu3", .hold = &hold};
	size_t room = 1000;
	int refused = 0;

	(void)state;
	for (uint64_t i = 0; i < 10000; i++) {
		put(&channel, 1000 * MS + i * MS, NULL);
		if (i % 32 == 0)
			refused += tailor_hold_follow(&hold, &channel, 1000 * MS, 0, &room) == -ENOBUFS;
	}
	assert_true(refused > 100);
	assert_int_equal(room, 0);
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1000 * MS, 20000 * MS), 0);
	assert_int_equal(harvest.event_count, 1000 + 256);
	assert_int_equal(harvest.loss_count, 1);
	assert_string_equal(harvest.losses[0].channel, "cpu3");
	assert_int_equal(harvest.losses[0].from_ns, 1999 * MS);
	assert_int_equal(harvest.losses[0].to_ns, (1000 + 10000 - 256) * MS);
	assert_int_equal(harvest.losses[0].events, 10000 - 256 - 1000);
	assert_int_equal(hold.lost[TAILOR_LOST_THINNED], 10000 - 256 - 1000);
	/* Once is enough. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1000 * MS, 20000 * MS), 0);
	assert_int_equal(hold.lost[TAILOR_LOST_THINNED], 10000 - 256 - 1000);
	/* What only an older request needed makes room for the next one. */
	tailor_hold_trim(&hold, 1900 * MS, &room);
	assert_int_equal(room, 899); /* one ms for good measure */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1950 * MS, 20000 * MS), 0);
	assert_int_equal(harvest.event_count, 50 + 256);
	tailor_hold_trim(&hold, UINT64_MAX, &room);
	assert_int_equal(room, 1000);
	tailor_harvest_free(&harvest);
	free_channel(&channel);
}

static void faults_that_were_told_late_do_not_hide_what_was_before_them(void **state)
{
	struct tailor_channel channel = channel_of(1024);
	struct tailor_hold hold = {0};
	size_t room = 1 << 20, first;

	(void)state;
	put(&channel, 999 * MS, NULL); /* so that the search comes upon faults */
	for (uint64_t i = 0; i < 400; i++) {
		put(&channel, 1000 * MS + i * MS, NULL);
		put_faults(&channel, 800 * MS + i * MS);
	}
	for (uint64_t needed_ns = 1010 * MS; needed_ns < 1390 * MS; needed_ns += 7 * MS) {
		assert_int_equal(tailor_hold_follow(&hold, &channel, needed_ns, 1, &room), 0);
		for (first = hold.first; first < hold.first + hold.count && hold.slots[first].kind != TAILOR_EVENT_SWITCH_IN; first++)
			;
		assert_true(first < hold.first + hold.count);
		assert_true(hold.slots[first].time_ns <= needed_ns);
		tailor_hold_drop(&hold, &room);
	}
	free_channel(&channel);
}

static void what_was_given_back_is_not_forgotten_over_faults_that_were_told_late(void **state)
{
	struct tailor_channel channel = channel_of(64);
	struct tailor_harvest harvest = {0};
	struct tailor_hold hold = {0};
	struct tailor_source source = {.channel = channel, .name = "cpu0", .hold = &hold};
	size_t room = 1000;

	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		put(&channel, 1000 * MS + i * MS, NULL);
	put_faults(&channel, 900 * MS);
	assert_int_equal(tailor_hold_follow(&hold, &channel, 800 * MS, 1, &room), 0);
	tailor_hold_trim(&hold, 1100 * MS, &room);
	for (uint64_t i = 0; i < 64; i++)
		put(&channel, 1200 * MS + i * MS, NULL);
	assert_int_equal(tailor_hold_follow(&hold, &channel, 1100 * MS, 1, &room), 0);
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1010 * MS, 3000 * MS), 0);
	assert_int_equal(harvest.loss_count, 1);
	/* One that began later lacks nothing. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1100 * MS, 3000 * MS), 0);
	assert_int_equal(harvest.loss_count, 0);
	tailor_hold_drop(&hold, &room);
	tailor_harvest_free(&harvest);
	free_channel(&channel);
}

/* A CPU that was idle when the request came: what was given back before tells that nothing is missing. */
static void a_channel_without_an_event_around_the_begin_has_lost_nothing(void **state)
{
	struct tailor_channel channel = channel_of(64);
	struct tailor_harvest harvest = {0};
	struct tailor_hold hold = {0};
	struct tailor_source source = {.channel = channel, .name = "cpu0", .before_ns = 20 * MS, .hold = &hold};
	size_t room = 1000;

	(void)state;
	for (uint64_t i = 0; i < 40; i++)
		put(&channel, 1000 * MS + i * MS, NULL);
	for (uint64_t i = 0; i < 200; i++) {
		put(&channel, 2000 * MS + i * MS, NULL);
		tailor_hold_trim(&hold, 1480 * MS, &room);
		assert_int_equal(tailor_hold_follow(&hold, &channel, 1480 * MS, 0, &room), 0);
	}
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1500 * MS, 3000 * MS), 0);
	assert_int_equal(harvest.event_count, 200);
	assert_int_equal(harvest.loss_count, 0);
	/* Of a request before it has. */
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1030 * MS, 3000 * MS), 0);
	assert_int_equal(harvest.loss_count, 1);
	tailor_hold_drop(&hold, &room);
	tailor_harvest_free(&harvest);
	free_channel(&channel);
}

/* A ring that has gone around since the window began: how many events that were is known from how far it had come before. */
static void what_was_overwritten_is_counted_from_the_last_look_before_the_window(void **state)
{
	struct tailor_channel channel = channel_of(64);
	struct tailor_harvest harvest = {0};
	struct tailor_hold hold = {0};
	struct tailor_source source = {.channel = channel, .name = "cpu0", .hold = &hold};

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		put(&channel, 1000 * MS + i * MS, NULL);
		if (i < 100 && i % 10 == 9)
			tailor_hold_mark(&hold, &channel, 1000 * MS + i * MS);
	}
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1089 * MS, 3000 * MS), 0);
	assert_int_equal(harvest.loss_count, 1);
	assert_int_equal(harvest.losses[0].from_ns, 0);
	assert_int_equal(harvest.losses[0].to_ns, (1000 + 1000 - 64) * MS);
	assert_int_equal(harvest.losses[0].events, 1000 - 64 - 90);
	assert_int_equal(hold.lost[TAILOR_LOST_OVERWRITTEN], 1000 - 64 - 90);
	tailor_harvest_free(&harvest);
	free_channel(&channel);
}

static void a_position_that_its_producer_never_filled_is_dropped_and_one_that_is_gone_overwritten(void **state)
{
	struct tailor_channel channel = channel_of(64);
	struct tailor_event event;
	enum tailor_lost why;

	(void)state;
	put(&channel, 1, NULL);
	tailor_channel_reserve(channel.head, 1);
	put(&channel, 3, NULL);
	assert_int_equal(tailor_hold_read(&channel, 1, &event, &why), TAILOR_READ_PENDING);
	assert_int_equal(why, TAILOR_LOST_DROPPED);
	for (uint64_t i = 3; i < 70; i++)
		put(&channel, i, NULL);
	assert_int_equal(tailor_hold_read(&channel, 2, &event, &why), TAILOR_READ_LOST);
	assert_int_equal(why, TAILOR_LOST_OVERWRITTEN);
	/* Somebody writes there now. */
	assert_int_equal(tailor_slot_claim(&channel.slots[20], 64 + 20), 1);
	assert_int_equal(tailor_hold_read(&channel, 20, &event, &why), TAILOR_READ_LOST);
	free_channel(&channel);
}

static void put_of(const struct tailor_channel *channel, uint8_t kind, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	struct tailor_event event = {.kind = kind, .time_ns = time_ns, .pid = pid, .tid = tid};

	tailor_channel_write(channel, &event, NULL, 0);
}

/* The worker is 100/101, the servers are 200 and 300; the request was at 200. */
static void a_long_window_is_thinned_by_strangers_first_and_then_in_its_middle(void **state)
{
	const struct tailor_window_server server = {.pid = 200};
	const struct tailor_concern concern = {.servers = &server, .server_count = 1, .proxy_pid = 100, .worker_tid = 101};
	struct tailor_channel channel = channel_of(4096);
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.channel = channel, .name = "cpu0"};
	size_t transmits = 0;

	(void)state;
	for (uint64_t i = 0; i < 500; i++) {
		put_of(&channel, TAILOR_EVENT_SWITCH_IN, 10 * i + 1, 100, 101);
		put_of(&channel, TAILOR_EVENT_SWITCH_IN, 10 * i + 2, 100, 102);
		put_of(&channel, TAILOR_EVENT_SWITCH_IN, 10 * i + 3, 200, 201);
		put_of(&channel, TAILOR_EVENT_SWITCH_IN, 10 * i + 4, 300, 301);
		put_of(&channel, TAILOR_EVENT_TCP_TRANSMIT, 10 * i + 5, 300, 301);
		put_of(&channel, TAILOR_EVENT_CPU_STALL, 10 * i + 6, 0, 0);
	}
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1, 5000), 0);
	assert_int_equal(harvest.event_count, 3000);
	assert_int_equal(tailor_harvest_thin(&harvest, &concern, 3000), 0);
	assert_int_equal(harvest.event_count, 3000);
	assert_int_equal(tailor_harvest_thin(&harvest, &concern, 2000), 0);
	assert_int_equal(harvest.event_count, 2000);
	assert_int_equal(harvest.loss_count, 0);
	for (size_t i = 0; i < harvest.event_count; i++) {
		const struct tailor_event *event = &harvest.events[i].event;

		transmits += event->kind == TAILOR_EVENT_TCP_TRANSMIT;
		assert_true(event->kind != TAILOR_EVENT_SWITCH_IN || event->tid == 101 || event->tid == 201);
	}
	assert_int_equal(transmits, 500);
	/* A quarter of the 400 at the begin: the last of them is number 100 of 4 each 10 ns. */
	assert_int_equal(tailor_harvest_cut(&harvest, 1, 5000), 0);
	assert_int_equal(tailor_harvest_thin(&harvest, &concern, 400), 1600);
	assert_int_equal(harvest.event_count, 400);
	assert_int_equal(harvest.loss_count, 1);
	assert_string_equal(harvest.losses[0].channel, "cpu0");
	assert_int_equal(harvest.losses[0].events, 1600);
	assert_int_equal(harvest.losses[0].from_ns, 246);
	assert_int_equal(harvest.losses[0].to_ns, 4251);
	assert_int_equal(harvest.events[99].event.time_ns, 246);
	assert_int_equal(harvest.events[100].event.time_ns, 4251);
	assert_int_equal(harvest.events[399].event.time_ns, 4996);
	/* The next window of the same harvest is none the wiser. */
	assert_int_equal(tailor_harvest_cut(&harvest, 1, 5000), 0);
	assert_int_equal(harvest.event_count, 3000);
	assert_int_equal(harvest.loss_count, 0);
	tailor_harvest_free(&harvest);
	free_channel(&channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_ring_that_is_followed_gives_the_windows_of_a_large_one),
		cmocka_unit_test(nothing_is_copied_while_the_ring_reaches_back_far_enough),
		cmocka_unit_test(without_room_the_begin_and_the_end_stay_and_the_middle_is_a_loss),
		cmocka_unit_test(faults_that_were_told_late_do_not_hide_what_was_before_them),
		cmocka_unit_test(what_was_given_back_is_not_forgotten_over_faults_that_were_told_late),
		cmocka_unit_test(a_channel_without_an_event_around_the_begin_has_lost_nothing),
		cmocka_unit_test(what_was_overwritten_is_counted_from_the_last_look_before_the_window),
		cmocka_unit_test(a_position_that_its_producer_never_filled_is_dropped_and_one_that_is_gone_overwritten),
		cmocka_unit_test(a_long_window_is_thinned_by_strangers_first_and_then_in_its_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
