/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that a connection has received and nobody has used up yet. Between messages there are none, and no memory is
 * held for them: what comes is lent by the ring, a buffer a piece, and is read where it is. What cannot be used up at
 * once moves to memory of the connection's own, of bounded size; what does not fit there waits in the ring's buffers,
 * and the receive is stopped until it fits (see connection.h). One thread.
 */
#ifndef TAILOR_PROXY_INPUT_H
#define TAILOR_PROXY_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/pool.h"

struct worker;

#define INPUT_NONE UINT16_MAX
/* The ring's buffers of each worker, and their size with the headroom. A response of 16 KiB comes in one piece. */
#define INPUT_BUFFERS 256
#define INPUT_BUFFER_BYTES (20 * 1024)
/* In front of the first byte, so that a head can be written anew right before a body that stays where it is. */
#define INPUT_HEADROOM 512

/* What is in one of the ring's buffers that waits. */
struct input_lent {
	uint32_t start, end;
	uint16_t next;
};

struct input {
	char *data;        /* the ring's buffer or own memory, headroom first; NULL: neither */
	struct pool *pool; /* of own memory; its blocks are larger than the ring's buffers */
	uint32_t start;    /* first byte not used up */
	uint32_t body;     /* upstream: end of what is known to belong to the response */
	uint32_t end;
	uint32_t size;        /* of the memory at data */
	uint16_t buffer;      /* the ring's that data is in; INPUT_NONE: own memory */
	uint16_t first, last; /* the ring's buffers that wait behind data, in the order they came */
	bool held;            /* the kernel sends from data: it must neither move nor go back */
	bool filling;         /* the kernel receives into own memory, behind `end`: the same */
	/*
	 * Receive into own memory, piece by piece: a long body, a flood, the ring is out of buffers, or the rest of a message that has
	 * begun. When bytes and a reset wake a multishot receive together, it tells the bytes and never the reset (Linux 6.18): nobody
	 * may wait for the rest of a message by one.
	 */
	bool own;
};

/* No bytes, no memory. */
void input_open(struct input *input, struct pool *pool);

static inline uint32_t input_length(const struct input *input)
{
	return input->end - input->start;
}

/* Everything that came is used up. */
static inline bool input_empty(const struct input *input)
{
	return input->start == input->end && input->first == INPUT_NONE;
}

/* There is more than the memory at data holds: nothing may be received now. */
static inline bool input_waits(const struct input *input)
{
	return input->first != INPUT_NONE;
}

/* `bytes` have come in the ring's buffer, which is the input's from now on. */
void input_lend(struct worker *worker, struct input *input, uint16_t buffer, uint32_t bytes);

/* Moves what waits to data as far as it fits. Returns true when there is more at data than before. */
bool input_gather(struct worker *worker, struct input *input);

/* Room behind `end` for a receive into own memory; returns its size, possibly 0. Nothing may wait. */
uint32_t input_room(struct worker *worker, struct input *input);

/* What is left may stay for long: into own memory with it. If nothing is left, all memory goes back. */
void input_rest(struct worker *worker, struct input *input);

/* Forgets what is behind `body`. */
void input_cut(struct worker *worker, struct input *input);

/* Forgets all bytes and gives all memory back, but for what is being filled. Not while it is held. */
void input_clear(struct worker *worker, struct input *input);

#endif /* TAILOR_PROXY_INPUT_H */
