/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel that somebody else writes, as every JVM's is: the input is its memory, a head and 64-byte slots. Proves:
 * the reader stays inside it, takes each position once, and gives events of the window in the order of time with texts
 * that end; and that it ends. (How it fares while a producer writes is tested in tests/unit/channel.c.)
 */
#include <tailor/channel.h>

#include "fuzz.h"
#include "collect/harvest.h"

#define SLOTS_MAX 64
#define FROM_NS 1000000
#define TO_NS 2000000
#define BEFORE_NS 500000

static void check_harvest(const struct tailor_harvest *harvest, size_t slots)
{
	require(harvest->event_count <= slots && harvest->loss_count <= slots + 1);
	for (size_t i = 0; i < harvest->event_count; i++) {
		const struct tailor_window_event *entry = &harvest->events[i];

		require(entry->event.kind != TAILOR_EVENT_TEXT && entry->event.pid != 4711);
		require(entry->event.time_ns >= FROM_NS - BEFORE_NS && entry->event.time_ns <= TO_NS);
		require(i == 0 || entry->event.time_ns >= entry[-1].event.time_ns);
		require(!entry->text ||
		        (entry->event.texts > 0 && strlen(entry->text) <= TAILOR_TEXTS_MAX * TAILOR_TEXT_BYTES));
	}
	for (size_t i = 0; i < harvest->loss_count; i++)
		require(harvest->losses[i].events > 0 && harvest->losses[i].events <= slots + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tailor_harvest harvest = {0};
	struct tailor_channel_head *head;
	struct tailor_event *slot;
	size_t slots = SLOTS_MAX;

	/* The head, then as many slots as there are whole ones, a power of two. */
	while (slots > 1 && sizeof(*head) + slots * sizeof(*slot) > size)
		slots /= 2;
	if (sizeof(*head) + sizeof(*slot) > size)
		return 0;
	head = malloc(sizeof(*head));
	slot = malloc(slots * sizeof(*slot));
	require(head && slot);
	memcpy(head, data, sizeof(*head));
	memcpy(slot, data + sizeof(*head), slots * sizeof(*slot));
	for (int round = 0; round < 2; round++) {
		const struct tailor_source source = {.channel = {head, slot, slots - 1},
		                                     .name = "jvm:a",
		                                     .own_pid = 4711,
		                                     .pid = 12,
		                                     .before_ns = BEFORE_NS};

		require(tailor_harvest_read(&harvest, &source, 1, FROM_NS, TO_NS) == 0);
		check_harvest(&harvest, slots);
		/* As the input has it, few sequences fit their positions; with those set right, every slot is read. */
		for (uint64_t i = 0, end = head->reserved_count; i < slots && i < end; i++)
			slot[(end - 1 - i) & (slots - 1)].sequence = TAILOR_SEQUENCE_PUBLISHED(end - 1 - i);
	}
	tailor_harvest_free(&harvest);
	free(head);
	free(slot);
	return 0;
}
