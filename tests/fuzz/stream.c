/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's whole connection: head, body, next head, as the proxy walks it. Proves that there is one way to read it:
 * the same requests with the same bodies however the bytes came; and that what is forwarded, walked as the server will
 * walk it, is these requests again, no more and no fewer. A difference would be a way to smuggle a request through.
 */
#include "fuzz.h"
#include "proxy/head.h"
#include "tests/conformance/walk.h"

/* Without padding: compared as bytes. */
struct seen {
	char method[20];
	uint32_t target; /* hash of what the server gets */
	uint64_t body;   /* bytes, with their framing */
	uint32_t body_hash;
	uint32_t whole;
};

struct story {
	struct walk walk;
	struct seen seen[WALK_MESSAGES_MAX];
	size_t count;
	FILE *forward; /* NULL: not wanted */
};

/* The target is compared as the server gets it: in origin-form. */
static void see_head(void *context, const struct http1_head *head)
{
	static const struct forwarded_rules no_rules = {0};
	struct story *story = context;
	struct seen *seen = &story->seen[story->count++];
	struct trace_source trace = {.random = 1};
	char to[20000];
	const char *target;
	int length = head_write_request(&trace, head, 0xa1, "a", &no_rules, to, sizeof(to));

	require(length > 0);
	if (story->forward)
		fwrite(to, 1, (size_t)length, story->forward);
	target = (const char *)memchr(to, ' ', (size_t)length) + 1;
	snprintf(seen->method, sizeof(seen->method), "%.*s", (int)head->method.length, head->method.data);
	seen->target = fuzz_seed((const uint8_t *)target, strcspn(target, " "));
}

static void see_body(void *context, const char *data, size_t length)
{
	struct story *story = context;
	struct seen *seen = &story->seen[story->count - 1];

	if (story->forward)
		fwrite(data, 1, length, story->forward);
	for (size_t i = 0; i < length; i++)
		seen->body_hash = (seen->body_hash ^ (uint8_t)data[i]) * 16777619u;
	seen->body += length;
}

static void follow(struct story *story, const char *data, size_t size, uint32_t seed, const struct http1_limits *limits,
                   FILE *forward)
{
	size_t end = 0;

	*story = (struct story){.forward = forward};
	walk_begin(&story->walk, false, HTTP1_GET);
	story->walk.limits = *limits;
	story->walk.listener = (struct walk_listener){.head = see_head, .body = see_body, .context = story};
	while (end < size && !story->walk.ended) {
		end += fuzz_part(&seed, size - end);
		walk_feed(&story->walk, data, end);
	}
	for (size_t i = 0; i < story->count; i++)
		story->seen[i].whole = story->walk.message[i].complete;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* What is sent on has up to three fields more: Host, the framing, traceparent or our id. */
	static const struct http1_limits here = {.head_bytes = 8192, .fields = HTTP1_FIELDS_MAX - 3};
	static const struct http1_limits there = {.head_bytes = 20000, .fields = HTTP1_FIELDS_MAX};
	static struct story whole, parts, behind;
	char *forwarded = NULL;
	size_t bytes = 0;
	FILE *forward = open_memstream(&forwarded, &bytes);

	require(forward);
	follow(&whole, (const char *)data, size, UINT32_MAX, &here, forward);
	fclose(forward);
	follow(&parts, (const char *)data, size, fuzz_seed(data, size), &here, NULL);
	require(parts.count == whole.count && parts.walk.refused == whole.walk.refused);
	follow(&behind, forwarded, bytes, UINT32_MAX, &there, NULL);
	require(behind.count == whole.count && (!behind.walk.refused || whole.walk.refused));
	for (size_t i = 0; i < whole.count; i++) {
		/* Of a body that is refused in its middle, how much was passed on before depends on the parts. */
		size_t compared = whole.seen[i].whole ? sizeof(struct seen) : offsetof(struct seen, body);

		require(memcmp(&whole.seen[i], &parts.seen[i], compared) == 0);
		require(memcmp(&whole.seen[i], &behind.seen[i], compared) == 0);
	}
	free(forwarded);
	return 0;
}
