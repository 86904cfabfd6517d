/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proxy/date.h"
#include "proxy/output.h"

static void put_field(struct output *output, const struct http1_field *field)
{
	put(output, field->name.data, field->name.length);
	PUT(output, ": ");
	put(output, field->value.data, field->value.length);
	PUT(output, "\r\n");
}

static void put_content_length(struct output *output, uint64_t length)
{
	PUT(output, "Content-Length: ");
	put_number(output, length);
	PUT(output, "\r\n");
}

static void put_id(struct output *output, uint64_t id)
{
	char digits[16];

	trace_write_hex(id, digits);
	PUT(output, "X-Tailor-Request-Id: ");
	put(output, digits, sizeof(digits));
	PUT(output, "\r\n");
}

static int finish(const struct output *output, const char *begin)
{
	return output->full ? -ENOBUFS : (int)(output->at - begin);
}

/* Fields about the connection that the message came on, and framing, which is always written anew. */
static bool is_own_business(const struct http1_head *head, const struct http1_field *field)
{
	switch ((enum http1_known)field->known) {
	case HTTP1_CONNECTION:
	case HTTP1_CONTENT_LENGTH:
	case HTTP1_TRANSFER_ENCODING:
	case HTTP1_KEEP_ALIVE:
	case HTTP1_PROXY_CONNECTION:
	case HTTP1_TE:
	case HTTP1_UPGRADE: return true;
	default: return http1_is_hop_by_hop(head, field);
	}
}

static bool is_id_field(const struct http1_field *field)
{
	static const char name[] = "x-tailor-request-id";

	return field->name.length == sizeof(name) - 1 && strncasecmp(field->name.data, name, sizeof(name) - 1) == 0;
}

/* 1 when there is exactly one traceparent and it is valid. */
static bool has_valid_parent(const struct http1_head *head)
{
	const struct http1_field *parent = NULL;

	for (size_t i = 0; i < head->field_count; i++) {
		/* One that Connection names ends here. */
		if (head->field[i].known != HTTP1_TRACEPARENT || http1_is_hop_by_hop(head, &head->field[i]))
			continue;
		if (parent)
			return false;
		parent = &head->field[i];
	}
	return parent && trace_parent_valid(parent->value.data, parent->value.length);
}

/* Servers are asked in origin-form (RFC 9112, 3.2.1), whatever form the client has used. */
static void put_target(struct output *output, const struct http1_head *head)
{
	if (head->authority.length > 0 && head->path.length == 0 && head->method_known == HTTP1_OPTIONS) {
		PUT(output, "*"); /* RFC 9112, 3.2.4 */
		return;
	}
	if (head->authority.length > 0 && (head->path.length == 0 || head->path.data[0] != '/'))
		PUT(output, "/");
	put(output, head->path.data, head->path.length);
}

int head_write_request(struct trace_source *trace, const struct http1_head *head, uint64_t id, const char *host,
                       const struct forwarded_rules *rules, char *to, size_t size)
{
	struct output output = {.at = to, .end = to + size};
	bool parent = has_valid_parent(head);
	struct http1_text asked = head->authority;
	bool host_seen = false;

	put(&output, head->method.data, head->method.length);
	PUT(&output, " ");
	put_target(&output, head);
	PUT(&output, " HTTP/1.1\r\n");
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *field = &head->field[i];

		if (is_own_business(head, field) || is_id_field(field) || forwarded_replaces(rules, head, field))
			continue;
		if (!parent && (field->known == HTTP1_TRACEPARENT || field->known == HTTP1_TRACESTATE))
			continue;
		/* An HTTP/1.0 client would not understand the interim response (RFC 9110, 10.1.1). */
		if (field->known == HTTP1_EXPECT && head->minor == 0)
			continue;
		if (field->known == HTTP1_HOST) {
			host_seen = true;
			asked = field->value;
		}
		put_field(&output, field);
	}
	if (!host_seen) {
		PUT(&output, "Host: ");
		if (head->authority.length > 0)
			put(&output, head->authority.data, head->authority.length);
		else
			put(&output, host, strlen(host));
		PUT(&output, "\r\n");
	}
	forwarded_put_request(&output, rules, head, asked);
	if (head->framing == HTTP1_LENGTH)
		put_content_length(&output, head->content_length);
	else if (head->framing == HTTP1_CHUNKED)
		PUT(&output, "Transfer-Encoding: chunked\r\n");
	if (parent) {
		/* Its parent id is somebody else's: what the server says of its threads (io.tailor.Tailor) needs ours. */
		put_id(&output, id);
	} else {
		char value[TRACE_PARENT_BYTES];

		trace_write_parent(trace, id, value);
		PUT(&output, "traceparent: ");
		put(&output, value, sizeof(value));
		PUT(&output, "\r\n");
	}
	PUT(&output, "\r\n");
	return finish(&output, to);
}

