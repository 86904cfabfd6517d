/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers: every framing, and the ways to get one wrong. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>

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
		output_text(&serving->out, line);
		output_pattern(&serving->out, key, offset, chunk);
		output_text(&serving->out, "\r\n");
		offset += chunk;
		if (length > 5000)
			most = 30000;
	}
	output_text(&serving->out, world_chance(100) ? "0\r\nX-Trailer: yes\r\n\r\n" : "0\r\n\r\n");
}

/* Interim responses, which a HTTP/1.0 client must never see. */
static void put_interim(struct serving *serving, bool continues)
{
	char text[128];

	if (continues)
		output_text(&serving->out, "HTTP/1.1 100 Continue\r\n\r\n");
	if (world_chance(30)) {
		snprintf(text, sizeof(text), "HTTP/1.1 103 Early Hints\r\nX-Number: %u\r\nConnection: x-y\r\n\r\n",
		         serving->request->number);
		output_text(&serving->out, text);
	}
}

static void spoil(struct serving *serving, struct answer *answer, size_t begin, bool bodyless)
{
	/* Until the close, bytes that nobody asked for would be the body. */
	uint64_t kind = world_below(answer->until_close ? 5 : 8);

	serving->wire->peer_bad = true;
	answer->cut = true;
	if (kind == 0) {
		serving->out.length = begin;
		output_text(&serving->out, "SSH-2.0-OpenSSH\r\n\r\n");
	} else if (kind == 1) {
		serving->out.length = begin;
		output_text(&serving->out, "HTTP/1.1 200 OK\r\nX-Long: ");
		output_pattern(&serving->out, 1, 0, world.options.head_bytes_max + 5000);
	} else if (kind == 2) {
		serving->out.length = begin;
		output_text(&serving->out, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
	} else if (kind == 3) {
		serving->out.length = begin;
		output_text(&serving->out, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef");
	} else if (kind == 4 && !bodyless) {
		serving->out.length = begin;
		output_text(&serving->out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
	} else {
		/* A whole answer, and bytes that nobody asked for. */
		answer->cut = false;
		output_text(&serving->out, "\001\002\003 bytes that nobody asked for\r\n\r\n");
	}
	serving->ending = END_CLOSE;
}

void server_plan(struct serving *serving)
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

	server_heap_fill(serving->server);
	answer->request = request->number;
	answer->server = serving->server;
	answer->status = statuses[world_below(sizeof(statuses) / sizeof(statuses[0]))];
	answer->bytes = world_size();
	bodyless = request->method == HTTP1_HEAD || answer->status == 204 || answer->status == 304;
	serving->answer = answer;
	serving->planned = true;
	serving->out.length = serving->out_at = 0;
	serving->ending = END_KEEP;
	put_interim(serving, request->expects && request->minor == 1 && world_chance(800));
	begin = serving->out.length;
	length = snprintf(head, sizeof(head), "HTTP/1.%d %u Whatever\r\nX-Echo: %u\r\n",
	                  framing >= 85 && world_chance(500) ? 0 : 1, answer->status, number);
	output_put(&serving->out, head, (size_t)length);
	if (world_chance(50))
		output_text(&serving->out, "X-Tailor-Request-Id: 0123456789abcdef\r\nKeep-Alive: timeout=5\r\n");
	if (bodyless) {
		length = snprintf(head, sizeof(head), "Content-Length: %" PRIu64 "\r\n", answer->bytes);
		if (answer->status != 204)
			output_put(&serving->out, head, (size_t)length);
		answer->bytes = 0;
		if (serving->out.data[begin + 7] == '0')
			serving->ending = END_CLOSE;
	} else if (framing < 50) {
		length = snprintf(head, sizeof(head), "Content-Length: %" PRIu64 "\r\n", answer->bytes);
		output_put(&serving->out, head, (size_t)length);
	} else if (framing < 85) {
		output_text(&serving->out, "Transfer-Encoding: chunked\r\n");
	} else {
		answer->until_close = true;
		serving->ending = END_CLOSE;
	}
	if (serving->ending == END_KEEP && world_chance(50)) {
		output_text(&serving->out, "Connection: close\r\n");
		serving->ending = END_CLOSE;
	}
	output_text(&serving->out, "\r\n");
	if (!bodyless && (framing < 50 || framing >= 85))
		output_pattern(&serving->out, key, 0, answer->bytes);
	else if (!bodyless)
		put_chunked(serving, key, answer->bytes);
	if (serving->ending == END_KEEP && world_chance(30))
		serving->ending = END_STALE;
	serving->out_stop = SIZE_MAX;
	if (server_faulty(300)) {
		spoil(serving, answer, begin, bodyless);
	} else if (server_faulty(1500)) {
		serving->ending = END_RESET + (enum ending)world_below(3);
		serving->out_stop = world_chance(300) ? 0 : world_below(serving->out.length);
		answer->cut = true;
	}
	world_log("server %u port %u: answer %u to request %u, status %u, %" PRIu64 " bytes, ending %d",
	          serving->server, serving->wire->port, number, request->number, answer->status, answer->bytes,
	          (int)serving->ending);
}
