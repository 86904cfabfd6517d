/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tailor/channel.h>
#include <unistd.h>

#define WORDS (sizeof(struct tailor_event) / sizeof(uint64_t))
#define PRODUCERS 4
#define EVENTS_PER_PRODUCER 30000

/* What the producers and the reader share; zeroed, in memory that forked processes share too. */
struct shared {
	struct tailor_channel_head head;
	unsigned int running; /* producers at work */
	struct tailor_event slots[64];
};

struct producer {
	const struct tailor_channel *channel;
	struct shared *shared;
	uint64_t number;
	int hesitates;
	pthread_t thread;
	pid_t process;
};

struct tally {
	uint64_t accepted;
	uint64_t lost;
	uint64_t torn;
};

static struct shared *share(struct tailor_channel *ret_channel, uint64_t slots)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(shared != MAP_FAILED);
	assert_true(slots <= sizeof(shared->slots) / sizeof(shared->slots[0]));
	*ret_channel = (struct tailor_channel){.head = &shared->head, .slots = shared->slots, .mask = slots - 1};
	return shared;
}

/* Every word of an event follows from one number, so that a mix of two events shows. */
static uint64_t word(uint64_t number, size_t index)
{
	return (number + index) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(uint64_t words[WORDS], uint64_t number)
{
	words[0] = 0;
	words[1] = number;
	for (size_t i = 2; i < WORDS; i++)
		words[i] = word(number, i);
}

static int is_whole(const uint64_t words[WORDS])
{
	for (size_t i = 2; i < WORDS; i++) {
		if (words[i] != word(words[1], i))
			return 0;
	}
	return 1;
}

/* tailor_slot_write(), but it gives the CPU away in the middle: what a preempted producer looks like to the others. */
static void write_hesitating(struct tailor_event *slot, uint64_t position, const uint64_t words[WORDS])
{
	uint64_t *to = (uint64_t *)(void *)slot;

	if (!tailor_slot_claim(slot, position))
		return;
	for (size_t i = 1; i < WORDS; i++) {
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELEASE);
		if (i == WORDS / 2)
			sched_yield();
	}
	tailor_slot_publish(slot, position);
}

