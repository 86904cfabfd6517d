/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/ring/ring.h on the simulated kernel. It is stricter than the kernel: what a worker must not do ends the simulation.
 * Functions that the proxy does not use are missing, so that a use of them does not link.
 */
#include "ring/ring.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "asan.h"
#include "fake_buffers.h"
#include "kernel.h"

#define SLOT_NONE UINT32_MAX
/* What is always compared of an operation's memory; all of it now and then. */
#define GUARDED_BYTES 512

enum operation_kind {
	ACCEPT,
	CONNECT,
	RECEIVE,
	SEND,
	SHUTDOWN,
	CLOSE,
	READ,
	CANCEL,
};
static const char *const operation_names[] = {"accept", "connect", "receive", "send", "shutdown", "close", "read", "cancel"};

struct operation {
	enum operation_kind kind;
	struct tailor_ring *ring;
	struct operation *next, *previous; /* under way */
	struct operation *queued;          /* not submitted yet */
	uint64_t serial;
	uint64_t token, target;
	int fd;
	struct descriptor *descriptor;
	char *memory;
	size_t bytes, guarded;
	uint64_t hash;
	uint16_t connect_port;
	bool multishot;
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
	/* By slot: generations below this one are over. */
	uint32_t *closed_generation;
	size_t closed_slots;
};

unsigned int ring_operations;
uint64_t ring_operations_total, ring_cancels, ring_cancelled;

static struct operation *free_operations;
static uint64_t next_serial;

static void try(void *object, uint64_t serial);
static void try_receive(struct operation *operation, struct wire *wire);

int tailor_ring_open(const struct tailor_ring_options *options, struct tailor_ring **ret_ring)
{
	struct tailor_ring *ring = calloc(1, sizeof(*ring));

	world_check(ring, "out of memory");
	fake_buffers_open(&ring->buffers, options->buffers, options->buffer_bytes, options->buffer_headroom);
	ring->fiber = fiber_current();
	ring->queue_end = &ring->queue;
	*ret_ring = ring;
	return 0;
}

static bool writes(enum operation_kind kind)
{
	return kind == RECEIVE || kind == READ;
}

static void release(struct operation *operation)
{
	struct tailor_ring *ring = operation->ring;

	if (writes(operation->kind) && operation->memory)
		ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
	if (operation->previous)
		operation->previous->next = operation->next;
	else
		ring->active = operation->next;
	if (operation->next)
		operation->next->previous = operation->previous;
	ring_operations--;
	operation->serial = 0;
	operation->next = free_operations;
	free_operations = operation;
}

void tailor_ring_close(struct tailor_ring *ring)
{
	struct tailor_completion completion;

	if (!ring)
		return;
	while (ring->active) {
		struct operation *operation = ring->active;

		/* Only what waits for other threads may be left: nothing that holds memory of a connection. */
		world_check(operation->kind == READ || operation->kind == CANCEL,
		            "a worker ends while a %s is under way", operation_names[operation->kind]);
		if (operation->kind == READ)
			operation->descriptor->waiting = NULL;
		release(operation);
	}
	while (tailor_ring_next(ring, &completion))
		world_check(!(completion.flags & TAILOR_RING_BUFFER), "a worker ends before it has taken a buffer");
	fake_buffers_close(&ring->buffers);
	free(ring->completions);
	free(ring->closed_generation);
	free(ring);
}

static void check_token(const struct tailor_ring *ring, uint64_t token, enum operation_kind kind)
{
	uint32_t slot = TAILOR_TOKEN_SLOT(token);

	if (slot != SLOT_NONE && slot < ring->closed_slots)
		world_check(TAILOR_TOKEN_GENERATION(token) >= ring->closed_generation[slot],
		            "%s for slot %u, generation %u, which is closed", operation_names[kind], slot,
		            TAILOR_TOKEN_GENERATION(token));
	if (kind == CANCEL)
		return;
	for (const struct operation *other = ring->active; other; other = other->next)
		world_check(other->token != token, "two operations with the token of a %s", operation_names[kind]);
}