static void put_status_line(struct output *output, const struct http1_head *head)
{
	PUT(output, "HTTP/1.1 ");
	put_number(output, head->status);
	PUT(output, " ");
	put(output, head->reason.data, head->reason.length);
	PUT(output, "\r\n");
}

/* The length that a bodyless response announces for the representation (RFC 9110, 8.6): passed on for HEAD and 304. */
static void put_announced_length(struct output *output, const struct exchange *exchange, const struct http1_head *head)
{
	if (exchange->method != HTTP1_HEAD && head->status != 304)
		return;
	if (head->status == 204)
		return;
	for (size_t i = 0; i < head->field_count; i++) {
		if (head->field[i].known == HTTP1_CONTENT_LENGTH) {
			put_field(output, &head->field[i]);
			return;
		}
	}
}

/* The status line and the fields that go on from one connection to the other. */
static void put_end_to_end(struct output *output, const struct http1_head *head, const char *via)
{
	put_status_line(output, head);
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *field = &head->field[i];

		if (!is_own_business(head, field) && !is_id_field(field) && !forwarded_replaces_via(via, field))
			put_field(output, field);
	}
	forwarded_put_via(output, via, head);
}

/* A response that goes on has one: the time of its receipt, where its server has said none (RFC 9110, 6.6.1). */
static void put_date(struct output *output, const struct http1_head *head, const char *date)
{
	for (size_t i = 0; i < head->field_count; i++) {
		if (head->field[i].known == HTTP1_DATE && !http1_is_hop_by_hop(head, &head->field[i]))
			return;
	}
	PUT(output, "Date: ");
	put(output, date, DATE_BYTES);
	PUT(output, "\r\n");
}

int head_write_response(const struct exchange *exchange, const struct http1_head *head, const char *via, const char *date, char *to,
                        size_t size)
{
	struct output output = {.at = to, .end = to + size};

	put_end_to_end(&output, head, via);
	if (exchange->reframing == REFRAME_TO_CHUNKED ||
	    (exchange->response_framing == HTTP1_CHUNKED && exchange->reframing == REFRAME_NONE))
		PUT(&output, "Transfer-Encoding: chunked\r\n");
	else if (exchange->response_framing == HTTP1_LENGTH)
		put_content_length(&output, head->content_length);
	else if (exchange->response_framing == HTTP1_NO_BODY)
		put_announced_length(&output, exchange, head);
	if (exchange->close)
		PUT(&output, "Connection: close\r\n");
	else if (exchange->minor == 0)
		PUT(&output, "Connection: keep-alive\r\n");
	put_date(&output, head, date);
	put_id(&output, exchange->id);
	PUT(&output, "\r\n");
	return finish(&output, to);
}

int head_write_interim(const struct http1_head *head, const char *via, char *to, size_t size)
{
	struct output output = {.at = to, .end = to + size};

	put_end_to_end(&output, head, via);
	PUT(&output, "\r\n");
	return finish(&output, to);
}

int head_write_switch(const struct exchange *exchange, const struct http1_head *head, const char *via, const char *protocol,
                      char *to, size_t size)
{
	struct output output = {.at = to, .end = to + size};

	put_end_to_end(&output, head, via);
	PUT(&output, "Connection: upgrade\r\nUpgrade: ");
	put(&output, protocol, strlen(protocol));
	PUT(&output, "\r\n");
	put_id(&output, exchange->id);
	PUT(&output, "\r\n");
	return finish(&output, to);
}

int head_write_refusal(unsigned int status, const struct exchange *exchange, const char *date, char *to, size_t size)
{
	struct output output = {.at = to, .end = to + size};
	const char *reason = http1_reason(status);

	PUT(&output, "HTTP/1.1 ");
	put_number(&output, status);
	PUT(&output, " ");
	put(&output, reason, strlen(reason));
	PUT(&output, "\r\nDate: ");
	put(&output, date, strlen(date));
	PUT(&output, "\r\nContent-Type: text/plain\r\n");
	/* The number, a space, the reason, a line feed. */
	put_content_length(&output, 3 + 1 + strlen(reason) + 1);
	if (status == 503 || status == 429)
		PUT(&output, "Retry-After: 1\r\n");
	if (exchange->close)
		PUT(&output, "Connection: close\r\n");
	else if (exchange->minor == 0)
		PUT(&output, "Connection: keep-alive\r\n");
	if (exchange->id)
		put_id(&output, exchange->id);
	PUT(&output, "\r\n");
	if (exchange->method != HTTP1_HEAD) {
		put_number(&output, status);
		PUT(&output, " ");
		put(&output, reason, strlen(reason));
		PUT(&output, "\n");
	}
	return finish(&output, to);
}