static void *produce(void *argument)
{
	const struct producer *producer = argument;
	const struct tailor_channel *channel = producer->channel;
	uint64_t words[WORDS];

	for (uint64_t i = 0; i < EVENTS_PER_PRODUCER; i++) {
		uint64_t position = tailor_channel_reserve(channel->head, 1);
		struct tailor_event *slot = &channel->slots[position & channel->mask];

		fill(words, producer->number << 32 | i);
		if (producer->hesitates && i % 4 == 0)
			write_hesitating(slot, position, words);
		else
			tailor_slot_write(slot, position, words);
	}
	__atomic_fetch_sub(&producer->shared->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Reads every position once, until the producers are done and nothing is left. */
static struct tally read_all(const struct tailor_channel *channel, struct shared *shared)
{
	struct tally tally = {0};
	uint64_t position = 0;

	for (;;) {
		int done = __atomic_load_n(&shared->running, __ATOMIC_ACQUIRE) == 0;
		uint64_t words[WORDS];

		if (position == tailor_channel_end(channel)) {
			if (done)
				return tally;
			sched_yield();
			continue;
		}
		switch (tailor_channel_read(channel, position, (struct tailor_event *)(void *)words)) {
		case TAILOR_READ_OK:
			if (words[0] != TAILOR_SEQUENCE_PUBLISHED(position) || !is_whole(words))
				tally.torn++;
			tally.accepted++;
			break;
		case TAILOR_READ_LOST: tally.lost++; break;
		case TAILOR_READ_PENDING:
			if (!done)
				continue;
			tally.lost++; /* nobody is left who could publish it */
			break;
		}
		position++;
	}
}

static void check(struct tally tally, const struct tailor_channel *channel)
{
	uint64_t reserved = tailor_channel_end(channel);

	print_message("             %llu accepted, %llu lost\n", (unsigned long long)tally.accepted,
	              (unsigned long long)tally.lost);
	assert_int_equal(tally.torn, 0);
	assert_int_equal(reserved, (uint64_t)PRODUCERS * EVENTS_PER_PRODUCER);
	assert_int_equal(tally.accepted + tally.lost, reserved);
	assert_true(tally.accepted > 0);
	assert_true(tally.lost > 0); /* or the producers never lapped the reader, and this tested nothing */
}

static void lap_with_threads(uint64_t slots)
{
	struct producer producers[PRODUCERS];
	struct tailor_channel channel;
	struct shared *shared = share(&channel, slots);
	struct tally tally;

	shared->running = PRODUCERS;
	for (unsigned int i = 0; i < PRODUCERS; i++) {
		producers[i] =
			(struct producer){.channel = &channel, .shared = shared, .number = i, .hesitates = i % 2 == 0};
		assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
	}
	tally = read_all(&channel, shared);
	for (unsigned int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i].thread, NULL);
	check(tally, &channel);
	munmap(shared, sizeof(*shared));
}

static void threads_that_lap_the_reader_never_show_it_a_torn_event(void **state)
{
	(void)state;
	lap_with_threads(2);
	lap_with_threads(16);
}

static void processes_that_lap_the_reader_never_show_it_a_torn_event(void **state)
{
	struct producer producers[PRODUCERS];
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 4);
	struct tally tally;

	(void)state;
	shared->running = PRODUCERS;
	for (unsigned int i = 0; i < PRODUCERS; i++) {
		producers[i] =
			(struct producer){.channel = &channel, .shared = shared, .number = i, .hesitates = i % 2 == 0};
		producers[i].process = fork();
		assert_true(producers[i].process >= 0);
		if (producers[i].process == 0) {
			produce(&producers[i]);
			_exit(0);
		}
	}
	tally = read_all(&channel, shared);
	for (unsigned int i = 0; i < PRODUCERS; i++) {
		int status = -1;

		assert_int_equal(waitpid(producers[i].process, &status, 0), producers[i].process);
		assert_int_equal(status, 0);
	}
	check(tally, &channel);
	munmap(shared, sizeof(*shared));
}

