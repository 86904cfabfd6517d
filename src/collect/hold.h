/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of a channel beyond what its ring still has: events of a request that is open for so long that they would be
 * overwritten before it ends, how far the channel had come when, and how many events were lost. The owner's thread only.
 */
#ifndef TAILOR_COLLECT_HOLD_H
#define TAILOR_COLLECT_HOLD_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/channel.h>

/* Why an event could not be read. */
enum tailor_lost {
	TAILOR_LOST_OVERWRITTEN, /* before it was read */
	TAILOR_LOST_TORN,        /* while it was read */
	TAILOR_LOST_DROPPED,     /* its producer found another one still in the slot, or died */
	TAILOR_LOST_THINNED,     /* it was there, but too much was to be kept or explained */
};
#define TAILOR_LOST_REASONS 4

/* Such as "overwritten". */
const char *tailor_lost_name(enum tailor_lost reason);

#define TAILOR_HOLD_MARKS 256

/* Zero at first; tailor_hold_drop() at the end. */
struct tailor_hold {
	uint64_t lost[TAILOR_LOST_REASONS]; /* events that somebody wanted, each counted once */

	/* Inside src/collect only. */
	struct tailor_event *slots; /* copies, texts too, in order of position; what could not be read is left out */
	size_t first, count, capacity;
	uint64_t begin, next;       /* positions: from `begin` on, before `next`, it is here or lost; both 0: nothing is held */
	uint64_t since_ns;          /* what stood before `begin` happened before this; 0: not known */
	int full;                   /* there was no room for what came behind */
	uint64_t counted;           /* positions before this are in `lost` if they were */
	struct {
		uint64_t time_ns, end;
	} mark[TAILOR_HOLD_MARKS]; /* the newest is that before mark[marks % TAILOR_HOLD_MARKS] */
	uint64_t marks;
};

/* Remembers how far the channel has come; to be called at every look at it. */
void tailor_hold_mark(struct tailor_hold *hold, const struct tailor_channel *channel, uint64_t now_ns);

/*
 * Copies what happened since needed_ns, all of it that has not been copied yet; unless at_once, does nothing as long as the newer half of
 * the ring reaches back that far. *room is how many slots all holds that share it may still take: taken ones are subtracted. Returns 0,
 * -ENOBUFS (there is no room: what was held so far stays, what comes is lost) or -ENOMEM.
 */
int tailor_hold_follow(struct tailor_hold *hold, const struct tailor_channel *channel, uint64_t needed_ns, int at_once, size_t *room);

/* Gives back what happened before needed_ns; UINT64_MAX: all. What it had taken of *room is added again. */
void tailor_hold_trim(struct tailor_hold *hold, uint64_t needed_ns, size_t *room);

/* Forgets all but what was lost: the channel is another one, or there is none any more. */
void tailor_hold_drop(struct tailor_hold *hold, size_t *room);

/* The channel's position at some time until time_ns, at most one look before it; 0 where it is not known any more. */
uint64_t tailor_hold_position(const struct tailor_hold *hold, uint64_t time_ns);

/* Which position a slot, or a copy of it, has. */
static inline uint64_t tailor_hold_position_of(const struct tailor_event *slot)
{
	return slot->sequence / 2 - 1;
}

/* tailor_channel_read() that says why it could not be read; TAILOR_READ_PENDING is called dropped. */
enum tailor_read tailor_hold_read(const struct tailor_channel *channel, uint64_t position, struct tailor_event *ret_event,
                                  enum tailor_lost *ret_why);

#endif /* TAILOR_COLLECT_HOLD_H */
