/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker has asked of the simulated ring. fake_ring.c takes it and checks that it may be asked; fake_operation.c makes it
 * happen, at a time and with a result that the seed chooses.
 */
#ifndef TAILOR_SIMULATION_FAKE_OPERATION_H
#define TAILOR_SIMULATION_FAKE_OPERATION_H

#include "fake_buffers.h"
#include "kernel.h"
#include "ring/ring.h"

enum operation_kind {
	ACCEPT,
	CONNECT,
	RECEIVE,
	SEND,
	SHUTDOWN,
	CLOSE,
	READ,
	CANCEL,
	TIMEOUT,
	POLL, /* of what is readable for good from the first event on, as the kernel's table of stops is */
};

/* By kind. */
extern const char *const operation_names[];

struct operation {
	enum operation_kind kind;
	struct tailor_ring *ring;
	struct operation *next, *previous; /* under way */
	struct operation *queued;          /* not submitted yet */
	struct operation *next_poller;     /* of the same descriptor */
	uint64_t serial;
	uint64_t token, target;
	uint64_t deadline_ns; /* timeout */
	uint64_t polled; /* events that a poll has told of */
	const struct tailor_ring_deadline *deadline;
	int fd;
	struct descriptor *descriptor;
	char *memory;
	size_t bytes, guarded;
	uint64_t hash;
	uint16_t connect_port;
	bool multishot;
	bool impatient; /* a send that must not wait */
	uint64_t waits_since_ns; /* another one, which has found no room; 0: it has not */
	bool submitted;
	bool trying; /* try() is on its way */
	bool done;   /* has its result, the completion is on its way */
	int result;
	uint32_t flags; /* of the completion */
	uint16_t buffer;
};

struct tailor_ring {
	struct fiber *fiber;
	struct operation *active;
	struct operation *queue, **queue_end;
	struct fake_buffers buffers;
	struct tailor_completion *completions; /* a circle */
	unsigned int first, count, size, ready;
	const struct worker *owner;
	unsigned int unseen; /* completions handed out since something is told of a stop that the worker has not looked at */
	/* By slot: generations below this one are over. */
	uint32_t *closed_generation;
	size_t closed_slots;
};

/* Whether the kernel writes into the operation's memory. */
static inline bool operation_writes(enum operation_kind kind)
{
	return kind == RECEIVE || kind == READ;
}

/* Submitted: it happens later. Does nothing for one that is on its way already, and for NULL. */
void operation_try_later(struct operation *operation);
/* It happens now, if it can. `object` is the operation; nothing happens when it has another serial number by now. */
void operation_try(void *object, uint64_t serial);
/* A send that would have to wait now. */
static inline bool operation_finds_no_room(const struct operation *operation)
{
	const struct wire *wire = operation->descriptor->wire;

	return wire->out.size == wire->out.length && !wire->peer_closed;
}
/* Where what it waits for finds it; NULL: nowhere. */
struct operation **operation_place(struct operation *operation);

/* From fake_ring.c: a completion for the worker, which may have to be woken; and the end of an operation. */
void operation_push(struct tailor_ring *ring, uint64_t token, int result, uint32_t flags, uint16_t buffer);
void operation_release(struct operation *operation);

#endif /* TAILOR_SIMULATION_FAKE_OPERATION_H */