/* A generation ends with its close: nothing else of it may be under way, nothing may follow. */
static void check_close(struct tailor_ring *ring, uint64_t token)
{
	uint32_t slot = TAILOR_TOKEN_SLOT(token);

	for (const struct operation *other = ring->active; other; other = other->next)
		world_check(TAILOR_TOKEN_SLOT(other->token) != slot ||
		                    TAILOR_TOKEN_GENERATION(other->token) != TAILOR_TOKEN_GENERATION(token),
		            "slot %u is closed while its %s is under way", slot, operation_names[other->kind]);
	if (slot >= ring->closed_slots) {
		size_t slots = (size_t)slot + 256;

		ring->closed_generation = realloc(ring->closed_generation, slots * sizeof(uint32_t));
		world_check(ring->closed_generation, "out of memory");
		memset(ring->closed_generation + ring->closed_slots, 0, (slots - ring->closed_slots) * sizeof(uint32_t));
		ring->closed_slots = slots;
	}
	ring->closed_generation[slot] = TAILOR_TOKEN_GENERATION(token) + 1;
}

static void check_memory(const struct tailor_ring *ring, const struct operation *operation)
{
	for (const struct operation *other = ring->active; other; other = other->next) {
		if (other == operation || !other->memory || (!writes(other->kind) && !writes(operation->kind)))
			continue;
		world_check(operation->memory >= other->memory + other->bytes ||
		                    other->memory >= operation->memory + operation->bytes,
		            "a %s is given memory that a %s still has", operation_names[operation->kind],
		            operation_names[other->kind]);
	}
}

static void guard(struct operation *operation)
{
	operation->guarded = operation->bytes;
	if (operation->guarded > GUARDED_BYTES && !world_chance(60))
		operation->guarded = GUARDED_BYTES;
	if (writes(operation->kind)) {
		memset(operation->memory, 0xa5, operation->guarded);
		ASAN_POISON_MEMORY_REGION(operation->memory, operation->bytes);
	} else {
		operation->hash = world_hash(operation->memory, operation->guarded);
	}
}

static struct operation *queue(struct tailor_ring *ring, enum operation_kind kind, int fd, uint64_t token)
{
	struct operation *operation = free_operations;

	world_check(fiber_current() == ring->fiber, "%s from another thread than the ring's", operation_names[kind]);
	check_token(ring, token, kind);
	if (kind == CLOSE)
		check_close(ring, token);
	if (operation)
		free_operations = operation->next;
	else
		operation = malloc(sizeof(*operation));
	world_check(operation, "out of memory");
	*operation = (struct operation){.kind = kind, .ring = ring, .fd = fd, .token = token, .serial = ++next_serial};
	if (kind != CANCEL) {
		operation->descriptor = kernel_descriptor(fd);
		world_check(operation->descriptor && !operation->descriptor->closed && !operation->descriptor->closing,
		            "%s on descriptor %d, which is closed", operation_names[kind], fd);
		if (kind == CLOSE)
			operation->descriptor->closing = true;
	}
	operation->next = ring->active;
	if (ring->active)
		ring->active->previous = operation;
	ring->active = operation;
	*ring->queue_end = operation;
	ring->queue_end = &operation->queued;
	ring_operations++;
	ring_operations_total++;
	return operation;
}

static struct operation *queue_memory(struct tailor_ring *ring, enum operation_kind kind, int fd, const void *memory,
                                      size_t bytes, uint64_t token)
{
	struct operation *operation = queue(ring, kind, fd, token);

	world_check(bytes > 0, "a %s of nothing", operation_names[kind]);
	operation->memory = (char *)(uintptr_t)memory;
	operation->bytes = bytes;
	check_memory(ring, operation);
	guard(operation);
	return operation;
}

void tailor_ring_accept(struct tailor_ring *ring, int fd, uint64_t token)
{
	(void)queue(ring, ACCEPT, fd, token);
}

