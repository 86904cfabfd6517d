/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that check every byte that they are sent and whose answers say which request, which server and which attempt
 * they belong to; and that fail in all the ways that servers do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "server.h"

#define PORT_FIRST 9001
#define HEAD_BYTES_MAX 65536

static uint16_t next_port;

static void run(void *object);
static void later(struct serving *serving, uint64_t delay_ns);

static void run_later(void *object, uint64_t unused)
{
	struct serving *serving = object;

	(void)unused;
	serving->waiting = false;
	run(serving);
}

static void later(struct serving *serving, uint64_t delay_ns)
{
	if (serving->waiting || serving->gone)
		return;
	serving->waiting = true;
	world_later(delay_ns, run_later, serving, 0);
}

void server_gone(struct serving *serving)
{
	serving->gone = true;
	serving->wire->owner = NULL;
	free(serving->in);
	free(serving->out.data);
	serving->in = serving->out.data = NULL;
}

/* By its method, or by the path of the second route, "/r/" and anything but a slash up to a 7. */
static bool may_be_sent_twice(const struct request *request)
{
	uint32_t method = 1u << request->method;

	return (world.options.route[0].methods & method) ||
	       (world.options.routes > 1 && (world.options.route[1].methods & method) && request->number % 10 == 7);
}

void server_ports_begin(uint16_t port)
{
	next_port = port;
}

int server_connect(struct wire *wire, uint16_t port)
{
	unsigned int index = port - PORT_FIRST;
	struct server *server = &servers[index];
	struct serving *serving;
	static const int errors[] = {-ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT, -ECONNREFUSED};

	world_check(index < world.options.servers, "connect to port %u", port);
	if (server->silent_to_connects)
		return 1;
	if (server->refuses || (!server_is_calm && world_below(4000) < world.server_faults))
		return errors[world_below(4)];
	serving = calloc(1, sizeof(*serving));
	world_check(serving, "out of memory");
	serving->wire = wire;
	serving->server = index;
	serving->reads = true;
	serving->slow = world_chance(70);
	/* Else what it does not read would wait in the kernel, unseen by the proxy. */
	if (serving->slow)
		wire->out.size = world_between(1000, 10000);
	serving->next = servings;
	servings = serving;
	wire->owner = serving;
	wire->peer = run;
	wire->server = index;
	wire->port = next_port++;
	if (next_port < 20000)
		next_port = 20000;
	world_log("server %u: connection from port %u", index, wire->port);
	return 0;
}

/* What of the head must be, and what must not. */
static void check_head(const struct serving *serving, const char *head, size_t length)
{
	const struct request *request = serving->request;
	static const char *const never[] = {"Connection", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "X-Mine"};
	const char *value;
	unsigned int count;
	size_t value_length;

	(void)traffic_field(head, length, "Host", NULL, &count);
	world_check(count == 1, "request %u came with %u Host fields", request->number, count);
	(void)traffic_field(head, length, "traceparent", NULL, &count);
	world_check(count == 1, "request %u came with %u traceparent fields", request->number, count);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		world_check(!traffic_field(head, length, never[i], NULL, NULL), "request %u came with %s",
		            request->number, never[i]);
	value = traffic_field(head, length, "Content-Length", &value_length, &count);
	if (request->has_body && !request->chunked)
		world_check(count == 1 && strtoull(value, NULL, 10) == request->body_bytes,
		            "request %u came with another Content-Length", request->number);
	else
		world_check(count == 0 || (request->minor == 0 && value_length == 1 && *value == '0'),
		            "request %u came with a Content-Length", request->number);
	(void)traffic_field(head, length, "Transfer-Encoding", NULL, &count);
	world_check(count == request->chunked, "request %u came with %u Transfer-Encoding fields", request->number, count);
	value = traffic_field(head, length, "X-Number", &value_length, &count);
	world_check(count == 1 && strtoul(value, NULL, 10) == request->number, "request %u came with fields of another",
	            request->number);
}

