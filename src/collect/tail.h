/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a channel: every event once, in order, with losses counted. */
#ifndef TAILOR_COLLECT_TAIL_H
#define TAILOR_COLLECT_TAIL_H

#include <stdint.h>
#include <tailor/channel.h>
#include <tailor/timeline.h>

#include "collect/hold.h"

/* One reader's place in a channel. One thread. */
struct tailor_tail {
	struct tailor_channel channel;
	uint64_t position;         /* the next to read */
	uint64_t pending_since_ns; /* when it was first seen reserved but not published; 0: it was not */
	uint64_t gap;              /* positions lost since the last event */
	uint64_t lost;             /* in all, up to the last event */
	uint64_t lost_by[TAILOR_LOST_REASONS]; /* the same, but the gap at hand is in it */
	uint64_t last_time_ns;     /* of the newest event taken */
	struct tailor_loss last_loss; /* its channel name is the caller's to set */
};

/* Starts at the channel's oldest event (from_start) or after its newest. The channel must outlive the tail. */
void tailor_tail_open(struct tailor_tail *tail, const struct tailor_channel *channel, int from_start);

/*
 * Takes the next event, text slots left out. Returns 1 with *ret_event and *ret_position, or 0 when there
 * is nothing more to read now. A position that a producer reserved but does not publish is waited
 * for 1 ms of now_ns, then counted as lost.
 */
int tailor_tail_next(struct tailor_tail *tail, uint64_t now_ns, struct tailor_event *ret_event, uint64_t *ret_position);

#endif /* TAILOR_COLLECT_TAIL_H */