/* The only producer of its channel: an event and a text of two slots in turn, numbered so that `texts` is not part of it. */
static void *produce_alone(void *argument)
{
	const struct producer *producer = argument;
	char text[TAILOR_TEXT_BYTES + 1];

	for (uint64_t i = 0; i < 4 * EVENTS_PER_PRODUCER; i++) {
		uint64_t words[WORDS];

		fill(words, i << 16);
		memset(text, (int)('a' + i % 26), sizeof(text));
		tailor_channel_write_alone(producer->channel, (struct tailor_event *)(void *)words, text, i % 2 ? sizeof(text) : 0);
		if (i % 64 == 0)
			sched_yield();
	}
	__atomic_fetch_sub(&producer->shared->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* What one position holds: 0 for a text that is whole, 1 for an event that is; else fails. */
static int assert_whole_slot(uint64_t words[WORDS], uint64_t position)
{
	const struct tailor_text *line = (const struct tailor_text *)(void *)words;

	assert_int_equal(words[0], TAILOR_SEQUENCE_PUBLISHED(position));
	if (line->kind == TAILOR_EVENT_TEXT) {
		assert_true(line->length == TAILOR_TEXT_BYTES || line->length == 1);
		for (unsigned int i = 1; i < line->length; i++)
			assert_int_equal(line->text[i], line->text[0]);
		return 0;
	}
	words[1] &= ~UINT64_C(0xffff); /* kind, texts */
	assert_true(is_whole(words));
	return 1;
}

static void a_producer_that_is_alone_needs_no_locks_to_show_whole_events_only(void **state)
{
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 16);
	struct producer producer = {.channel = &channel, .shared = shared};
	uint64_t position = 0, events = 0, texts = 0, lost = 0, words[WORDS];
	int done;

	(void)state;
	shared->running = 1;
	assert_int_equal(pthread_create(&producer.thread, NULL, produce_alone, &producer), 0);
	do {
		done = __atomic_load_n(&shared->running, __ATOMIC_ACQUIRE) == 0;
		for (; position < tailor_channel_end(&channel); position++) {
			enum tailor_read result = tailor_channel_read(&channel, position, (struct tailor_event *)(void *)words);

			/* What is counted is published: nothing is ever pending. */
			assert_int_not_equal(result, TAILOR_READ_PENDING);
			if (result == TAILOR_READ_LOST)
				lost++;
			else if (assert_whole_slot(words, position))
				events++;
			else
				texts++;
		}
		sched_yield();
	} while (!done);
	pthread_join(producer.thread, NULL);
	print_message("             %llu events and %llu texts accepted, %llu lost\n", (unsigned long long)events,
	              (unsigned long long)texts, (unsigned long long)lost);
	assert_int_equal(events + texts + lost, 4 * EVENTS_PER_PRODUCER * 2);
	assert_true(events > 0 && texts > 0);
	assert_true(lost > 0); /* or the producer never lapped the reader, and this tested nothing */
	munmap(shared, sizeof(*shared));
}

/* Writes one event whose number is its position. */
static void write_one(const struct tailor_channel *channel)
{
	uint64_t position = tailor_channel_reserve(channel->head, 1);
	uint64_t words[WORDS];

	fill(words, position);
	tailor_slot_write(&channel->slots[position & channel->mask], position, words);
}

static void assert_reads(const struct tailor_channel *channel, uint64_t position)
{
	uint64_t words[WORDS];

	assert_int_equal(tailor_channel_read(channel, position, (struct tailor_event *)(void *)words), TAILOR_READ_OK);
	assert_int_equal(words[1], position);
	assert_true(is_whole(words));
}

static void assert_result(const struct tailor_channel *channel, uint64_t position, enum tailor_read result)
{
	struct tailor_event event;

	assert_int_equal(tailor_channel_read(channel, position, &event), result);
}

static void a_lapped_producer_that_had_not_claimed_its_slot_drops_its_event(void **state)
{
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 4);
	uint64_t stalled, words[WORDS];

	(void)state;
	stalled = tailor_channel_reserve(channel.head, 1); /* position 0; then it is stopped */
	for (unsigned int i = 0; i < 4; i++)
		write_one(&channel); /* positions 1 to 4; the last takes the slot of position 0 */
	fill(words, stalled);
	tailor_slot_write(&channel.slots[stalled & channel.mask], stalled, words);
	assert_result(&channel, stalled, TAILOR_READ_LOST);
	for (uint64_t position = 1; position <= 4; position++)
		assert_reads(&channel, position);
	munmap(shared, sizeof(*shared));
}

static void a_producer_that_stalls_inside_its_slot_costs_the_events_that_come_round_to_it(void **state)
{
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 4);
	uint64_t stalled, words[WORDS];
	uint64_t *slot = (uint64_t *)(void *)&channel.slots[0];

	(void)state;
	stalled = tailor_channel_reserve(channel.head, 1);
	assert_true(tailor_slot_claim(&channel.slots[0], stalled));
	fill(words, stalled);
	memcpy(&slot[1], &words[1], 3 * sizeof(words[0])); /* half of it; then it is stopped */
	assert_result(&channel, stalled, TAILOR_READ_PENDING);
	for (unsigned int i = 0; i < 7; i++)
		write_one(&channel); /* positions 1 to 7; 4 finds the slot busy */
	assert_result(&channel, 4, TAILOR_READ_PENDING);
	assert_result(&channel, 0, TAILOR_READ_LOST);
	for (uint64_t position = 5; position <= 7; position++)
		assert_reads(&channel, position);

	memcpy(&slot[4], &words[4], (WORDS - 4) * sizeof(words[0])); /* it goes on */
	tailor_slot_publish(&channel.slots[0], stalled);
	assert_reads(&channel, stalled); /* late, but whole and where it belongs */
	write_one(&channel);             /* position 8 */
	assert_reads(&channel, 8);
	assert_result(&channel, 4, TAILOR_READ_LOST);
	assert_result(&channel, stalled, TAILOR_READ_LOST);
	munmap(shared, sizeof(*shared));
}

