/* SPDX-License-Identifier: Apache-2.0 */
/* A small channel in plain memory, for tests that write events into it. */
#ifndef TAILOR_TESTS_UNIT_COLLECT_RING_H
#define TAILOR_TESTS_UNIT_COLLECT_RING_H

#include <stdint.h>
#include <string.h>
#include <tailor/channel.h>

struct ring {
	struct tailor_channel_head head;
	struct tailor_event slots[64];
	struct tailor_channel channel;
};

static inline void ring_open(struct ring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->channel = (struct tailor_channel){&ring->head, ring->slots, 63};
}

static inline void put(struct ring *ring, enum tailor_event_kind kind, uint64_t request, uint64_t time_ns, uint32_t extra, uint64_t arg0,
                       uint64_t arg1, uint64_t arg2, const char *text)
{
	struct tailor_event event = {.kind = kind, .request = request, .time_ns = time_ns, .extra = extra, .pid = 10, .tid = 11};

	event.arg[0] = arg0;
	event.arg[1] = arg1;
	event.arg[2] = arg2;
	tailor_channel_write(&ring->channel, &event, text, text ? strlen(text) : 0);
}

#endif /* TAILOR_TESTS_UNIT_COLLECT_RING_H */
