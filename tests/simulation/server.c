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
#include "traffic.h"

#define PORT_FIRST 9001
#define HEAD_BYTES_MAX 65536

enum ending {
	END_KEEP,   /* the connection serves on */
	END_CLOSE,  /* as announced, or as the framing needs it */
	END_STALE,  /* closed without a word, at once or later */
	END_RESET,  /* all of these at some byte of the answer: */
	END_FIN,
	END_SILENT,
};

struct serving {
	struct wire *wire;
	struct serving *next;
	unsigned int server;
	bool gone;
	bool waiting;   /* run() is on its way */
	uint64_t turns; /* to forget old timers */
	/* The request. */
	char *in;
	size_t in_length;
	bool in_body, body_done, reads; /* a server that has answered early may read no more */
	bool slow;
	struct request *request;
	bool chunked;
	uint64_t body_left, body_offset;
	struct unchunk unchunk;
	/* The answer. */
	bool planned, answering;
	char *out;
	size_t out_length, out_size, out_at, out_stop;
	struct answer *answer;
	enum ending ending;
	uint64_t answer_ns;
};

struct server {
	bool refuses, silent_to_connects;
	bool paused;
	uint64_t resume_ns;
	struct tailor_jvm_page *page;
	int wakers[TAILOR_JVM_WAKERS];
	bool attached;
	uint64_t change_ns;
};

static struct server servers[TAILOR_PROXY_SERVERS_MAX];
static struct serving *servings;
static uint16_t next_port;
static bool calm;

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

