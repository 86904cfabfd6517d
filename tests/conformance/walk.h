/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a connection's bytes with src/http1 as the proxy does, message by message, and says what came of them in the
 * words of the case files.
 */
#ifndef TAILOR_TESTS_CONFORMANCE_WALK_H
#define TAILOR_TESTS_CONFORMANCE_WALK_H

#include "http1/http1.h"

#define WALK_MESSAGES_MAX 64

/* As the proxy's driver has them. */
#define WALK_HEAD_BYTES 16384

/* What was read of one message. Digests, so that whole runs can be compared cheaply. */
struct walk_message {
	uint64_t start; /* of the request or status line */
	uint64_t fields; /* with all that the parser says about them */
	uint64_t lines;  /* names and values alone */
	uint64_t body; /* of the data, without chunk framing */
	uint64_t body_bytes;
	uint16_t status;
	bool keep_alive;
	bool complete;
};

/* Who wants to see what is passed on; a function that is NULL is not called. */
struct walk_listener {
	void (*head)(void *context, const struct http1_head *head);
	void (*body)(void *context, const char *data, size_t length); /* pieces, with their framing */
	void *context;
};

struct walk {
	struct walk_listener listener; /* may be set once the walk has begun, as may the limits */
	bool responses;
	enum http1_method request_method; /* of responses */
	struct http1_limits limits;
	struct http1_search search;
	struct http1_chunked chunked;
	enum http1_framing framing;
	bool in_body;
	bool ended; /* nothing more is read */
	int refused; /* the status, 0: not */
	bool closes; /* the last message said so, or its end is the connection's */
	uint64_t left;
	size_t consumed;
	size_t count;
	struct walk_message message[WALK_MESSAGES_MAX];
	char verdict[64];
};

void walk_begin(struct walk *walk, bool responses, enum http1_method request_method);

/* `data` holds all bytes since the connection's start, `length` of them; it may be another buffer at each call. */
void walk_feed(struct walk *walk, const char *data, size_t length);

/* No more bytes will come; `closed` says that the other side has closed. Completes walk->verdict. */
void walk_end(struct walk *walk, const char *data, size_t length, bool closed);

/* FNV-1a. */
uint64_t walk_digest(uint64_t digest, const void *data, size_t length);
#define WALK_DIGEST_EMPTY UINT64_C(0xcbf29ce484222325)

#endif /* TAILOR_TESTS_CONFORMANCE_WALK_H */