static void take_head(struct serving *serving, size_t length)
{
	const char *space = memchr(serving->in, ' ', length);
	struct request *request = NULL;
	bool replayable;

	if (space && strncmp(space, " /r/", 4) == 0)
		request = traffic_request((uint32_t)strtoul(space + 4, NULL, 10));
	world_check(request, "a server was sent what nobody asked: %.*s", (int)(length < 100 ? length : 100), serving->in);
	world_check(!request->hostile_head, "request %u, which is invalid, reached a server", request->number);
	world_check((size_t)(space - serving->in) == strlen(traffic_method(request->method)) &&
	                    memcmp(serving->in, traffic_method(request->method), (size_t)(space - serving->in)) == 0,
	            "request %u came with another method", request->number);
	serving->request = request;
	check_head(serving, serving->in, length);
	request->deliveries++;
	replayable = may_be_sent_twice(request);
	world_check(request->deliveries == 1 || (replayable && request->deliveries <= world.options.replay_attempts_max),
	            "request %u (%s) reached servers %u times", request->number, traffic_method(request->method),
	            request->deliveries);
	world_log("server %u port %u: request %u, %s", serving->server, serving->wire->port, request->number,
	          traffic_method(request->method));
	serving->chunked = request->chunked;
	serving->body_left = request->has_body && !request->chunked ? request->body_bytes : 0;
	serving->body_offset = 0;
	serving->unchunk = (struct unchunk){0};
	serving->body_done = !request->chunked && serving->body_left == 0;
	serving->in_body = true;
	serving->planned = serving->answering = false;
	serving->answer_ns = 0;
	/* Some answer before they have it all; an interim response alone is nobody's answer. */
	if (!serving->body_done && (request->expects || world_chance(60))) {
		if (world_chance(request->expects ? 200 : 1000)) {
			server_plan(serving);
			serving->answer_ns = world.now_ns + world_delay();
			serving->reads = world_chance(700);
			if (!serving->reads && serving->ending < END_RESET)
				serving->ending = END_CLOSE;
		} else if (request->minor == 1) {
			static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

			if (wire_room(serving->wire) >= sizeof(text) - 1)
				(void)wire_write(serving->wire, text, sizeof(text) - 1);
		}
	}
	/* Some fall silent in the middle of a request. */
	if (!serving->body_done && !serving->planned && server_faulty(3000)) {
		serving->wire->peer_silent = true;
		serving->reads = false;
	}
}

static size_t take_body(struct serving *serving, const char *data, size_t length)
{
	const struct request *request = serving->request;
	size_t taken = length;

	if (serving->chunked) {
		const char *run_start = NULL;
		size_t run_bytes;

		taken = unchunk_take(&serving->unchunk, data, length, &run_start, &run_bytes);
		world_check(!serving->unchunk.bad || request->hostile, "request %u came with a bad chunk", request->number);
		world_check(run_bytes == 0 || request->hostile ||
		                    world_pattern_is(TRAFFIC_REQUEST_KEY(request->number), serving->body_offset, run_start,
		                                     run_bytes),
		            "request %u came with another body", request->number);
		serving->body_offset += run_bytes;
		serving->body_done = serving->unchunk.done;
		if (serving->unchunk.bad)
			taken = length;
	} else {
		if (taken > serving->body_left)
			taken = (size_t)serving->body_left;
		world_check(world_pattern_is(TRAFFIC_REQUEST_KEY(request->number), serving->body_offset, data, taken),
		            "request %u came with another body", request->number);
		serving->body_offset += taken;
		serving->body_left -= taken;
		serving->body_done = serving->body_left == 0;
	}
	if (serving->body_done)
		world_check(request->hostile || serving->body_offset == request->body_bytes,
		            "request %u came with %" PRIu64 " of %" PRIu64 " bytes", request->number,
		            serving->body_offset, request->body_bytes);
	return taken;
}

static size_t head_end(const char *data, size_t length)
{
	const char *end = memmem(data, length, "\r\n\r\n", 4);

	return end ? (size_t)(end - data) + 4 : 0;
}

