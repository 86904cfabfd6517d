/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/forwarded.h"

#include <string.h>

#include "proxy/head.h"
#include "tests/conformance/walk.h"

/* The bytes of the body at the start of data, or -1 when it is not whole or not valid. */
static int64_t body_bytes(const struct http1_head *head, const char *data, size_t length)
{
	struct http1_chunked chunked = {0};
	bool done = false;
	int64_t taken;

	switch (head->framing) {
	case HTTP1_LENGTH: return head->content_length <= length ? (int64_t)head->content_length : -1;
	case HTTP1_CHUNKED: taken = http1_chunked_take(&chunked, data, length, &done); return done ? taken : -1;
	default: return 0;
	}
}

size_t forwarded_requests(const char *data, size_t length, char *to, size_t size)
{
	static const struct forwarded_rules no_rules = {0};
	const struct http1_limits limits = {.head_bytes = WALK_HEAD_BYTES, .fields = HTTP1_FIELDS_MAX};
	struct trace_source trace;
	struct http1_head head;
	size_t written = 0;

	trace_open(&trace, 1, 0);
	do {
		struct http1_search search = {0};
		int64_t body;
		int bytes;

		if (http1_parse_request(data, length, &limits, &search, &head) != 1)
			break;
		data += head.head_bytes;
		length -= head.head_bytes;
		body = body_bytes(&head, data, length);
		bytes = body < 0 ? -1 : head_write_request(&trace, &head, 1, "127.0.0.1:1", &no_rules, to + written, size - written);
		if (bytes < 0 || (size_t)body > size - written - (size_t)bytes)
			break;
		memcpy(to + written + bytes, data, (size_t)body);
		written += (size_t)bytes + (size_t)body;
		data += body;
		length -= (size_t)body;
	} while (head.keep_alive);
	return written;
}
