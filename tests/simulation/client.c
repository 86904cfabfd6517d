/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of all manners. What they ask is in traffic.c's table before its first byte is written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "reply.h"
#include "traffic.h"

#define REQUESTS_MAX 12 /* of one connection */
/* Nobody waits longer than all the proxy's deadlines together take. */
#define PATIENCE_NS (40 * TAILOR_NS_PER_S)

struct client {
	struct client *next;
	struct wire *wire;
	bool waiting, gone;
	/* Manners. */
	unsigned int requests, depth; /* how many in all, how many at once */
	uint8_t minor;
	bool keeps; /* HTTP/1.0 */
	bool hostile, half_closes, lingers, abandons;
	bool reads_slowly, writes_slowly;
	uint64_t abort_written, abort_read; /* after so many bytes */
	uint64_t stall_written, stall_read;
	bool resets, only_fin; /* how it aborts */
	/* Writing. */
	char *out;
	size_t out_length, out_size, out_at;
	uint64_t written;
	size_t hold_at; /* a body that waits for 100 Continue begins here in `out`; SIZE_MAX: none */
	uint64_t hold_until_ns, think_until_ns, stalled_until_ns;
	bool fin;
	/* Requests and answers. */
	uint32_t request[REQUESTS_MAX];
	uint64_t end[REQUESTS_MAX]; /* when so many bytes are written, the request is */
	unsigned int made, answered;
	struct reply reply;
	uint64_t read;
	uint64_t read_stalled_until_ns;
	bool ending; /* a response has announced the end */
	uint64_t progress_ns;
};

static struct client *clients;
static unsigned int living, concurrency;

static void run(void *object);
static void next_client(void *object, uint64_t unused);

static void run_later(void *object, uint64_t unused)
{
	struct client *client = object;

	(void)unused;
	client->waiting = false;
	run(client);
}

static void later(struct client *client, uint64_t delay_ns)
{
	if (client->waiting || client->gone)
		return;
	client->waiting = true;
	world_later(delay_ns, run_later, client, 0);
}

static void make_room(struct client *client, size_t length)
{
	if (client->out_length + length <= client->out_size)
		return;
	client->out_size = 2 * (client->out_length + length);
	client->out = realloc(client->out, client->out_size);
	world_check(client->out, "out of memory");
}

static void put(struct client *client, const char *text, size_t length)
{
	make_room(client, length);
	memcpy(client->out + client->out_length, text, length);
	client->out_length += length;
}

static void put_text(struct client *client, const char *text)
{
	put(client, text, strlen(text));
}

static void put_pattern(struct client *client, uint64_t key, uint64_t offset, size_t length)
{
	make_room(client, length);
	world_pattern(key, offset, client->out + client->out_length, length);
	client->out_length += length;
}

static void put_body(struct client *client, struct request *request)
{
	uint64_t key = TRAFFIC_REQUEST_KEY(request->number), offset = 0;
	size_t most = world_chance(100) && request->body_bytes < 3000 ? 20 : 40000;
	/* Somewhere in it the client forgets how chunks are written. */
	uint64_t bad = request->hostile ? world_below(request->body_bytes + 1) : UINT64_MAX;
	char line[32];

	if (!request->chunked) {
		put_pattern(client, key, 0, request->body_bytes);
		return;
	}
	while (offset < request->body_bytes && offset < bad) {
		size_t chunk = world_between(1, most);

		if (chunk > request->body_bytes - offset)
			chunk = request->body_bytes - offset;
		snprintf(line, sizeof(line), world_chance(50) ? "%zx;x\r\n" : "%zx\r\n", chunk);
		put_text(client, line);
		put_pattern(client, key, offset, chunk);
		put_text(client, "\r\n");
		offset += chunk;
	}
	put_text(client, bad != UINT64_MAX ? "-1\r\nhello\r\n\r\n" : "0\r\n\r\n");
}

static enum http1_method choose_method(void)
{
	static const uint8_t methods[] = {HTTP1_GET,  HTTP1_GET,  HTTP1_GET,    HTTP1_GET,     HTTP1_GET,
	                                  HTTP1_GET,  HTTP1_GET,  HTTP1_HEAD,   HTTP1_POST,    HTTP1_POST,
	                                  HTTP1_POST, HTTP1_POST, HTTP1_PUT,    HTTP1_DELETE,  HTTP1_OPTIONS,
	                                  HTTP1_PUT,  HTTP1_HEAD, HTTP1_PATCH, HTTP1_METHOD_OTHER};

