/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/hold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Positions of a channel are in time order but for producers that raced each other, and those differ by far less than this. */
#define DISORDER_NS UINT64_C(1000000)
/* Where to begin is searched until so few positions are left. */
#define SEARCH_POSITIONS 64
#define PREFETCH_SLOTS 12

const char *tailor_lost_name(enum tailor_lost reason)
{
	switch (reason) {
	case TAILOR_LOST_OVERWRITTEN: return "overwritten";
	case TAILOR_LOST_TORN: return "torn";
	case TAILOR_LOST_DROPPED: return "dropped";
	case TAILOR_LOST_THINNED: return "thinned";
	}
	return "unknown";
}

enum tailor_read tailor_hold_read(const struct tailor_channel *channel, uint64_t position, struct tailor_event *ret_event,
                                  enum tailor_lost *ret_why)
{
	uint64_t before = tailor_load(&channel->slots[position & channel->mask].sequence);
	enum tailor_read result = tailor_channel_read(channel, position, ret_event);

	if (result == TAILOR_READ_LOST)
		*ret_why = before == TAILOR_SEQUENCE_PUBLISHED(position) ? TAILOR_LOST_TORN : TAILOR_LOST_OVERWRITTEN;
	else if (result == TAILOR_READ_PENDING)
		*ret_why = TAILOR_LOST_DROPPED;
	return result;
}

void tailor_hold_mark(struct tailor_hold *hold, const struct tailor_channel *channel, uint64_t now_ns)
{
	hold->mark[hold->marks % TAILOR_HOLD_MARKS].time_ns = now_ns;
	hold->mark[hold->marks % TAILOR_HOLD_MARKS].end = tailor_channel_end(channel);
	hold->marks++;
}

uint64_t tailor_hold_position(const struct tailor_hold *hold, uint64_t time_ns)
{
	uint64_t known = hold->marks < TAILOR_HOLD_MARKS ? hold->marks : TAILOR_HOLD_MARKS;

	for (uint64_t i = 1; i <= known; i++) {
		uint64_t place = (hold->marks - i) % TAILOR_HOLD_MARKS;

		if (hold->mark[place].time_ns <= time_ns)
			return hold->mark[place].end;
	}
	return 0;
}

/*
 * The first of these positions whose event says when it was written: its time; UINT64_MAX where there is none among them. Page faults are
 * told when their thread leaves its CPU, under the time of the last of them.
 */
static uint64_t time_at(const struct tailor_channel *channel, uint64_t position, uint64_t end)
{
	struct tailor_event event;

	for (; position < end; position++) {
		if (tailor_channel_read(channel, position, &event) == TAILOR_READ_OK && event.kind != TAILOR_EVENT_TEXT &&
		    event.kind != TAILOR_EVENT_PAGE_FAULTS)
			return event.time_ns;
	}
	return UINT64_MAX;
}

/* A position not long before the first event since that time. */
static uint64_t search_begin(const struct tailor_channel *channel, uint64_t oldest, uint64_t end, uint64_t needed_ns)
{
	uint64_t low = oldest, high = end;

	while (high - low > SEARCH_POSITIONS) {
		uint64_t middle = low + (high - low) / 2;
		uint64_t time_ns = time_at(channel, middle, high);

		if (time_ns < needed_ns && needed_ns - time_ns > DISORDER_NS)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int grow(struct tailor_hold *hold)
{
	size_t capacity;
	void *slots;

	if (hold->first + hold->count < hold->capacity)
		return 0;
	if (hold->first > hold->capacity / 2) {
		memmove(hold->slots, hold->slots + hold->first, hold->count * sizeof(*hold->slots));
		hold->first = 0;
		return 0;
	}
	capacity = hold->capacity ? 2 * hold->capacity : 1024;
	slots = realloc(hold->slots, capacity * sizeof(*hold->slots));
	if (!slots)
		return -ENOMEM;
	hold->slots = slots;
	hold->capacity = capacity;
	return 0;
}

/*
 * Copies up to the position. What is being written is waited for until the ring has gone around by three quarters: its producer may
 * have been pushed off its CPU.
 */
static int copy(struct tailor_hold *hold, const struct tailor_channel *channel, uint64_t until, size_t *room)
{
	uint64_t patience = (channel->mask + 1) / 4 * 3;

	while (hold->next < until) {
		enum tailor_read result;
		enum tailor_lost why;

		hold->full = *room == 0;
		if (hold->full)
			return -ENOBUFS;
		if (grow(hold))
			return -ENOMEM;
		__builtin_prefetch(&channel->slots[(hold->next + PREFETCH_SLOTS) & channel->mask]);
		result = tailor_hold_read(channel, hold->next, &hold->slots[hold->first + hold->count], &why);
		if (result == TAILOR_READ_PENDING && until - hold->next < patience)
			return 0;
		if (result == TAILOR_READ_OK) {
			hold->count++;
			--*room;
		} else if (hold->next >= hold->counted) {
			hold->lost[why]++;
		}
		hold->next++;
		if (hold->counted < hold->next)
			hold->counted = hold->next;
	}
	return 0;
}

int tailor_hold_follow(struct tailor_hold *hold, const struct tailor_channel *channel, uint64_t needed_ns, int at_once, size_t *room)
{
	uint64_t end = tailor_channel_end(channel), slots = channel->mask + 1;
	uint64_t oldest = end > slots ? end - slots : 0;

	if (end == 0 || (end <= slots / 2 && !at_once))
		return 0;
	if (hold->next == 0) {
		uint64_t half_ns = at_once ? needed_ns : time_at(channel, end - slots / 2, end);

		if (half_ns < needed_ns || half_ns == UINT64_MAX)
			return 0;
		hold->begin = hold->next = search_begin(channel, oldest, end, needed_ns);
	}
	if (hold->next < oldest) {
		if (*room == 0)
			return -ENOBUFS;
		if (hold->counted < oldest) {
			hold->lost[hold->full ? TAILOR_LOST_THINNED : TAILOR_LOST_OVERWRITTEN] += oldest - (hold->counted > hold->next ? hold->counted : hold->next);
			hold->counted = oldest;
		}
		hold->next = oldest;
	}
	return copy(hold, channel, end, room);
}

void tailor_hold_drop(struct tailor_hold *hold, size_t *room)
{
	tailor_hold_trim(hold, UINT64_MAX, room);
	hold->counted = 0;
	hold->marks = 0;
}

void tailor_hold_trim(struct tailor_hold *hold, uint64_t needed_ns, size_t *room)
{
	if (needed_ns == UINT64_MAX) {
		*room += hold->count;
		free(hold->slots);
		hold->slots = NULL;
		hold->first = hold->count = hold->capacity = 0;
		hold->begin = hold->next = hold->since_ns = 0;
		hold->full = 0;
		return;
	}
	while (hold->count > 0) {
		const struct tailor_event *slot = &hold->slots[hold->first];

		/* A text has no time of its own; it goes with its event. */
		if (slot->kind != TAILOR_EVENT_TEXT && slot->time_ns + DISORDER_NS >= needed_ns)
			break;
		hold->begin = tailor_hold_position_of(slot) + 1;
		if (slot->kind != TAILOR_EVENT_TEXT && slot->time_ns + DISORDER_NS > hold->since_ns)
			hold->since_ns = slot->time_ns + DISORDER_NS;
		hold->first++;
		hold->count--;
		++*room;
	}
}