/* Reads and understands as much as there is. */
static void take(struct serving *serving)
{
	if (!serving->in)
		serving->in = malloc(HEAD_BYTES_MAX);
	world_check(serving->in, "out of memory");
	while (serving->reads && !(serving->in_body && serving->body_done)) {
		size_t got = 0, used = 0;

		if (serving->in_length < HEAD_BYTES_MAX) {
			size_t most = HEAD_BYTES_MAX - serving->in_length;

			if (serving->slow)
				most = world_between(1, most < 3000 ? most : 3000);
			else if (world_chance(50))
				most = world_between(1, most);
			got = wire_read(serving->wire, serving->in + serving->in_length, most);
		}
		serving->in_length += got;
		if (!serving->in_body) {
			used = head_end(serving->in, serving->in_length);
			if (used > 0)
				take_head(serving, used);
		} else if (serving->in_length > 0) {
			used = take_body(serving, serving->in, serving->in_length);
		}
		memmove(serving->in, serving->in + used, serving->in_length - used);
		serving->in_length -= used;
		if (got == 0 && used == 0)
			break;
		if (serving->slow && serving->wire->out.length > 0) {
			later(serving, world_between(5, 1500) * US);
			break;
		}
	}
	if (serving->in_body && serving->body_done && (serving->planned || serving->answer_ns == 0)) {
		/* Nobody may send the next request before this one is answered; a server that goes on after its answer's
		 * end cannot complain. */
		world_check((serving->in_length == 0 && serving->wire->out.length == 0) || serving->wire->peer_bad,
		            "bytes behind request %u, whose answer is still due", serving->request->number);
	}
}

static void end_stale(void *object, uint64_t turn)
{
	struct serving *serving = object;

	/* The next request may be on its way already: that is the race which a proxy must survive. */
	if (serving->gone || serving->turns != turn)
		return;
	if (serving->planned)
		serving->answer->cut = true;
	if (world_chance(800))
		wire_close(serving->wire);
	else
		wire_reset(serving->wire);
	server_gone(serving);
}

static void answered(struct serving *serving)
{
	serving->turns++;
	switch (serving->ending) {
	case END_KEEP:
	case END_STALE:
		serving->planned = serving->answering = false;
		if (!serving->body_done)
			return; /* reads the rest first */
		serving->in_body = false;
		serving->request = NULL;
		if (serving->ending == END_STALE)
			world_later(world_chance(500) ? 0 : world_below(200) * 100 * US, end_stale, serving,
			            serving->turns);
		later(serving, 1);
		break;
	case END_CLOSE:
	case END_FIN:
		wire_close(serving->wire);
		server_gone(serving);
		break;
	case END_RESET:
		wire_reset(serving->wire);
		server_gone(serving);
		break;
	case END_SILENT:
		serving->wire->peer_silent = true;
		serving->reads = false;
		break;
	}
}

static void answer(struct serving *serving)
{
	size_t length = serving->out.length < serving->out_stop ? serving->out.length : serving->out_stop;
	size_t piece;

	if (serving->wire->peer_silent)
		return;
	piece = length - serving->out_at;
	if (piece > 0 && world_chance(100))
		piece = world_between(1, piece);
	piece = wire_write(serving->wire, serving->out.data + serving->out_at, piece);
	serving->out_at += piece;
	if (serving->out_at == length)
		answered(serving);
	else if (wire_room(serving->wire) > 0)
		later(serving, world_delay());
}

static void run(void *object)
{
	struct serving *serving = object;
	struct server *server = &servers[serving->server];

	if (serving->gone)
		return;
	if (server->paused) {
		later(serving, server->resume_ns - world.now_ns + world_delay());
		return;
	}
	if (serving->wire->peer_silent) {
		if (wire_ended(serving->wire)) {
			wire_close(serving->wire);
			server_gone(serving);
		}
		return;
	}
	take(serving);
	if (wire_ended(serving->wire) && serving->wire->out.length == 0) {
		wire_close(serving->wire);
		server_gone(serving);
		return;
	}
	if (serving->in_body && serving->body_done && !serving->planned && !serving->answering && serving->answer_ns == 0) {
		server_plan(serving);
		/* Searching takes its time. */
		serving->answer_ns = world.now_ns + (world_chance(40) ? world_between(1, 100) * MS : world_delay());
	} else if (serving->in_body && serving->body_done && !serving->planned) {
		/* Answered early, and now read whole. */
		serving->in_body = false;
		serving->request = NULL;
		later(serving, 1);
		return;
	}
	if (!serving->planned)
		return;
	if (world.now_ns < serving->answer_ns) {
		later(serving, serving->answer_ns - world.now_ns);
		return;
	}
	serving->answering = true;
	answer(serving);
}
