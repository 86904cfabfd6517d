/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "kernel.h"

uint64_t wire_connects, wire_open;

static struct wire *wires;

/* Windows of all connections come from here and go back here: fresh memory each time would cost more than what is done
 * with it. */
#define WINDOW_BYTES_MAX 200000
union window {
	union window *next;
	char data[WINDOW_BYTES_MAX];
};
static union window *free_windows;

static char *window_take(void)
{
	union window *window = free_windows;

	if (window)
		free_windows = window->next;
	else
		window = malloc(sizeof(*window));
	world_check(window, "out of memory");
	return window->data;
}

static void window_give(char *data)
{
	union window *window = (union window *)(void *)data;

	if (!window)
		return;
	window->next = free_windows;
	free_windows = window;
}

struct wire *wire_new(enum wire_kind kind, void (*peer)(void *), void *owner)
{
	struct wire *wire = calloc(1, sizeof(*wire));

	world_check(wire, "out of memory");
	wire->kind = kind;
	wire->fd = -1;
	wire->peer = peer;
	wire->owner = owner;
	/* The smallest windows make a byte a step: rare. */
	wire->in.size = world_chance(100) ? world_between(100, 1000) : world_between(1000, WINDOW_BYTES_MAX);
	wire->out.size = world_chance(100) ? world_between(100, 1000) : world_between(1000, WINDOW_BYTES_MAX);
	wire->next = wires;
	wires = wire;
	return wire;
}

static void free_streams(struct wire *wire)
{
	window_give(wire->in.data);
	window_give(wire->out.data);
	wire->in.data = wire->out.data = NULL;
	wire->in.length = wire->out.length = 0;
}

void wire_free_all(void)
{
	while (wires) {
		struct wire *wire = wires;

		wires = wire->next;
		free_streams(wire);
		free(wire);
	}
	wire_connects = wire_open = 0;
}

struct wire *wire_by_port(uint16_t port)
{
	/* The newest comes first. */
	for (struct wire *wire = wires; wire; wire = wire->next) {
		if (wire->kind == WIRE_SERVER && wire->port == port)
			return wire;
	}
	return NULL;
}

static size_t stream_write(struct stream *stream, const char *data, size_t length)
{
	size_t room = stream->size - stream->length, done = 0;

	if (!stream->data)
		stream->data = window_take();
	if (length > room)
		length = room;
	while (done < length) {
		size_t end = (stream->start + stream->length) % stream->size;
		size_t run = length - done < stream->size - end ? length - done : stream->size - end;

		memcpy(stream->data + end, data + done, run);
		stream->length += run;
		done += run;
	}
	stream->total += length;
	return length;
}

static size_t stream_read(struct stream *stream, char *to, size_t length)
{
	size_t done = 0;

	if (length > stream->length)
		length = stream->length;
	while (done < length) {
		size_t run = length - done;

		if (run > stream->size - stream->start)
			run = stream->size - stream->start;
		memcpy(to + done, stream->data + stream->start, run);
		stream->start = (stream->start + run) % stream->size;
		stream->length -= run;
		done += run;
	}
	return length;
}

/* A reset swallows bytes that have not been read: none, some or all. Returns whether it did. */
static bool stream_reset(struct stream *stream)
{
	size_t kept = stream->length == 0 || world_chance(300) ? stream->length : world_below(stream->length + 1);
	bool lost = kept < stream->length;

	stream->reset = true;
	stream->length = kept;
	return lost;
}

static void call_peer(void *object, uint64_t unused)
{
	struct wire *wire = object;

	(void)unused;
	wire->peer_called = false;
	if (!wire->peer_closed && wire->owner)
		wire->peer(wire->owner);
}

void wire_call_peer(struct wire *wire, uint64_t delay_ns)
{
	if (wire->peer_called || wire->peer_closed)
		return;
	wire->peer_called = true;
	world_later(delay_ns, call_peer, wire, 0);
}

size_t wire_room(const struct wire *wire)
{
	if (wire->peer_closed || wire->in.fin || wire->in.reset || wire->out.reset)
		return 0;
	return wire->in.size - wire->in.length;
}

size_t wire_write(struct wire *wire, const char *data, size_t length)
{
	size_t room = wire_room(wire);

	if (length > room)
		length = room;
	/* Nobody hears it, and the answer is a reset. */
	if (wire->proxy_closed) {
		wire->out.reset = true;
		return length;
	}
	length = stream_write(&wire->in, data, length);
	if (length > 0)
		kernel_readable(wire);
	return length;
}

size_t wire_read(struct wire *wire, char *to, size_t length)
{
	length = stream_read(&wire->out, to, length);
	if (length > 0)
		kernel_writable(wire);
	return length;
}

void wire_fin(struct wire *wire)
{
	wire->in.fin = true;
	wire->peer_ended = true;
	kernel_readable(wire);
}

static void settle(struct wire *wire)
{
	if (wire->peer_closed && wire->proxy_closed)
		free_streams(wire);
}

void wire_reset(struct wire *wire)
{
	wire->peer_closed = wire->peer_ended = true;
	(void)stream_reset(&wire->in);
	wire->out.length = 0;
	kernel_readable(wire);
	kernel_writable(wire);
	settle(wire);
}

void wire_close(struct wire *wire)
{
	if (wire->out.length > 0) {
		wire_reset(wire);
		return;
	}
	wire->peer_closed = true;
	wire_fin(wire);
	kernel_writable(wire);
	settle(wire);
}

bool wire_ended(const struct wire *wire)
{
	return wire->out.reset || wire->out.fin;
}

size_t wire_take(struct wire *wire, char *to, size_t length)
{
	size_t taken = stream_read(&wire->in, to, length);

	if (taken > 0)
		wire_call_peer(wire, world_delay());
	return taken;
}

size_t wire_put(struct wire *wire, const char *data, size_t length)
{
	size_t taken;

	if (wire->peer_closed) {
		/* The peer's kernel answers with a reset; this send has gone well. */
		wire->in.reset = true;
		kernel_readable(wire);
		return length;
	}
	taken = stream_write(&wire->out, data, length);
	wire_call_peer(wire, world_delay());
	return taken;
}

void wire_shutdown(struct wire *wire)
{
	wire->out.fin = true;
	wire_call_peer(wire, world_delay());
}

void wire_proxy_close(struct wire *wire)
{
	wire->proxy_closed = true;
	wire->fd = -1;
	wire_open--;
	if (wire->in.length > 0 || wire->linger_reset) {
		wire->bytes_lost = stream_reset(&wire->out);
		if (wire->linger_reset && wire->out.length == 0)
			wire->bytes_lost = true;
	} else {
		wire->out.fin = true;
	}
	wire->in.length = 0;
	wire_call_peer(wire, world_delay());
	settle(wire);
}