static void gone(struct serving *serving)
{
	serving->gone = true;
	serving->wire->owner = NULL;
	free(serving->in);
	free(serving->out);
	serving->in = serving->out = NULL;
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
	if (server->refuses || (!calm && world_below(4000) < world.server_faults))
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

static void make_room(struct serving *serving, size_t length)
{
	if (serving->out_length + length <= serving->out_size)
		return;
	serving->out_size = 2 * (serving->out_length + length);
	serving->out = realloc(serving->out, serving->out_size);
	world_check(serving->out, "out of memory");
}

static void put(struct serving *serving, const void *data, size_t length)
{
	make_room(serving, length);
	memcpy(serving->out + serving->out_length, data, length);
	serving->out_length += length;
}

static void put_text(struct serving *serving, const char *text)
{
	put(serving, text, strlen(text));
}

static void put_pattern(struct serving *serving, uint64_t key, uint64_t offset, size_t length)
{
	make_room(serving, length);
	world_pattern(key, offset, serving->out + serving->out_length, length);
	serving->out_length += length;
}

static void put_chunked(struct serving *serving, uint64_t key, size_t length)
{
	size_t most = world_chance(300) ? 50 : 30000;
	size_t offset = 0;
	char line[32];

	while (offset < length) {
		size_t chunk = world_between(1, most);

		if (chunk > length - offset)
			chunk = length - offset;
		snprintf(line, sizeof(line), world_chance(100) ? "%zx;x\r\n" : "%zx\r\n", chunk);
		put_text(serving, line);
		put_pattern(serving, key, offset, chunk);
		put_text(serving, "\r\n");
		offset += chunk;
		if (length > 5000)
			most = 30000;
	}
	put_text(serving, world_chance(100) ? "0\r\nX-Trailer: yes\r\n\r\n" : "0\r\n\r\n");
}

static bool faulty(unsigned int per_mille)
{
	return !calm && world_below(1000000) < (uint64_t)world.server_faults * per_mille;
}

/* Interim responses, which a HTTP/1.0 client must never see. */
static void put_interim(struct serving *serving, bool continues)
{
	char text[128];

	if (continues)
		put_text(serving, "HTTP/1.1 100 Continue\r\n\r\n");
	if (world_chance(30)) {
		snprintf(text, sizeof(text), "HTTP/1.1 103 Early Hints\r\nX-Number: %u\r\nConnection: x-y\r\n\r\n",
		         serving->request->number);
		put_text(serving, text);
	}
}

static void spoil(struct serving *serving, struct answer *answer, size_t begin, bool bodyless)
{
	/* Until the close, bytes that nobody asked for would be the body. */
	uint64_t kind = world_below(answer->until_close ? 5 : 8);

	serving->wire->peer_bad = true;
	answer->cut = true;
	if (kind == 0) {
		serving->out_length = begin;
		put_text(serving, "SSH-2.0-OpenSSH\r\n\r\n");
	} else if (kind == 1) {
		serving->out_length = begin;
		put_text(serving, "HTTP/1.1 200 OK\r\nX-Long: ");
		put_pattern(serving, 1, 0, world.options.head_bytes_max + 5000);
	} else if (kind == 2) {
		serving->out_length = begin;
		put_text(serving, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
	} else if (kind == 3) {
		serving->out_length = begin;
		put_text(serving, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef");
	} else if (kind == 4 && !bodyless) {
		serving->out_length = begin;
		put_text(serving, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
	} else {
		/* A whole answer, and bytes that nobody asked for. */
		answer->cut = false;
		put_text(serving, "\001\002\003 bytes that nobody asked for\r\n\r\n");
	}
	serving->ending = END_CLOSE;
}

static void plan(struct serving *serving)
{
	static const uint16_t statuses[] = {200, 200, 200, 200, 200, 200, 200, 404, 500, 204, 304, 200};
	struct request *request = serving->request;
	uint32_t number = traffic_answer_new();
	struct answer *answer = traffic_answer(number);
	uint64_t key = TRAFFIC_ANSWER_KEY(number), framing = world_below(100);
	bool bodyless;
	size_t begin;
	char head[512];
	int length;

	answer->request = request->number;
	answer->server = serving->server;
	answer->status = statuses[world_below(sizeof(statuses) / sizeof(statuses[0]))];
	answer->bytes = world_size();
	bodyless = request->method == HTTP1_HEAD || answer->status == 204 || answer->status == 304;
	serving->answer = answer;
	serving->planned = true;
	serving->out_length = serving->out_at = 0;
	serving->ending = END_KEEP;
	put_interim(serving, request->expects && request->minor == 1 && world_chance(800));
	begin = serving->out_length;
	length = snprintf(head, sizeof(head), "HTTP/1.%d %u Whatever\r\nX-Echo: %u\r\n",
	                  framing >= 85 && world_chance(500) ? 0 : 1, answer->status, number);
	put(serving, head, (size_t)length);
	if (world_chance(50))
		put_text(serving, "X-Tailor-Request-Id: 0123456789abcdef\r\nKeep-Alive: timeout=5\r\n");
	if (bodyless) {
		length = snprintf(head, sizeof(head), "Content-Length: %" PRIu64 "\r\n", answer->bytes);
		if (answer->status != 204)
			put(serving, head, (size_t)length);
		answer->bytes = 0;
		if (serving->out[begin + 7] == '0')
			serving->ending = END_CLOSE;
	} else if (framing < 50) {
		length = snprintf(head, sizeof(head), "Content-Length: %" PRIu64 "\r\n", answer->bytes);
		put(serving, head, (size_t)length);
	} else if (framing < 85) {
		put_text(serving, "Transfer-Encoding: chunked\r\n");
	} else {
		answer->until_close = true;
		serving->ending = END_CLOSE;
	}
	if (serving->ending == END_KEEP && world_chance(50)) {
		put_text(serving, "Connection: close\r\n");
		serving->ending = END_CLOSE;
	}
	put_text(serving, "\r\n");
	if (!bodyless && (framing < 50 || framing >= 85))
		put_pattern(serving, key, 0, answer->bytes);
	else if (!bodyless)
		put_chunked(serving, key, answer->bytes);
	if (serving->ending == END_KEEP && world_chance(30))
		serving->ending = END_STALE;
	serving->out_stop = SIZE_MAX;
	if (faulty(300)) {
		spoil(serving, answer, begin, bodyless);
	} else if (faulty(1500)) {
		serving->ending = END_RESET + (enum ending)world_below(3);
		serving->out_stop = world_chance(300) ? 0 : world_below(serving->out_length);
		answer->cut = true;
	}
	world_log("server %u port %u: answer %u to request %u, status %u, %" PRIu64 " bytes, ending %d",
	          serving->server, serving->wire->port, number, request->number, answer->status, answer->bytes,
	          (int)serving->ending);
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
		world_check(count == 0, "request %u came with a Content-Length", request->number);
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
	replayable = world.options.replay_methods & (1u << request->method);
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
			plan(serving);
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
	if (!serving->body_done && !serving->planned && faulty(3000)) {
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
	gone(serving);
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
		gone(serving);
		break;
	case END_RESET:
		wire_reset(serving->wire);
		gone(serving);
		break;
	case END_SILENT:
		serving->wire->peer_silent = true;
		serving->reads = false;
		break;
	}
}

static void answer(struct serving *serving)
{
	size_t length = serving->out_length < serving->out_stop ? serving->out_length : serving->out_stop;
	size_t piece;

	if (serving->wire->peer_silent)
		return;
	piece = length - serving->out_at;
	if (piece > 0 && world_chance(100))
		piece = world_between(1, piece);
	piece = wire_write(serving->wire, serving->out + serving->out_at, piece);
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
			gone(serving);
		}
		return;
	}
	take(serving);
	if (wire_ended(serving->wire) && serving->wire->out.length == 0) {
		wire_close(serving->wire);
		gone(serving);
		return;
	}
	if (serving->in_body && serving->body_done && !serving->planned && !serving->answering && serving->answer_ns == 0) {
		plan(serving);
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

/* As the agent does it: the state first, then whoever sleeps. */
static void set_state(struct server *server, enum tailor_jvm_state state)
{
	server->page->state = TAILOR_JVM_STATE(state, world.now_ns);
	for (unsigned int i = 0; i < TAILOR_JVM_WAKERS; i++) {
		if (server->page->waker[i].sleeping)
			kernel_event_add(server->wakers[i], 1);
	}
}

static void pause_end(void *object, uint64_t unused);

static void pause_begin(void *object, uint64_t unused)
{
	struct server *server = object;
	uint64_t length_ns = world_chance(100) ? world_between(50, 400) * MS : world_between(100, 20000) * US;

	(void)unused;
	if (calm)
		return;
	server->paused = true;
	server->resume_ns = world.now_ns + length_ns + 20 * US;
	server->page->pauses++;
	world_log("server %u stops for %" PRIu64 " us", (unsigned int)(server - servers), length_ns / US);
	set_state(server, TAILOR_JVM_COLLECTING);
	world_later(length_ns, pause_end, server, 0);
}

static void runs_again(void *object, uint64_t unused)
{
	(void)unused;
	((struct server *)object)->paused = false;
}

static void pause_end(void *object, uint64_t unused)
{
	struct server *server = object;

	(void)unused;
	set_state(server, TAILOR_JVM_RUNNING);
	world_later(20 * US, runs_again, server, 0);
	world_later(world_between(1, world_chance(500) ? 10 : 100) * MS, pause_begin, server, 0);
}

static void crash_end(void *object, uint64_t unused)
{
	struct server *server = object;

	(void)unused;
	server->refuses = server->silent_to_connects = false;
}

/* A server dies with all its connections, or is only cut off for new ones, and comes back. */
static void crash(void *object, uint64_t unused)
{
	struct server *server = object;
	unsigned int index = (unsigned int)(server - servers);

	(void)unused;
	if (calm)
		return;
	if (world_below(1000) < (uint64_t)world.server_faults * 5) {
		server->refuses = true;
		server->silent_to_connects = world_chance(300);
		world_log("server %u is gone", index);
		if (world_chance(600)) {
			for (struct serving *serving = servings; serving; serving = serving->next) {
				if (serving->server != index || serving->gone)
					continue;
				wire_reset(serving->wire);
				gone(serving);
			}
		}
		world_later(world_between(1, 1500) * MS, crash_end, server, 0);
	}
	world_later(world_between(20, 3000) * MS, crash, server, 0);
}

void server_open(void)
{
	next_port = (uint16_t)world_between(20000, 60000);
	calm = false;
	for (unsigned int i = 0; i < world.options.servers; i++) {
		struct server *server = &servers[i];

		*server = (struct server){0};
		server->page = aligned_alloc(4096, 4096);
		world_check(server->page, "out of memory");
		memset(server->page, 0, 4096);
		for (unsigned int w = 0; w < TAILOR_JVM_WAKERS; w++)
			server->wakers[w] = kernel_descriptor_new(DESCRIPTOR_EVENT);
		server->change_ns = world.now_ns + world_below(5) * MS;
		world_later(world_between(1, 50) * MS, pause_begin, server, 0);
		world_later(world_between(1, 3000) * MS, crash, server, 0);
	}
}

void server_turn(void)
{
	for (unsigned int i = 0; i < world.options.servers; i++) {
		struct server *server = &servers[i];

		if (world.now_ns < server->change_ns)
			continue;
		if (server->attached && world_chance(300)) {
			server->attached = false;
			tailor_proxy_jvm_detach(world.proxy, i);
			server->change_ns = world.now_ns + world_below(50) * MS;
		} else {
			/* Also in the place of the one that is there. */
			server->attached = false;
			tailor_proxy_jvm_attach(world.proxy, i, server->page, server->wakers);
			server->attached = true;
			server->change_ns = world.now_ns + world_between(100, 20000) * MS;
		}
		if (world_chance(300))
			(void)tailor_proxy_swap(world.proxy);
	}
}

bool server_collects(unsigned int server, bool known)
{
	return TAILOR_JVM_STATE_OF(servers[server].page->state) == TAILOR_JVM_COLLECTING &&
	       (servers[server].attached || !known);
}

void server_calm(void)
{
	calm = true;
	for (unsigned int i = 0; i < world.options.servers; i++)
		servers[i].refuses = servers[i].silent_to_connects = false;
}

unsigned int server_connections(unsigned int server)
{
	unsigned int count = 0;

	for (const struct serving *serving = servings; serving; serving = serving->next)
		count += serving->server == server && !serving->wire->proxy_closed;
	return count;
}

void server_close(void)
{
	for (unsigned int i = 0; i < world.options.servers; i++) {
		for (unsigned int w = 0; w < TAILOR_JVM_WAKERS; w++)
			kernel_close(servers[i].wakers[w]);
		free(servers[i].page);
	}
	while (servings) {
		struct serving *serving = servings;

		servings = serving->next;
		free(serving->in);
		free(serving->out);
		free(serving);
	}
}
