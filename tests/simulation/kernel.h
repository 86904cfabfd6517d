/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated kernel: descriptors, and what becomes possible on them. Numbers of descriptors are never used again, so
 * that nothing done to a closed one goes unseen. */
#ifndef TAILOR_SIMULATION_KERNEL_H
#define TAILOR_SIMULATION_KERNEL_H

#include "wire.h"

#define KERNEL_FD_FIRST 100000
#define KERNEL_LISTEN_PORT 8080

enum descriptor_kind {
	DESCRIPTOR_SOCKET, /* with a wire once it is connected or accepted */
	DESCRIPTOR_LISTENER,
	DESCRIPTOR_EVENT, /* eventfd */
};

struct descriptor {
	enum descriptor_kind kind;
	bool closed;
	bool closing; /* close() is under way in the ring */
	struct wire *wire;
	uint64_t events; /* eventfd: its counter */
	struct operation *waiting; /* eventfd: read; listener: accept */
	struct operation *pollers;
	struct wire **backlog; /* listener */
	size_t backlog_count, backlog_size;
};

/* NULL when the number is none of the simulation's. */
struct descriptor *kernel_descriptor(int fd);
int kernel_descriptor_new(enum descriptor_kind kind);
void kernel_close(int fd);
unsigned int kernel_open_descriptors(void);
void kernel_free(void);
/* Accepted connections at one time, at most. */
extern unsigned int kernel_accepted, kernel_accepted_most;
/* Submissions by tailor_ring_submit(), not by a wait, whose last operation was a send. */
extern uint64_t kernel_sends_submitted;

/* A client knocks. Returns false when nobody listens. */
bool kernel_knock(struct wire *wire);
void kernel_event_add(int fd, uint64_t value);

/* From wire.c: an operation that waits may go on. */
void kernel_readable(struct wire *wire);
void kernel_writable(struct wire *wire);
/* From system.c. */
void kernel_acceptable(struct descriptor *listener);
void kernel_event_readable(struct descriptor *event);

/* Who answers a connect: server.c. Fills wire->server, ->peer, ->owner and returns 0 later, a negative errno, or 1 for no
 * answer at all. */
int server_connect(struct wire *wire, uint16_t port);

/* Operations that have not completed, of all rings. */
extern unsigned int ring_operations;
extern uint64_t ring_operations_total, ring_cancels, ring_cancelled;

#endif /* TAILOR_SIMULATION_KERNEL_H */
