/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection from its first byte on, as proxy/client.c and proxy/exchange.c walk it; for the target
 * `stream`. */
#ifndef TAILOR_TESTS_FUZZ_WALK_H
#define TAILOR_TESTS_FUZZ_WALK_H

#include "fuzz.h"
#include "http1/http1.h"
#include "proxy/head.h"

#define REQUESTS_MAX 64

/* Without padding: compared as bytes. */
struct seen {
	char method[20];
	uint32_t target; /* hash of what the server gets */
	uint64_t body;   /* bytes, with their framing */
	uint32_t body_hash;
	uint32_t whole;
};

struct story {
	struct seen seen[REQUESTS_MAX];
	size_t count;
	int verdict;   /* the status of a refusal; 0: more bytes are wanted, or there were too many requests */
	FILE *forward; /* NULL: not wanted */
};

/* Returns a hash of the target as the server gets it: in origin-form. */
static inline uint32_t forward_head(struct story *story, const struct http1_head *head)
{
	struct trace_source trace = {.random = 1};
	char to[20000];
	const char *target;
	static const struct forwarded_rules no_rules = {0};
	int length = head_write_request(&trace, head, 0xa1, "a", &no_rules, to, sizeof(to));

	require(length > 0);
	if (story->forward)
		fwrite(to, 1, (size_t)length, story->forward);
	target = (const char *)memchr(to, ' ', (size_t)length) + 1;
	return fuzz_seed((const uint8_t *)target, strcspn(target, " "));
}

/* Takes a body's bytes off what is there. Returns how many, or -1 for a refusal. */
static inline int64_t take_body(struct seen *seen, const struct http1_head *head, struct http1_chunked *chunked,
                                const char *data, size_t length)
{
	int64_t taken = (int64_t)length;
	bool done = false;

	if (head->framing == HTTP1_CHUNKED) {
		taken = http1_chunked_take(chunked, data, length, &done);
	} else {
		if (length > head->content_length - seen->body)
			taken = (int64_t)(head->content_length - seen->body);
		done = seen->body + (uint64_t)taken == head->content_length;
	}
	for (int64_t i = 0; i < taken; i++)
		seen->body_hash = (seen->body_hash ^ (uint8_t)data[i]) * 16777619u;
	seen->body += taken > 0 ? (uint64_t)taken : 0;
	seen->whole = done;
	return taken;
}

static inline void walk(const char *data, size_t size, uint32_t seed, const struct http1_limits *limits,
                        struct story *story)
{
	size_t start = 0, end = 0;
	struct http1_search search = {0};
	struct http1_chunked chunked = {0};
	static struct http1_head head;
	struct seen *seen = NULL; /* the request whose body is being read */

	while (story->count < REQUESTS_MAX) {
		if (!seen) {
			story->verdict = http1_parse_request(data + start, end - start, limits, &search, &head);
			if (story->verdict == 1) {
				seen = &story->seen[story->count++];
				snprintf(seen->method, sizeof(seen->method), "%.*s", (int)head.method.length,
				         head.method.data);
				seen->target = forward_head(story, &head);
				start += head.head_bytes;
				search = (struct http1_search){0};
				chunked = (struct http1_chunked){0};
				story->verdict = 0;
			} else if (story->verdict < 0) {
				return;
			}
		}
		if (seen) {
			int64_t taken = take_body(seen, &head, &chunked, data + start, end - start);

			if (taken < 0) {
				story->verdict = -400;
				return;
			}
			if (story->forward)
				fwrite(data + start, 1, (size_t)taken, story->forward);
			start += (size_t)taken;
			if (seen->whole) {
				seen = NULL;
				if (!head.keep_alive)
					return;
				continue;
			}
		}
		if (end == size)
			return;
		end += fuzz_part(&seed, size - end);
	}
}

#endif /* TAILOR_TESTS_FUZZ_WALK_H */
