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
#include "fake_operation.h"
#include "ring_owner.h"

#define SLOT_NONE UINT32_MAX
/* What is always compared of an operation's memory; all of it now and then. */
#define GUARDED_BYTES 512
/* Completions that a worker may take while somebody tells of a stop that it has not seen. */
#define UNSEEN_MAX 5

const char *const operation_names[] = {"accept", "connect", "receive", "send", "shutdown", "close", "read", "cancel",
                                               "timeout", "poll"};

unsigned int ring_operations;
uint64_t ring_operations_total, ring_cancels, ring_cancelled;

static struct operation *free_operations;
static uint64_t next_serial;

int tailor_ring_open(const struct tailor_ring_options *options, struct tailor_ring **ret_ring)
{
	struct tailor_ring *ring = calloc(1, sizeof(*ring));

	world_check(ring, "out of memory");
	fake_buffers_open(&ring->buffers, options->buffers, options->buffer_bytes, options->buffer_headroom);
	ring->fiber = fiber_current();
	ring->queue_end = &ring->queue;
	ring->owner = ring_owner_of(ret_ring);
	*ret_ring = ring;
	return 0;
}

static void forget_poller(const struct operation *operation)
{
	struct operation **where = &operation->descriptor->pollers;

	while (*where && *where != operation)
		where = &(*where)->next_poller;
	if (*where)
		*where = operation->next_poller;
}

void operation_release(struct operation *operation)
{
	struct tailor_ring *ring = operation->ring;

	if (operation_writes(operation->kind) && operation->memory)
		ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
	if (operation->previous)
		operation->previous->next = operation->next;
	else
		ring->active = operation->next;
	if (operation->next)
		operation->next->previous = operation->previous;
	if (operation->kind == POLL)
		forget_poller(operation);
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
		world_check(operation->kind == READ || operation->kind == POLL || operation->kind == CANCEL ||
		                    operation->kind == TIMEOUT,
		            "a worker ends while a %s is under way", operation_names[operation->kind]);
		if (operation->kind == READ)
			operation->descriptor->waiting = NULL;
		operation_release(operation);
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
		if (other == operation || !other->memory || (!operation_writes(other->kind) && !operation_writes(operation->kind)))
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
	if (operation_writes(operation->kind)) {
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
	if (kind != CANCEL && kind != TIMEOUT) {
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
	queue_memory(ring, SEND, fd, memory, bytes, token)->impatient = (flags & MSG_DONTWAIT) != 0;
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

void tailor_ring_poll(struct tailor_ring *ring, int fd, uint64_t token)
{
	(void)queue(ring, POLL, fd, token);
}

void tailor_ring_cancel(struct tailor_ring *ring, uint64_t target, uint64_t token)
{
	queue(ring, CANCEL, -1, token)->target = target;
	ring_cancels++;
}

void tailor_ring_timeout(struct tailor_ring *ring, struct tailor_ring_deadline *storage, uint64_t deadline_ns,
                         uint64_t token)
{
	struct operation *operation = queue(ring, TIMEOUT, -1, token);

	*storage = (struct tailor_ring_deadline){(long long)(deadline_ns / TAILOR_NS_PER_S),
	                                         (long long)(deadline_ns % TAILOR_NS_PER_S)};
	operation->deadline = storage;
	operation->deadline_ns = deadline_ns;
}

void operation_push(struct tailor_ring *ring, uint64_t token, int result, uint32_t flags, uint16_t buffer)
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
		where = operation_place(operation);
		if (where) {
			world_check(!*where, "two %ss on one descriptor", operation_names[operation->kind]);
			*where = operation;
		}
		if (operation->kind == POLL) {
			operation->next_poller = operation->descriptor->pollers;
			operation->descriptor->pollers = operation;
		}
		operation->submitted = true;
		if (operation->kind == TIMEOUT)
			world_later(operation->deadline_ns > world.now_ns ? operation->deadline_ns - world.now_ns : 0, operation_try,
			            operation, operation->serial);
		else if (operation->impatient && operation_finds_no_room(operation))
			operation_try(operation, operation->serial);
		else
			operation_try_later(operation);
	}
	ring->queue_end = &ring->queue;
}

void tailor_ring_submit(struct tailor_ring *ring)
{
	const struct operation *last = ring->queue;

	world_check(fiber_current() == ring->fiber, "a submission from another thread than the ring's");
	while (last && last->queued)
		last = last->queued;
	kernel_sends_submitted += last && last->kind == SEND;
	submit(ring);
}

int tailor_ring_wait(struct tailor_ring *ring, uint64_t deadline_ns)
{
	submit(ring);
	if (ring->count > 0 || deadline_ns <= world.now_ns)
		deadline_ns = world.now_ns + world_between(1, 5) * US;
	fiber_sleep(ring->fiber, deadline_ns);
	ring->ready = ring->count;
	ring->unseen = 0; /* a look follows */
	if (world.kernel_faults > 0 && world_below(100000) < world.kernel_faults)
		return -ENOMEM;
	return (int)ring->ready;
}

/* Time passes in a turn that has much to do, and servers stop meanwhile. */
static void take_time(struct tailor_ring *ring)
{
	if (!world.slow_turns || fiber_current() != ring->fiber)
		return;
	if (world_chance(500))
		fiber_sleep(ring->fiber, world.now_ns + world_between(1, 200) * US);
	ring->unseen = ring_owner_misses_stop(ring->owner) ? ring->unseen + 1 : 0;
	world_check(ring->unseen <= UNSEEN_MAX, "a worker goes on with what has come, and does not look at a server's stop");
}

int tailor_ring_next(struct tailor_ring *ring, struct tailor_completion *ret_completion)
{
	if (ring->ready == 0)
		return 0;
	take_time(ring);
	ring->ready--;
	*ret_completion = ring->completions[ring->first];
	ring->first = (ring->first + 1) % ring->size;
	ring->count--;
	return 1;
}