	return (enum http1_method)methods[world_below(sizeof(methods))];
}

/* Behind a method and a target: heads that no server may ever see. */
static const char *const hostile_heads[] = {
        " HTTP/1.1\r\n\r\n",
        " HTTP/2.0\r\nHost: a\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "  HTTP/1.1\r\nHost: a\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc",
        " HTTP/1.1\r\nHost: a\r\n folded: 1\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nNul: a\001\r\n\r\n",
        " HTTP/1.1\nHost: a\n\n\r\r\n\r\n",
        " HTTP/1.1\r\nHost: a\r\nExpect: the-unexpected\r\n\r\n",
        " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
};

static void make_hostile(struct client *client, struct request *request)
{
	char text[64];

	request->hostile_head = true;
	request->minor = 1;
	request->last = true;
	if (world_chance(100)) {
		put_text(client, "GET /r/0 HTTP/1.1\r\nHost: a\r\nX: ");
		put_pattern(client, 3, 0, world.options.head_bytes_max + world_below(40000));
		return;
	}
	if (world_chance(100)) {
		put_pattern(client, 5 + request->number, 0, world_between(1, 3000));
		put_text(client, "\r\n\r\n");
		return;
	}
	if (world_chance(100)) {
		put_text(client, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
		return;
	}
	snprintf(text, sizeof(text), "%s /r/%u", traffic_method(request->method), request->number);
	put_text(client, text);
	put_text(client, hostile_heads[world_below(sizeof(hostile_heads) / sizeof(hostile_heads[0]))]);
	/* And more, which must not be taken for another request. */
	if (world_chance(300))
		put_text(client, "GET /r/0 HTTP/1.1\r\nHost: a\r\n\r\n");
}

static void make_fields(struct client *client, struct request *request)
{
	char text[256];

	if (request->minor == 1 || world_chance(500))
		put_text(client, "Host: simulated\r\n");
	snprintf(text, sizeof(text), "X-Number: %u\r\n", request->number);
	put_text(client, text);
	if (world_chance(30))
		put_text(client, "traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\n");
	if (request->minor == 1 && world_chance(50))
		put_text(client, "Connection: X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n");
	if (request->minor == 1 && request->last)
		put_text(client, "Connection: close\r\n");
	if (request->minor == 0 && !request->last)
		put_text(client, "Connection: keep-alive\r\n");
	if (request->expects)
		put_text(client, "Expect: 100-continue\r\n");
	if (request->chunked)
		put_text(client, "Transfer-Encoding: chunked\r\n");
	else if (request->has_body) {
		snprintf(text, sizeof(text), "Content-Length: %" PRIu64 "\r\n", request->body_bytes);
		put_text(client, text);
	}
}

static void make_request(struct client *client)
{
	struct request *request = traffic_request_new();
	char text[64];

	client->request[client->made++] = request->number;
	request->wire = client->wire;
	request->method = choose_method();
	request->minor = client->minor;
	request->last = (client->minor == 0 && !client->keeps) || (client->made == client->requests && world_chance(300));
	request->hostile = client->hostile && client->made == client->requests;
	request->client_cause = world.now_ns < client->read_stalled_until_ns || world.now_ns < client->stalled_until_ns;
	/* HTTP/1.0 knows no chunks that could be bad. */
	if (request->hostile && (request->minor == 0 || world_chance(700))) {
		make_hostile(client, request);
		return;
	}
	/* HEAD has none, so that 408 tells that its head was not whole. */
	if (request->hostile && request->method == HTTP1_HEAD)
		request->method = HTTP1_POST;
	request->has_body = request->hostile || (request->method != HTTP1_HEAD && world_chance(request->method == HTTP1_POST || request->method == HTTP1_PUT ||
	                                                 request->method == HTTP1_PATCH ?
	                                         950 :
	                                         20));
	if (client->half_closes && client->made == client->requests && request->method == HTTP1_POST && !request->hostile)
		request->has_body = true;
	if (request->has_body) {
		/* The end that comes while the proxy still holds most of it is worth a try. */
		request->body_bytes = client->half_closes && world_chance(500) ? world_between(30000, 60000) : world_size();
		request->chunked = request->hostile || (request->minor == 1 && world_chance(400));
		request->expects = request->minor == 1 && world_chance(100);
	}
	snprintf(text, sizeof(text), "%s /r/%u", traffic_method(request->method), request->number);
	put_text(client, text);
	if (world_chance(100)) {
		put_text(client, "?q=");
		for (size_t i = world_below(world.options.head_bytes_max / 2); i > 0; i--)
			put_text(client, "x");
	}
	put_text(client, request->minor == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
	make_fields(client, request);
	put_text(client, "\r\n");
	if (request->expects && client->hold_at == SIZE_MAX) {
		client->hold_at = client->out_length;
		client->hold_until_ns = 0;
	}
	if (request->has_body)
		put_body(client, request);
	if (client->hold_at == client->out_length)
		client->hold_at = SIZE_MAX; /* nothing to hold back */
	world_log("client %u: request %u, %s, %" PRIu64 " bytes%s%s%s", client->wire->port, request->number,
	          traffic_method(request->method), request->body_bytes, request->chunked ? " in chunks" : "",
	          request->hostile ? ", invalid" : "", request->last ? ", last" : "");
}

/* From here on the proxy may give up on all that is not answered; the last answer may not have been counted yet. */
static void cause(struct client *client)
{
	for (unsigned int i = client->answered > 0 ? client->answered - 1 : 0; i < client->made; i++)
		traffic_request(client->request[i])->client_cause = true;
}

static void gone(struct client *client)
{
	client->gone = true;
	living--;
	reply_free(&client->reply);
	free(client->out);
	client->out = NULL;
	client->wire->owner = NULL;
	world_later(world_delay(), next_client, NULL, 0);
}

static void leave(struct client *client, bool reset)
{
	bool behind = client->ending;

	for (unsigned int i = client->answered; i < client->made; i++) {
		struct request *request = traffic_request(client->request[i]);

		request->outcome = i == client->answered && client->reply.bytes > 0 && !behind ? OUTCOME_BROKEN : OUTCOME_NOTHING;
		request->behind_close = behind;
		request->at_stop = world.stopping;
		if (request->outcome == OUTCOME_BROKEN) {
			request->id = client->reply.id;
			request->status = client->reply.status;
		}
		/* One broken answer ends them all. */
		behind = true;
		if (client->wire->kernel_fault || client->wire->bytes_lost || client->wire->turned_away)
			request->client_cause = true;
	}
	if (client->wire->kernel_fault)
		cause(client);
	if (reset)
		wire_reset(client->wire);
	else
		wire_close(client->wire);
	world_log("client %u leaves%s, %u of %u answered", client->wire->port, reset ? " with a reset" : "",
	          client->answered, client->made);
	gone(client);
}

static void finish_reply(struct client *client)
{
	struct reply *reply = &client->reply;

	world_check(client->answered < client->made || (reply->refused && reply->status == 503 && reply->id == 0),
	            "an answer (%u) that nobody asked for", reply->status);
	if (client->answered < client->made) {
		struct request *request = traffic_request(client->request[client->answered++]);

		request->outcome = reply->refused ? OUTCOME_REFUSED : OUTCOME_WHOLE;
		request->status = reply->status;
		request->answer = reply->answer;
		request->id = reply->id;
		request->reply_bytes = reply->bytes;
		request->close_announced = reply->close;
		request->connection_refused = reply->id == 0;
		if (!request->written && !client->ending)
			world_check(reply->close || request->hostile, "request %u is not written and its connection goes on",
			            request->number);
		world_log("client %u: request %u is answered, %s %u, %" PRIu64 " bytes%s", client->wire->port,
		          request->number, reply->refused ? "refused" : "status", reply->status, reply->bytes,
		          reply->close ? ", close" : "");
	}
	client->ending = reply->close;
	client->think_until_ns = world.now_ns + world_delay();
	reply_begin(reply);
}

static struct request *expected(struct client *client)
{
	return client->answered < client->made ? traffic_request(client->request[client->answered]) : NULL;
}

/* Returns false when the client has left. */
static bool read_some(struct client *client)
{
	char buffer[16384];
	size_t most = client->reads_slowly ? world_between(1, 6000) : sizeof(buffer), got;

	if (world.now_ns < client->read_stalled_until_ns) {
		if (client->wire->proxy_closed) {
			leave(client, true);
			return false;
		}
		if (client->read_stalled_until_ns != UINT64_MAX)
			later(client, client->read_stalled_until_ns - world.now_ns);
		return true;
	}
	while ((got = wire_read(client->wire, buffer, most)) > 0) {
		size_t taken = 0;

		client->progress_ns = world.now_ns;
		client->read += got;
		while (taken < got) {
			world_check(!client->ending, "bytes behind the answer that ended the connection");
			taken += reply_take(&client->reply, expected(client), buffer + taken, got - taken);
			if (client->reply.done)
				finish_reply(client);
		}
		if (client->read >= client->abort_read) {
			cause(client);
			leave(client, client->resets);
			return false;
		}
		if (client->read >= client->stall_read) {
			client->stall_read = UINT64_MAX;
			cause(client);
			/* Some never read again. */
			client->read_stalled_until_ns = UINT64_MAX;
			if (world_chance(500)) {
				client->read_stalled_until_ns = world.now_ns + world_between(1, 3) * world.options.idle_timeout_ns;
				later(client, client->read_stalled_until_ns - world.now_ns);
			} else {
				later(client, 1); /* the proxy may have closed already */
			}
			return true;
		}
		if (client->reads_slowly) {
			later(client, world_between(1, 500) * US);
			return true;
		}
	}
	if (wire_ended(client->wire) && client->wire->out.length == 0) {
		if (reply_end(&client->reply, expected(client), !client->wire->out.reset))
			finish_reply(client);
		leave(client, false);
		return false;
	}
	return true;
}

static void mark_written(struct client *client)
{
	for (unsigned int i = client->answered; i < client->made && client->written >= client->end[i]; i++)
		traffic_request(client->request[i])->written = true;
	if (client->out_at == client->out_length)
		client->out_at = client->out_length = 0;
}

static bool may_write(struct client *client, size_t *ret_most)
{
	size_t most = client->out_length - client->out_at;

	if (world.now_ns < client->stalled_until_ns) {
		later(client, client->stalled_until_ns - world.now_ns);
		return false;
	}
	if (client->hold_at != SIZE_MAX) {
		if (client->reply.continued || (client->hold_until_ns != 0 && world.now_ns >= client->hold_until_ns))
			client->hold_at = SIZE_MAX;
		else if (client->out_at < client->hold_at)
			most = client->hold_at - client->out_at;
		else {
			if (client->hold_until_ns == 0)
				client->hold_until_ns = world.now_ns + world_between(1, 300) * MS;
			later(client, client->hold_until_ns - world.now_ns);
			return false;
		}
	}
	if (client->writes_slowly && most > 100)
		most = world_between(100, most < 20000 ? most : 20000);
	*ret_most = most;
	return most > 0;
}

static bool write_some(struct client *client)
{
	size_t most, done;

	if (!may_write(client, &most))
		return true;
	done = wire_write(client->wire, client->out + client->out_at, most);
	world_log("client %u: writes %zu of %zu", client->wire->port, done, most);
	client->out_at += done;
	client->written += done;
	if (done > 0)
		client->progress_ns = world.now_ns;
	mark_written(client);
	if (client->written >= client->abort_written) {
		cause(client);
		if (client->only_fin) {
			/* Says that nothing more comes, in the middle of whatever it is, and still listens. */
			client->abort_written = UINT64_MAX;
			client->requests = client->made;
			client->out_at = client->out_length = 0;
			client->fin = true;
			wire_fin(client->wire);
			return true;
		}
		leave(client, client->resets);
		return false;
	}
	if (client->written >= client->stall_written) {
		client->stall_written = UINT64_MAX;
		client->stalled_until_ns = world.now_ns + world_between(1, 3) * world.options.idle_timeout_ns;
		cause(client);
	}
	if (client->out_at < client->out_length && wire_room(client->wire) > 0)
		later(client, client->writes_slowly ? world_between(1, 2000) * US : world_delay());
	return true;
}

/* Asks more, or ends. Returns false when the client has left. */
static bool go_on(struct client *client)
{
	bool all_made = client->made == client->requests;

	if (client->ending) {
		/* Some stop at once, some wait until the proxy closes, some talk on. */
		if (client->abandons) {
			if (client->out_at < client->out_length)
				cause(client);
			leave(client, false);
			return false;
		}
		return true;
	}
	if (!all_made && client->made - client->answered < client->depth) {
		if (client->answered > 0 && world.now_ns < client->think_until_ns) {
			later(client, client->think_until_ns - world.now_ns);
		} else {
			while (client->made < client->requests && client->made - client->answered < client->depth) {
				const struct request *made;

				make_request(client);
				client->end[client->made - 1] = client->written + client->out_length - client->out_at;
				made = traffic_request(client->request[client->made - 1]);
				if (made->last)
					client->requests = client->made;
				if (made->expects)
					break;
			}
		}
		return true;
	}
	if (all_made && client->out_at == client->out_length) {
		if (client->answered == client->made && !client->lingers) {
			leave(client, false);
			return false;
		}
		if (client->half_closes && !client->fin && client->made > 0) {
			client->fin = true;
			wire_fin(client->wire);
		}
	}
	return true;
}

static void run(void *object)
{
	struct client *client = object;

	if (client->gone)
		return;
	if (!read_some(client) || !go_on(client))
		return;
	if (client->out_at < client->out_length)
		(void)write_some(client);
}

static void watch(void *object, uint64_t unused)
{
	(void)object;
	(void)unused;
	for (const struct client *client = clients; client; client = client->next) {
		if (client->gone || world.now_ns - client->progress_ns < PATIENCE_NS)
			continue;
		world_fail("client %u waits for ever: %u made, %u answered, written %zu of %zu", client->wire->port,
		           client->made, client->answered, client->out_at, client->out_length);
	}
	if (living > 0 || traffic_requests() < world.exchanges_max)
		world_later(5 * TAILOR_NS_PER_S, watch, NULL, 0);
}

static void set_manners(struct client *client)
{
	unsigned int faults = world.client_faults;

	client->requests = (unsigned int)world_between(1, world_chance(300) ? 2 : REQUESTS_MAX);
	client->depth = world_chance(250) ? (unsigned int)world_between(2, 6) : 1;
	client->minor = world_chance(100) ? 0 : 1;
	client->keeps = world_chance(500);
	if (client->minor == 0 && !client->keeps)
		client->requests = 1;
	client->half_closes = world_chance(200);
	client->lingers = world_chance(20);
	client->abandons = world_chance(500);
	client->reads_slowly = world_chance(100);
	client->writes_slowly = world_chance(100);
	client->resets = world_chance(500);
	client->only_fin = world_chance(500);
	client->abort_written = client->abort_read = client->stall_written = client->stall_read = UINT64_MAX;
	client->hostile = world_chance(faults);
	if (world_chance(faults))
		client->abort_written = world_below(world_chance(500) ? 500 : 50000);
	if (world_chance(faults))
		client->abort_read = world_below(world_chance(500) ? 500 : 50000);
	if (world_chance(faults / 4))
		client->stall_written = world_below(world_chance(500) ? 500 : 50000);
	if (world_chance(faults / 4))
		client->stall_read = world_below(world_chance(500) ? 500 : 50000);
}

static void next_client(void *object, uint64_t unused)
{
	struct client *client;

	(void)object;
	(void)unused;
	if (world.stopping || living >= concurrency || traffic_requests() >= world.exchanges_max)
		return;
	client = calloc(1, sizeof(*client));
	world_check(client, "out of memory");
	set_manners(client);
	client->hold_at = SIZE_MAX;
	client->progress_ns = world.now_ns;
	client->wire = wire_new(WIRE_CLIENT, run, client);
	client->wire->port = (uint16_t)world_between(1024, 65535);
	/* What it does not read is not to be hidden in the kernel; and some ask on all the same. */
	if (client->stall_read != UINT64_MAX) {
		client->wire->out.size = world_between(100, 2000);
		if (world_chance(500))
			client->depth = 6;
	}
	client->next = clients;
	clients = client;
	living++;
	if (!kernel_knock(client->wire)) {
		gone(client);
		return;
	}
	later(client, world_delay());
	/* At times they come in crowds. */
	world_later(world_chance(200) ? 0 : world_between(10, 2000) * US, next_client, NULL, 0);
}

void client_open(void)
{
	concurrency = (unsigned int)world_between(1, world_chance(500) ? 10 : 60);
	living = 0;
	for (unsigned int i = 0; i < 1 + concurrency / 10; i++)
		world_later(world_delay(), next_client, NULL, 0);
	world_later(5 * TAILOR_NS_PER_S, watch, NULL, 0);
}

bool client_all_done(void)
{
	return living == 0;
}

void client_free_all(void)
{
	while (clients) {
		struct client *client = clients;

		clients = client->next;
		reply_free(&client->reply);
		free(client->out);
		free(client);
	}
}
