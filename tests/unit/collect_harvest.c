/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "collect/harvest.h"
#include "collect_ring.h"

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

static void receives_and_writes_of_long_before_are_told_by_themselves(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "cpu0", .before_ns = 10000000, .earlier_ns = 50000000};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	put(&ring, TAILOR_EVENT_RECEIVE, 0, 30000000, 0, 7, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_RECEIVE, 0, 60000000, 0, 8, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SWITCH_IN, 0, 70000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SYSCALL_WRITE, 0, 95000000, 0, 9, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SWITCH_IN, 0, 130000000, 0, 0, 0, 0, NULL);
	source.channel = ring.channel;
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 100000000, 200000000), 0);
	assert_int_equal(harvest.event_count, 2);
	assert_int_equal(harvest.earlier_count, 1);
	assert_int_equal(harvest.earlier[0].time_ns, 60000000);
	assert_int_equal(harvest.earlier[0].receives, 1);
	/* What a later window of the same read has no more among its events. */
	assert_int_equal(tailor_harvest_cut(&harvest, 120000000, 200000000), 0);
	assert_int_equal(harvest.event_count, 1);
	assert_int_equal(harvest.earlier_count, 2);
	assert_int_equal(harvest.earlier[1].time_ns, 95000000);
	assert_int_equal(harvest.earlier[1].receives, 0);
	tailor_harvest_free(&harvest);
}

static void since_when_threads_were_ready_is_told_by_itself(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "cpu0", .before_ns = 10000000, .earlier_ns = 50000000};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	put(&ring, TAILOR_EVENT_WAKEUP, 0, 30000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SWITCH_OUT, 0, 60000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_WAKEUP, 0, 70000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SWITCH_IN, 0, 95000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SWITCH_OUT, 0, 105000000, 0, 0, 0, 0, NULL);
	tailor_channel_reserve(&ring.head, 2);
	put(&ring, TAILOR_EVENT_SWITCH_IN, 0, 115000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_SWITCH_IN, 0, 150000000, 0, 0, 0, 0, NULL);
	source.channel = ring.channel;
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 100000000, 200000000), 0);
	assert_int_equal(harvest.scheduling_count, 2);
	assert_int_equal(harvest.scheduling[0].time_ns, 70000000);
	assert_int_equal(harvest.scheduling[1].time_ns, 60000000);
	assert_int_equal(harvest.whole_ns, 40000000);
	/* What a later window of the same read has no more among its events, nor among its losses. */
	assert_int_equal(tailor_harvest_cut(&harvest, 140000000, 200000000), 0);
	assert_int_equal(harvest.scheduling_count, 3);
	assert_int_equal(harvest.loss_count, 0);
	assert_int_equal(harvest.whole_ns, 115000000);
	tailor_harvest_free(&harvest);
}

static void a_gap_before_the_window_is_where_what_is_known_of_before_begins(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source sources[2] = {{.name = "cpu0", .before_ns = 10000000, .earlier_ns = 500000000},
	                                   {.name = "cpu1", .before_ns = 10000000, .earlier_ns = 500000000}};
	struct ring gap, idle;

	(void)state;
	ring_open(&gap);
	ring_open(&idle);
	for (uint64_t i = 0; i < 80; i++) {
		put(&gap, TAILOR_EVENT_WAKEUP, 0, 1000000000 + i * 10000000, 0, 0, 0, 0, NULL);
		if (i == 50 || i == 70)
			tailor_channel_reserve(&gap.head, 1);
	}
	put(&idle, TAILOR_EVENT_WAKEUP, 0, 1000000000, 0, 0, 0, 0, NULL);
	sources[0].channel = gap.channel;
	sources[1].channel = idle.channel;
	assert_int_equal(tailor_harvest_read(&harvest, sources, 2, 1780000000, 1790000000), 0);
	assert_int_equal(harvest.whole_ns, 1711000000); /* the last of the gaps, and by how much events may be out of order */
	assert_int_equal(tailor_harvest_read(&harvest, sources, 2, 1680000000, 1690000000), 0);
	assert_int_equal(harvest.whole_ns, 1511000000);
	/* 82 positions, 64 slots: what was before is gone. */
	assert_int_equal(tailor_harvest_read(&harvest, sources, 2, 1480000000, 1490000000), 0);
	assert_int_equal(harvest.whole_ns, 1181000000);
	/* Nothing was there, which is known. */
	assert_int_equal(tailor_harvest_read(&harvest, sources + 1, 1, 1780000000, 1790000000), 0);
	assert_int_equal(harvest.whole_ns, 1270000000);
	tailor_harvest_free(&harvest);
}

