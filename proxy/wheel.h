/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines of one worker: a wheel of 256 ticks of 2^24 ns (16.8 ms). Moving a deadline later, which is what almost
 * every request does, is one store; the alarm notices when it rings too early. Deadlines are therefore kept to a
 * tick, never early. One thread.
 */
#ifndef TAILOR_PROXY_WHEEL_H
#define TAILOR_PROXY_WHEEL_H

#include <stdint.h>

#define WHEEL_SLOTS 256
#define WHEEL_TICK_SHIFT 24

/* Zeroed before first use. */
struct alarm {
	struct alarm *next;
	struct alarm **link; /* what points to this; NULL while in no slot */
	uint64_t tick;       /* where it is in the wheel */
	uint64_t deadline_ns;
};

struct wheel {
	struct alarm *slot[WHEEL_SLOTS];
	uint64_t occupied[WHEEL_SLOTS / 64];
	uint64_t tick; /* the last one that was run */
};

void wheel_open(struct wheel *wheel, uint64_t now_ns);

/* Sets or moves the deadline; UINT64_MAX takes it away. */
void wheel_set(struct wheel *wheel, struct alarm *alarm, uint64_t deadline_ns);

/* Takes the alarm out; required before its memory is used for something else. */
void wheel_remove(struct wheel *wheel, struct alarm *alarm);

/* Returns an alarm whose deadline has passed, taken out, or NULL; call until NULL. */
struct alarm *wheel_run(struct wheel *wheel, uint64_t now_ns);

/* When wheel_run() next has something to look at; UINT64_MAX when the wheel is empty. */
uint64_t wheel_next_ns(const struct wheel *wheel);

#endif /* TAILOR_PROXY_WHEEL_H */
