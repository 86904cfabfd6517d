/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/wheel.h"

#include <stddef.h>
#include <string.h>

/* The first tick that begins at or after the deadline. */
static uint64_t tick_after(uint64_t deadline_ns)
{
	return (deadline_ns >> WHEEL_TICK_SHIFT) + 1;
}

void wheel_open(struct wheel *wheel, uint64_t now_ns)
{
	memset(wheel, 0, sizeof(*wheel));
	wheel->tick = now_ns >> WHEEL_TICK_SHIFT;
}

static void insert(struct wheel *wheel, struct alarm *alarm)
{
	uint64_t tick = tick_after(alarm->deadline_ns);
	struct alarm **slot;

	/* Farther than the wheel reaches: looked at again when the farthest slot comes by. */
	if (tick > wheel->tick + WHEEL_SLOTS - 1)
		tick = wheel->tick + WHEEL_SLOTS - 1;
	if (tick <= wheel->tick)
		tick = wheel->tick + 1;
	alarm->tick = tick;
	slot = &wheel->slot[tick % WHEEL_SLOTS];
	alarm->next = *slot;
	if (*slot)
		(*slot)->link = &alarm->next;
	*slot = alarm;
	alarm->link = slot;
	wheel->occupied[tick % WHEEL_SLOTS / 64] |= UINT64_C(1) << (tick % 64);
}

void wheel_remove(struct wheel *wheel, struct alarm *alarm)
{
	if (!alarm->link)
		return;
	*alarm->link = alarm->next;
	if (alarm->next)
		alarm->next->link = alarm->link;
	alarm->link = NULL;
	if (!wheel->slot[alarm->tick % WHEEL_SLOTS])
		wheel->occupied[alarm->tick % WHEEL_SLOTS / 64] &= ~(UINT64_C(1) << (alarm->tick % 64));
}

void wheel_set(struct wheel *wheel, struct alarm *alarm, uint64_t deadline_ns)
{
	alarm->deadline_ns = deadline_ns;
	if (alarm->link) {
		if (deadline_ns == UINT64_MAX || alarm->tick <= tick_after(deadline_ns))
			return;
		wheel_remove(wheel, alarm);
	}
	if (deadline_ns != UINT64_MAX)
		insert(wheel, alarm);
}

struct alarm *wheel_run(struct wheel *wheel, uint64_t now_ns)
{
	uint64_t now = now_ns >> WHEEL_TICK_SHIFT;

	/* After a long stop each slot is looked at once. */
	if (now > wheel->tick + WHEEL_SLOTS)
		wheel->tick = now - WHEEL_SLOTS;
	while (wheel->tick < now) {
		struct alarm *alarm = wheel->slot[(wheel->tick + 1) % WHEEL_SLOTS];

		if (!alarm) {
			wheel->tick++;
			continue;
		}
		wheel_remove(wheel, alarm);
		if (alarm->deadline_ns == UINT64_MAX)
			continue;
		if (alarm->deadline_ns <= now_ns)
			return alarm;
		/* From here it may go at most one turn ahead without landing in the slot that is being emptied. */
		wheel->tick++;
		insert(wheel, alarm);
		wheel->tick--;
	}
	return NULL;
}

uint64_t wheel_next_ns(const struct wheel *wheel)
{
	for (uint64_t tick = wheel->tick + 1; tick <= wheel->tick + WHEEL_SLOTS;) {
		uint64_t word = wheel->occupied[tick % WHEEL_SLOTS / 64] >> (tick % 64);

		if (word)
			return (tick + (uint64_t)__builtin_ctzll(word)) << WHEEL_TICK_SHIFT;
		tick += 64 - tick % 64;
	}
	return UINT64_MAX;
}
