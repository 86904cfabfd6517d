/* SPDX-License-Identifier: Apache-2.0 */
/* What clients ask: every framing, and what is no HTTP. */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>

static void put_body(struct client *client, struct request *request)
{
	uint64_t key = TRAFFIC_REQUEST_KEY(request->number), offset = 0;
	size_t most = world_chance(100) && request->body_bytes < 3000 ? 20 : 40000;
	/* Somewhere in it the client forgets how chunks are written. */
	uint64_t bad = request->hostile ? world_below(request->body_bytes + 1) : UINT64_MAX;
	char line[32];

	if (!request->chunked) {
		output_pattern(&client->out, key, 0, request->body_bytes);
		return;
	}
	while (offset < request->body_bytes && offset < bad) {
		size_t chunk = world_between(1, most);

		if (chunk > request->body_bytes - offset)
			chunk = request->body_bytes - offset;
		snprintf(line, sizeof(line), world_chance(50) ? "%zx;x\r\n" : "%zx\r\n", chunk);
		output_text(&client->out, line);
		output_pattern(&client->out, key, offset, chunk);
		output_text(&client->out, "\r\n");
		offset += chunk;
	}
	output_text(&client->out, bad != UINT64_MAX ? "-1\r\nhello\r\n\r\n" : "0\r\n\r\n");
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
		output_text(&client->out, "GET /r/0 HTTP/1.1\r\nHost: a\r\nX: ");
		output_pattern(&client->out, 3, 0, world.options.head_bytes_max + world_below(40000));
		return;
	}
	if (world_chance(100)) {
		output_pattern(&client->out, 5 + request->number, 0, world_between(1, 3000));
		output_text(&client->out, "\r\n\r\n");
		return;
	}
	if (world_chance(100)) {
		output_text(&client->out, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
		return;
	}
	snprintf(text, sizeof(text), "%s /r/%u", traffic_method(request->method), request->number);
	output_text(&client->out, text);
	output_text(&client->out, hostile_heads[world_below(sizeof(hostile_heads) / sizeof(hostile_heads[0]))]);
	/* And more, which must not be taken for another request. */
	if (world_chance(300))
		output_text(&client->out, "GET /r/0 HTTP/1.1\r\nHost: a\r\n\r\n");
}

static void make_fields(struct client *client, struct request *request)
{
	char text[256];

	if (request->minor == 1 || world_chance(500))
		output_text(&client->out, "Host: simulated\r\n");
	snprintf(text, sizeof(text), "X-Number: %u\r\n", request->number);
	output_text(&client->out, text);
	if (world_chance(30))
		output_text(&client->out, "traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\n");
	if (request->minor == 1 && world_chance(50))
		output_text(&client->out, "Connection: X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n");
	if (request->minor == 1 && request->last)
		output_text(&client->out, "Connection: close\r\n");
	if (request->minor == 0 && !request->last)
		output_text(&client->out, "Connection: keep-alive\r\n");
	if (request->expects)
		output_text(&client->out, "Expect: 100-continue\r\n");
	if (request->chunked)
		output_text(&client->out, "Transfer-Encoding: chunked\r\n");
	/* RFC 1945, 8.3 */
	else if (request->has_body || (request->minor == 0 && request->method == HTTP1_POST)) {
		snprintf(text, sizeof(text), "Content-Length: %" PRIu64 "\r\n", request->body_bytes);
		output_text(&client->out, text);
	}
}

void client_make_request(struct client *client)
{
	struct request *request = traffic_request_new();
	char text[64];

	client->request[client->made++] = request->number;
	request->wire = client->wire;
	request->method = choose_method();
	request->minor = client->minor;
	request->last = (client->minor == 0 && !client->keeps) || (client->made == client->requests && world_chance(300));
	request->hostile = client->hostile && client->made == client->requests;
	/* Behind a stall the proxy may just be closing an idle connection. */
	request->client_cause = client->read_stalled_until_ns != 0 || client->stalled_until_ns != 0;
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
	output_text(&client->out, text);
	if (world_chance(100)) {
		output_text(&client->out, "?q=");
		for (size_t i = world_below(world.options.head_bytes_max / 2); i > 0; i--)
			output_text(&client->out, "x");
	}
	output_text(&client->out, request->minor == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
	make_fields(client, request);
	output_text(&client->out, "\r\n");
	if (request->expects && client->hold_at == SIZE_MAX) {
		client->hold_at = client->out.length;
		client->hold_until_ns = 0;
	}
	if (request->has_body)
		put_body(client, request);
	if (client->hold_at == client->out.length)
		client->hold_at = SIZE_MAX; /* nothing to hold back */
	world_log("client %u: request %u, %s, %" PRIu64 " bytes%s%s%s", client->wire->port, request->number,
	          traffic_method(request->method), request->body_bytes, request->chunked ? " in chunks" : "",
	          request->hostile ? ", invalid" : "", request->last ? ", last" : "");
}