/* Faults are told when their thread leaves its CPU, with the time of the last one. */
static void faults_that_are_told_late_hide_no_part_of_a_gap(void **state)
{
	struct tailor_harvest harvest = {0};
	struct tailor_source source = {.name = "cpu0", .before_ns = 10000000, .earlier_ns = 500000000};
	struct ring ring;

	(void)state;
	ring_open(&ring);
	put(&ring, TAILOR_EVENT_WAKEUP, 0, 1000000000, 0, 0, 0, 0, NULL);
	tailor_channel_reserve(&ring.head, 2);
	put(&ring, TAILOR_EVENT_PAGE_FAULTS, 0, 1010000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_WAKEUP, 0, 1050000000, 0, 0, 0, 0, NULL);
	put(&ring, TAILOR_EVENT_WAKEUP, 0, 1090000000, 0, 0, 0, 0, NULL);
	source.channel = ring.channel;
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1070000000, 1090000000), 0);
	assert_int_equal(harvest.loss_count, 0);
	assert_int_equal(harvest.whole_ns, 1051000000);
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1020000000, 1090000000), 0);
	assert_int_equal(harvest.loss_count, 1);
	assert_int_equal(harvest.losses[0].from_ns, 1000000000);
	assert_int_equal(harvest.losses[0].to_ns, 1050000000);
	tailor_harvest_free(&harvest);
}

static void what_was_not_looked_through_is_not_known_to_be_whole(void **state)
{
	const size_t slots = 32768, written = HARVEST_EARLIER_MAX + 8000;
	struct tailor_harvest harvest = {0};
	struct tailor_channel_head head = {0};
	struct tailor_source source = {.name = "cpu0", .channel = {&head, calloc(slots, sizeof(struct tailor_event)), slots - 1}, .earlier_ns = 100000000};

	(void)state;
	assert_non_null(source.channel.slots);
	/* 4 us apart: all of them within what is to be looked at. */
	for (size_t i = 0; i < written; i++) {
		struct tailor_event event = {.kind = TAILOR_EVENT_SWITCH_IN, .time_ns = 1000000000 + i * 4000};

		tailor_channel_write(&source.channel, &event, NULL, 0);
	}
	assert_int_equal(tailor_harvest_read(&harvest, &source, 1, 1000000000 + written * 4000, 1200000000), 0);
	assert_int_equal(harvest.whole_ns, 1000000000 + (written - HARVEST_EARLIER_MAX - 1) * 4000 + 1000000);
	free(source.channel.slots);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_harvest_is_ordered_cut_to_its_window_and_keeps_texts),
		cmocka_unit_test(receives_and_writes_of_long_before_are_told_by_themselves),
		cmocka_unit_test(since_when_threads_were_ready_is_told_by_itself),
		cmocka_unit_test(a_gap_before_the_window_is_where_what_is_known_of_before_begins),
		cmocka_unit_test(faults_that_are_told_late_hide_no_part_of_a_gap),
		cmocka_unit_test(what_was_not_looked_through_is_not_known_to_be_whole),
		cmocka_unit_test(a_harvest_says_what_was_overwritten_and_what_was_dropped),
		cmocka_unit_test(a_single_event_that_came_late_does_not_end_the_harvest),
		cmocka_unit_test(a_harvest_of_nothing_is_empty),
		cmocka_unit_test(what_was_overwritten_before_the_window_is_no_loss_of_it),
		cmocka_unit_test(windows_cut_from_one_harvest_are_those_of_harvests_of_their_own),
		cmocka_unit_test(a_harvest_of_events_in_backward_order_ends_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
