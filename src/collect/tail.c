/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/tail.h"

#include <string.h>

#include "base/clock.h"

#define PENDING_NS_MAX TAILOR_NS_PER_MS
/* The slots were last written by another CPU; what is read soon may already be on its way. */
#define PREFETCH_SLOTS 12

void tailor_tail_open(struct tailor_tail *tail, const struct tailor_channel *channel, int from_start)
{
	uint64_t end = tailor_channel_end(channel);
	uint64_t slots = channel->mask + 1;

	memset(tail, 0, sizeof(*tail));
	tail->channel = *channel;
	if (from_start)
		tail->position = end > slots ? end - slots : 0;
	else
		tail->position = end;
}

/* The gap before an event of that time becomes the last loss. */
static void close_gap(struct tailor_tail *tail, uint64_t time_ns)
{
	if (tail->gap) {
		tail->lost += tail->gap;
		tail->last_loss.from_ns = tail->last_time_ns;
		tail->last_loss.to_ns = time_ns;
		tail->last_loss.events = tail->gap;
		tail->gap = 0;
	}
	tail->last_time_ns = time_ns;
}

int tailor_tail_next(struct tailor_tail *tail, uint64_t now_ns, struct tailor_event *ret_event, uint64_t *ret_position)
{
	uint64_t slots = tail->channel.mask + 1;

	for (;;) {
		uint64_t end = tailor_channel_end(&tail->channel);
		enum tailor_read result;
		enum tailor_lost why;

		if (tail->position >= end)
			return 0;
		if (end - tail->position > slots) {
			tail->gap += end - slots - tail->position;
			tail->lost_by[TAILOR_LOST_OVERWRITTEN] += end - slots - tail->position;
			tail->position = end - slots;
		}
		__builtin_prefetch(&tail->channel.slots[(tail->position + PREFETCH_SLOTS) & tail->channel.mask]);
		result = tailor_hold_read(&tail->channel, tail->position, ret_event, &why);
		if (result == TAILOR_READ_PENDING) {
			if (tail->pending_since_ns == 0)
				tail->pending_since_ns = now_ns;
			if (now_ns - tail->pending_since_ns < PENDING_NS_MAX)
				return 0;
		}
		tail->pending_since_ns = 0;
		*ret_position = tail->position++;
		if (result != TAILOR_READ_OK) {
			tail->gap++;
			tail->lost_by[why]++;
			continue;
		}
		if (ret_event->kind == TAILOR_EVENT_TEXT)
			continue;
		close_gap(tail, ret_event->time_ns);
		/* Its text, if it is there already; whoever wants it reads it by the event's position. */
		if (ret_event->texts <= TAILOR_TEXTS_MAX && end - tail->position >= ret_event->texts)
			tail->position += ret_event->texts;
		return 1;
	}
}
