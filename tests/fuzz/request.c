/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request head. Proves: the verdict does not depend on how the bytes came; what is accepted lies inside the input
 * and holds no byte that ends a line; and what the proxy then writes for the server is read the same way again: method,
 * target and framing, one Host, no hop-by-hop field; written a second time, it does not grow but by our id, which is there if it
 * came with a traceparent.
 */
#include "head.h"
#include "proxy/head.h"

static void check_head(const struct http1_head *head, const char *data, size_t size, const struct http1_limits *limits)
{
	fuzz_require_head(head, data, size, limits);
	require(head->minor <= 1 && head->framing != HTTP1_UNTIL_CLOSE);
	require(head->method.length > 0 && head->target.length > 0);
	fuzz_require_inside(head->method, data, head->head_bytes);
	fuzz_require_inside(head->target, data, head->head_bytes);
	for (size_t i = 0; i < head->field_count; i++) {
		struct http1_text value = head->field[i].value;

		require(head->field[i].name.length > 0);
		require(value.length == 0 ||
		        (!strchr(" \t", value.data[0]) && !strchr(" \t", value.data[value.length - 1])));
	}
}

static int same(struct http1_text one, struct http1_text other)
{
	return one.length == other.length && memcmp(one.data, other.data, one.length) == 0;
}

/* Servers are asked in origin-form: the authority of an absolute target is left out, an empty path is / or, of OPTIONS, *. */
static int asks_for_the_same(struct http1_text target, const struct http1_head *head)
{
	struct http1_text path = head->path;

	if (head->authority.length == 0)
		return same(target, head->target);
	if (path.length == 0 && head->method_known == HTTP1_OPTIONS)
		return target.length == 1 && target.data[0] == '*';
	if (path.length > 0 && path.data[0] == '/')
		return same(target, path);
	return target.length == path.length + 1 && target.data[0] == '/' && memcmp(target.data + 1, path.data, path.length) == 0;
}

static void check_forwarded(const struct http1_head *head)
{
	static const struct forwarded_rules no_rules = {0};
	static const struct http1_limits limits = {.head_bytes = 1 << 20, .fields = HTTP1_FIELDS_MAX};
	struct trace_source trace = {.random = 1};
	/* The target's authority may stand in for Host. */
	size_t room = head->head_bytes + HEAD_ADDED_BYTES + (head->minor ? 0 : head->target.length), hosts = 0, ids = 0;
	char *first = malloc(room), *second = malloc(room + HEAD_ADDED_BYTES);
	struct http1_search search = {0};
	struct http1_head again;
	int length;

	require(first && second);
	length = head_write_request(&trace, head, 0xa1, "127.0.0.1:9201", &no_rules, first, room);
	require(length > 0);
	/* Fields are added; a head that had as many as allowed is refused by nobody but this parser. */
	if (head->field_count <= HTTP1_FIELDS_MAX - 3) {
		require(http1_parse_request(first, (size_t)length, &limits, &search, &again) == 1);
		require(again.head_bytes == (size_t)length && again.minor == 1 && again.keep_alive);
		require(same(again.method, head->method) && asks_for_the_same(again.target, head));
		require(again.framing == head->framing && again.content_length == head->content_length);
		require(again.expect_continue == head->expect_continue && !again.upgrade);
		for (size_t i = 0; i < again.field_count; i++) {
			hosts += again.field[i].known == HTTP1_HOST;
			ids += again.field[i].name.length == 19 && strncasecmp(again.field[i].name.data, "X-Tailor-Request-Id", 19) == 0;
			require(again.field[i].known != HTTP1_CONNECTION);
			require(!http1_is_hop_by_hop(&again, &again.field[i]) ||
			        again.field[i].known == HTTP1_TRANSFER_ENCODING);
		}
		require(hosts == 1 && ids <= 1);
		require(head_write_request(&trace, &again, 0xa2, "-", &no_rules, second, room + HEAD_ADDED_BYTES) ==
		        length + (ids ? 0 : (int)strlen("X-Tailor-Request-Id: 0123456789abcdef\r\n")));
	}
	free(first);
	free(second);
}

/* With everything that may be told about the way: within its bound, and a request still. */
static void check_told(const struct http1_head *head)
{
	static const struct http1_limits wide = {.head_bytes = 1 << 20, .fields = HTTP1_FIELDS_MAX};
	static const struct forwarded_rules rules = {.via = "a-proxy", .x_forwarded = true, .forwarded = true, .upgrade = "websocket", .address = {0x20, 1, [15] = 1}};
	static struct http1_head again;
	size_t room = head->head_bytes + HEAD_ADDED_BYTES + (head->minor ? 0 : head->target.length), names = 0;
	struct trace_source trace = {.random = 1};
	struct http1_search search = {0};
	char *text = malloc(room);
	int length;

	require(text);
	length = head_write_request(&trace, head, 0xa1, "127.0.0.1:9201", &rules, text, room);
	require(length > 0);
	if (head->field_count + 8 <= HTTP1_FIELDS_MAX) {
		require(http1_parse_request(text, (size_t)length, &wide, &search, &again) == 1 && again.framing == head->framing);
		for (size_t i = 0; i < again.field_count; i++)
			names += again.field[i].name.length == 3 && strncasecmp(again.field[i].name.data, "Via", 3) == 0;
		require(names == 1);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct http1_limits limits[] = {{16384, HTTP1_FIELDS_MAX}, {96, 3}};
	const char *text = (const char *)data;
	static struct http1_head whole, parts;

	for (size_t i = 0; i < 2; i++) {
		const struct fuzz_parser parser = {.limits = &limits[i]};
		int status = fuzz_parse(&parser, text, size, UINT32_MAX, &whole);

		require(fuzz_parse(&parser, text, size, 0, &parts) == status);
		if (status == 1)
			require(parts.head_bytes == whole.head_bytes && parts.field_count == whole.field_count);
		require(fuzz_parse(&parser, text, size, fuzz_seed(data, size), &parts) == status);
		require(status == 1 || status == 0 || (status <= -400 && status >= -505));
		if (status != 1)
			continue;
		check_head(&whole, text, size, &limits[i]);
		check_forwarded(&whole);
		check_told(&whole);
	}
	return 0;
}