void tailor_ring_connect(struct tailor_ring *ring, int fd, const struct sockaddr *address, socklen_t length,
                         uint64_t token)
{
	struct operation *operation = queue(ring, CONNECT, fd, token);

	world_check(address->sa_family == AF_INET && length == sizeof(struct sockaddr_in), "connect to no IPv4 address");
	operation->connect_port = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

void tailor_ring_receive(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token)
{
	(void)queue_memory(ring, RECEIVE, fd, memory, bytes, token);
}

void tailor_ring_receive_later(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token)
{
	(void)queue_memory(ring, RECEIVE, fd, memory, bytes, token);
}

void tailor_ring_receive_multishot(struct tailor_ring *ring, int fd, uint64_t token)
{
	queue(ring, RECEIVE, fd, token)->multishot = true;
}

void *tailor_ring_buffer(struct tailor_ring *ring, uint16_t buffer)
{
	return fake_buffers_memory(&ring->buffers, buffer);
}

void tailor_ring_buffer_return(struct tailor_ring *ring, uint16_t buffer)
{
	world_check(fiber_current() == ring->fiber, "a buffer is given back by another thread than the ring's");
	fake_buffers_return(&ring->buffers, buffer);
}

void tailor_ring_send(struct tailor_ring *ring, int fd, const void *memory, size_t bytes, int flags, uint64_t token)
{
	(void)flags;
	(void)queue_memory(ring, SEND, fd, memory, bytes, token);
}

void tailor_ring_shutdown(struct tailor_ring *ring, int fd, int how, uint64_t token)
{
	world_check(how == SHUT_WR, "shutdown of more than the sending side");
	(void)queue(ring, SHUTDOWN, fd, token);
}

void tailor_ring_close_fd(struct tailor_ring *ring, int fd, uint64_t token)
{
	(void)queue(ring, CLOSE, fd, token);
}

void tailor_ring_read(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token)
{
	(void)queue_memory(ring, READ, fd, memory, bytes, token);
}

void tailor_ring_cancel(struct tailor_ring *ring, uint64_t target, uint64_t token)
{
	queue(ring, CANCEL, -1, token)->target = target;
	ring_cancels++;
}

static void push(struct tailor_ring *ring, uint64_t token, int result, uint32_t flags, uint16_t buffer)
{
	if (ring->count == ring->size) {
		unsigned int size = ring->size ? 2 * ring->size : 64;
		struct tailor_completion *grown = malloc(size * sizeof(*grown));

		world_check(grown, "out of memory");
		for (unsigned int i = 0; i < ring->count; i++)
			grown[i] = ring->completions[(ring->first + i) % ring->size];
		free(ring->completions);
		ring->completions = grown;
		ring->first = 0;
		ring->size = size;
	}
	ring->completions[(ring->first + ring->count++) % ring->size] =
	        (struct tailor_completion){
	                .token = token, .result = result, .flags = flags, .buffer = buffer};
	if (flags & TAILOR_RING_BUFFER)
		fake_buffers_deliver(&ring->buffers, buffer);
	/* At times the worker's thread gets no CPU. */
	fiber_wake(ring->fiber, world_chance(5) ? world_between(1, 20) * MS : world_between(1, 10) * US);
}

/* The memory is the kernel's up to here: only what the kernel wrote may have changed. */
static void deliver(void *object, uint64_t serial)
{
	struct operation *operation = object;

	if (operation->serial != serial)
		return;
	if (writes(operation->kind) && operation->memory)
		ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
	if (operation->memory)
		world_check(world_hash(operation->memory, operation->guarded) == operation->hash,
		            "somebody wrote into memory that a %s still had", operation_names[operation->kind]);
	push(operation->ring, operation->token, operation->result, operation->flags, operation->buffer);
	release(operation);
}

static struct operation **place(struct operation *operation)
{
	struct wire *wire = operation->descriptor ? operation->descriptor->wire : NULL;

	switch (operation->kind) {
	case RECEIVE: return &wire->receive;
	case SEND: return &wire->send;
	case CONNECT: return &wire->connect;
	case ACCEPT:
	case READ: return &operation->descriptor->waiting;
	default: return NULL;
	}
}

/* It has happened; the worker learns of it later. */
static void finish(struct operation *operation, int result, uint64_t delay_ns)
{
	struct operation **where = place(operation);

	if (where && *where == operation)
		*where = NULL;
	operation->done = true;
	operation->result = result;
	if (operation->descriptor && operation->descriptor->wire)
		world_log("port %u: %s of %zu bytes: %d", operation->descriptor->wire->port,
		          operation_names[operation->kind], operation->bytes, result);
	if (writes(operation->kind) && operation->memory) {
		ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
		operation->hash = world_hash(operation->memory, operation->guarded);
		ASAN_POISON_MEMORY_REGION(operation->memory, operation->bytes);
	}
	world_later(delay_ns, deliver, operation, operation->serial);
}

static uint64_t completion_delay(void)
{
	return world_chance(900) ? world_between(0, 5) * US : world_delay();
}

/* In a statement of its own: the order in which arguments draw their numbers is each compiler's. */
static void finish_soon(struct operation *operation, int result)
{
	finish(operation, result, completion_delay());
}

static void try_later(struct operation *operation)
{
	if (!operation || operation->trying || operation->done)
		return;
	operation->trying = true;
	world_later(world_delay(), try, operation, operation->serial);
}

static int fault(void)
{
	static const int faults[] = {-ENOBUFS, -EINTR, -EAGAIN, -ENOMEM, -ETIMEDOUT};

	return faults[world_below(sizeof(faults) / sizeof(faults[0]))];
}

static bool faulty(void)
{
	return world.kernel_faults > 0 && world_below(20000) < world.kernel_faults;
}

/* Of a multishot receive. */
static void receive_piece(struct operation *operation, struct wire *wire)
{
	struct tailor_ring *ring = operation->ring;
	size_t bytes = ring->buffers.bytes;
	uint16_t buffer;

	if (!fake_buffers_take(&ring->buffers, &buffer)) {
		finish_soon(operation, -ENOBUFS);
		return;
	}
	if (world_chance(100))
		bytes = world_between(1, world_chance(500) ? 200 : bytes);
	bytes = wire_take(wire, fake_buffers_memory(&ring->buffers, buffer), bytes);
	if (world_chance(20)) {
		/* The multishot ends with a success. */
		operation->flags = TAILOR_RING_BUFFER;
		operation->buffer = buffer;
		finish_soon(operation, (int)bytes);
		return;
	}
	world_log("port %u: a piece of %zu bytes", wire->port, bytes);
	push(ring, operation->token, (int)bytes, TAILOR_RING_BUFFER | TAILOR_RING_MORE, buffer);
	/* Others may come before; or the next piece is there before anybody has looked at this one. */
	if (wire->in.length > 0 || wire->in.fin || wire->in.reset) {
		if (world_chance(500))
			try_receive(operation, wire);
		else
			try_later(operation);
	}
}

static void try_receive(struct operation *operation, struct wire *wire)
{
	size_t bytes = operation->bytes;

	if (wire->in.length == 0 && !wire->in.fin && !wire->in.reset)
		return;
	if (faulty()) {
		wire->kernel_fault = true;
		finish_soon(operation, fault());
		return;
	}
	if (wire->in.length == 0) {
		finish_soon(operation, wire->in.reset ? -ECONNRESET : 0);
		return;
	}
	if (operation->multishot) {
		receive_piece(operation, wire);
		return;
	}
	if (world_chance(100))
		bytes = world_between(1, bytes);
	ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
	bytes = wire_take(wire, operation->memory, bytes);
	finish_soon(operation, (int)bytes);
}

static void try_send(struct operation *operation, struct wire *wire)
{
	size_t bytes = operation->bytes, room = wire->out.size - wire->out.length;

	world_check(world_hash(operation->memory, operation->guarded) == operation->hash,
	            "somebody wrote into memory that is being sent");
	if (wire->in.reset || wire->out.reset || wire->out.fin) {
		finish_soon(operation, world_chance(500) ? -EPIPE : -ECONNRESET);
		return;
	}
	if (room == 0 && !wire->peer_closed)
		return;
	if (faulty()) {
		wire->kernel_fault = true;
		finish_soon(operation, fault());
		return;
	}
	if (world_chance(100))
		bytes = world_between(1, bytes);
	bytes = wire_put(wire, operation->memory, bytes);
	/* The peer may have answered before this side hears that the bytes have gone. */
	finish(operation, (int)bytes, world_chance(930) ? completion_delay() : world_between(1, 3000) * 20 * US);
}

static void try_connect(struct operation *operation)
{
	struct wire *wire = operation->descriptor->wire;
	int result = faulty() ? fault() : server_connect(wire, operation->connect_port);

	if (result > 0)
		return;
	if (result < 0)
		world.last_refused_ns = world.now_ns;
	wire->connected = result == 0;
	wire_connects++;
	finish_soon(operation, result);
}

static void try_accept(struct operation *operation)
{
	struct descriptor *listener = operation->descriptor;
	struct tailor_ring *ring = operation->ring;

	while (listener->backlog_count > 0) {
		struct wire *wire;
		int fd;

		if (faulty()) {
			static const int faults[] = {-EMFILE, -ENFILE, -ENOBUFS, -ECONNABORTED, -EINTR, -EAGAIN};

			finish_soon(operation, faults[world_below(6)]);
			return;
		}
		wire = listener->backlog[0];
		memmove(listener->backlog, listener->backlog + 1,
		        --listener->backlog_count * sizeof(listener->backlog[0]));
		fd = kernel_descriptor_new(DESCRIPTOR_SOCKET);
		kernel_descriptor(fd)->wire = wire;
		wire->fd = fd;
		wire->accepted = true;
		if (++kernel_accepted > kernel_accepted_most)
			kernel_accepted_most = kernel_accepted;
		wire_open++;
		if (world_chance(50)) {
			finish(operation, fd, 0); /* the multishot ends with a success */
			return;
		}
		push(ring, operation->token, fd, TAILOR_RING_MORE, 0);
	}
}

static void try_cancel(struct operation *operation)
{
	struct operation *target = operation->ring->active;
	bool first = world_chance(500);

	while (target && (target->token != operation->target || target->kind == CANCEL))
		target = target->next;
	if (target && !target->done) {
		/* What could happen may happen just before. */
		if (world_chance(300))
			try(target, target->serial);
	}
	if (target && !target->done) {
		ring_cancelled++;
		finish(target, -ECANCELED, first ? 0 : completion_delay());
		finish(operation, 0, first ? completion_delay() : 0);
	} else {
		finish_soon(operation, -ENOENT);
	}
}

static void try(void *object, uint64_t serial)
{
	struct operation *operation = object;

	if (operation->serial != serial || operation->done)
		return;
	operation->trying = false;
	switch (operation->kind) {
	case ACCEPT: try_accept(operation); break;
	case CONNECT: try_connect(operation); break;
	case RECEIVE: try_receive(operation, operation->descriptor->wire); break;
	case SEND: try_send(operation, operation->descriptor->wire); break;
	case SHUTDOWN: {
		struct wire *wire = operation->descriptor->wire;

		if (wire->in.reset) {
			finish_soon(operation, -ENOTCONN);
		} else {
			wire_shutdown(wire);
			finish_soon(operation, 0);
		}
		break;
	}
	case CLOSE:
		kernel_close(operation->fd);
		finish_soon(operation, 0);
		break;
	case READ:
		if (operation->descriptor->events == 0)
			break;
		ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
		memcpy(operation->memory, &operation->descriptor->events, sizeof(uint64_t));
		operation->descriptor->events = 0;
		finish_soon(operation, sizeof(uint64_t));
		break;
	case CANCEL: try_cancel(operation); break;
	}
}

static void submit(struct tailor_ring *ring)
{
	while (ring->queue) {
		struct operation *operation = ring->queue;
		struct operation **where;

		ring->queue = operation->queued;
		operation->queued = NULL;
		if (operation->kind == CONNECT && !operation->descriptor->wire) {
			operation->descriptor->wire = wire_new(WIRE_SERVER, NULL, NULL);
			operation->descriptor->wire->fd = operation->fd;
			wire_open++;
		}
		where = place(operation);
		if (where) {
			world_check(!*where, "two %ss on one descriptor", operation_names[operation->kind]);
			*where = operation;
		}
		operation->submitted = true;
		try_later(operation);
	}
	ring->queue_end = &ring->queue;
}

int tailor_ring_wait(struct tailor_ring *ring, uint64_t deadline_ns)
{
	submit(ring);
	if (ring->count > 0 || deadline_ns <= world.now_ns)
		deadline_ns = world.now_ns + world_between(1, 5) * US;
	fiber_sleep(ring->fiber, deadline_ns);
	ring->ready = ring->count;
	if (world.kernel_faults > 0 && world_below(100000) < world.kernel_faults)
		return -ENOMEM;
	return (int)ring->ready;
}

int tailor_ring_next(struct tailor_ring *ring, struct tailor_completion *ret_completion)
{
	if (ring->ready == 0)
		return 0;
	ring->ready--;
	*ret_completion = ring->completions[ring->first];
	ring->first = (ring->first + 1) % ring->size;
	ring->count--;
	return 1;
}

void kernel_readable(struct wire *wire)
{
	try_later(wire->receive);
	/* A reset ends what waits for room, too. */
	if (wire->in.reset)
		try_later(wire->send);
}

void kernel_writable(struct wire *wire)
{
	try_later(wire->send);
}

void kernel_acceptable(struct descriptor *listener)
{
	try_later(listener->waiting);
}

void kernel_event_readable(struct descriptor *event)
{
	try_later(event->waiting);
}