static void a_position_is_claimed_once_and_never_again(void **state)
{
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 4);
	uint64_t position = tailor_channel_reserve(channel.head, 1);

	(void)state;
	assert_true(tailor_slot_claim(&channel.slots[0], position));
	assert_false(tailor_slot_claim(&channel.slots[0], position));
	assert_false(tailor_slot_claim(&channel.slots[0], position + 4));
	tailor_slot_publish(&channel.slots[0], position);
	assert_false(tailor_slot_claim(&channel.slots[0], position));
	assert_true(tailor_slot_claim(&channel.slots[0], position + 4));
	munmap(shared, sizeof(*shared));
}

static void a_position_not_yet_reserved_is_pending(void **state)
{
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 4);

	(void)state;
	assert_result(&channel, 0, TAILOR_READ_PENDING);
	write_one(&channel);
	assert_reads(&channel, 0);
	assert_result(&channel, 1, TAILOR_READ_PENDING);
	assert_result(&channel, 4, TAILOR_READ_PENDING);
	munmap(shared, sizeof(*shared));
}

static void text_survives_a_round_trip_and_is_cut_at_the_end(void **state)
{
	static const size_t lengths[] = {0, 1, 51, 52, 53, 104, 207, 208, 209, 500};
	struct tailor_channel channel;
	struct shared *shared = share(&channel, 16);
	char text[500];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('!' + i % 90);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t expected = lengths[i] < TAILOR_TEXTS_MAX * TAILOR_TEXT_BYTES
		                          ? lengths[i]
		                          : TAILOR_TEXTS_MAX * TAILOR_TEXT_BYTES;
		struct tailor_event event = {.kind = TAILOR_EVENT_CLASS_LOAD, .time_ns = 7 + i};
		uint64_t first = tailor_channel_end(&channel);
		struct tailor_event slot = {0};
		char back[sizeof(text)];
		size_t length = 0;

		tailor_channel_write(&channel, &event, text, lengths[i]);
		assert_int_equal(tailor_channel_read(&channel, first, &slot), TAILOR_READ_OK);
		assert_int_equal(slot.kind, TAILOR_EVENT_CLASS_LOAD);
		assert_int_equal(slot.time_ns, 7 + i);
		assert_int_equal(tailor_channel_end(&channel), first + 1 + slot.texts);
		for (unsigned int j = 1; j <= slot.texts; j++) {
			struct tailor_event line_slot = {0};
			struct tailor_text line;

			assert_int_equal(tailor_channel_read(&channel, first + j, &line_slot), TAILOR_READ_OK);
			memcpy(&line, &line_slot, sizeof(line));
			assert_int_equal(line.kind, TAILOR_EVENT_TEXT);
			assert_in_range(line.length, 1, TAILOR_TEXT_BYTES);
			memcpy(back + length, line.text, line.length);
			length += line.length;
		}
		assert_int_equal(length, expected);
		assert_memory_equal(back, text, expected);
	}
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_lap_the_reader_never_show_it_a_torn_event),
		cmocka_unit_test(a_producer_that_is_alone_needs_no_locks_to_show_whole_events_only),
		cmocka_unit_test(processes_that_lap_the_reader_never_show_it_a_torn_event),
		cmocka_unit_test(a_lapped_producer_that_had_not_claimed_its_slot_drops_its_event),
		cmocka_unit_test(a_producer_that_stalls_inside_its_slot_costs_the_events_that_come_round_to_it),
		cmocka_unit_test(a_position_is_claimed_once_and_never_again),
		cmocka_unit_test(a_position_not_yet_reserved_is_pending),
		cmocka_unit_test(text_survives_a_round_trip_and_is_cut_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
