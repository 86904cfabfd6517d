/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_operation.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "asan.h"

static void try_receive(struct operation *operation, struct wire *wire);

/* The memory is the kernel's up to here: only what the kernel wrote may have changed. */
static void deliver(void *object, uint64_t serial)
{
	struct operation *operation = object;

	if (operation->serial != serial)
		return;
	if (operation_writes(operation->kind) && operation->memory)
		ASAN_UNPOISON_MEMORY_REGION(operation->memory, operation->bytes);
	if (operation->memory)
		world_check(world_hash(operation->memory, operation->guarded) == operation->hash,
		            "somebody wrote into memory that a %s still had", operation_names[operation->kind]);
	operation_push(operation->ring, operation->token, operation->result, operation->flags, operation->buffer);
	operation_release(operation);
}

struct operation **operation_place(struct operation *operation)
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
	struct operation **where = operation_place(operation);

	if (where && *where == operation)
		*where = NULL;
	operation->done = true;
	operation->result = result;
	if (operation->descriptor && operation->descriptor->wire)
		world_log("port %u: %s of %zu bytes: %d", operation->descriptor->wire->port,
		          operation_names[operation->kind], operation->bytes, result);
	if (operation_writes(operation->kind) && operation->memory) {
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

void operation_try_later(struct operation *operation)
{
	if (!operation || operation->trying || operation->done)
		return;
	operation->trying = true;
	world_later(world_delay(), operation_try, operation, operation->serial);
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
	operation_push(ring, operation->token, (int)bytes, TAILOR_RING_BUFFER | TAILOR_RING_MORE, buffer);
	/* Others may come before; or the next piece is there before anybody has looked at this one. */
	if (wire->in.length > 0 || wire->in.fin || wire->in.reset) {
		if (world_chance(500))
			try_receive(operation, wire);
		else
			operation_try_later(operation);
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

static void refuse_send(struct operation *operation, struct wire *wire)
{
	wire->refused_ns = world.now_ns;
	if (!wire->refused_first_ns)
		wire->refused_first_ns = world.now_ns;
	finish(operation, -EAGAIN, 0);
}

static void try_send(struct operation *operation, struct wire *wire)
{
	size_t bytes = operation->bytes;

	world_check(world_hash(operation->memory, operation->guarded) == operation->hash,
	            "somebody wrote into memory that is being sent");
	if (wire->in.reset || wire->out.reset || wire->out.fin) {
		finish_soon(operation, world_chance(500) ? -EPIPE : -ECONNRESET);
		return;
	}
	if (operation_finds_no_room(operation)) {
		if (operation->impatient)
			refuse_send(operation, wire);
		else if (operation->waits_since_ns == 0)
			operation->waits_since_ns = world.now_ns;
		return;
	}
	if (faulty()) {
		int error = fault();

		wire->kernel_fault = true;
		if (operation->impatient && error == -EAGAIN)
			refuse_send(operation, wire);
		else
			finish_soon(operation, error);
		return;
	}
	if (operation->waits_since_ns && world.now_ns - operation->waits_since_ns >= TAILOR_PROXY_CLIENT_WAIT_NS)
		wire->long_waits++;
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
		operation_push(ring, operation->token, fd, TAILOR_RING_MORE, 0);
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
			operation_try(target, target->serial);
	}
	if (target && !target->done) {
		ring_cancelled++;
		finish(target, -ECANCELED, first ? 0 : completion_delay());
		finish(operation, 0, first ? completion_delay() : 0);
	} else {
		finish_soon(operation, -ENOENT);
	}
}

/* Several events may be told of at once, never none. */
static void try_poll(struct operation *operation)
{
	if (operation->polled == operation->descriptor->events)
		return;
	operation->polled = operation->descriptor->events;
	if (world_chance(20))
		finish_soon(operation, POLLIN); /* the multishot ends with a success */
	else
		operation_push(operation->ring, operation->token, POLLIN, TAILOR_RING_MORE, 0);
}

void operation_try(void *object, uint64_t serial)
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
	case POLL: try_poll(operation); break;
	case CANCEL: try_cancel(operation); break;
	case TIMEOUT:
		world_check((uint64_t)operation->deadline->seconds * TAILOR_NS_PER_S +
		                            (uint64_t)operation->deadline->nanoseconds == operation->deadline_ns,
		            "somebody wrote into a deadline that the kernel still had");
		finish_soon(operation, -ETIME);
		break;
	}
}

void kernel_readable(struct wire *wire)
{
	operation_try_later(wire->receive);
	/* A reset ends what waits for room, too. */
	if (wire->in.reset)
		operation_try_later(wire->send);
}

void kernel_writable(struct wire *wire)
{
	operation_try_later(wire->send);
}

void kernel_acceptable(struct descriptor *listener)
{
	operation_try_later(listener->waiting);
}

void kernel_event_readable(struct descriptor *event)
{
	operation_try_later(event->waiting);
	for (struct operation *poller = event->pollers; poller; poller = poller->next_poller)
		operation_try_later(poller);
}
