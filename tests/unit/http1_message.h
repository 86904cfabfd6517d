/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and parsed heads, as the tests of http1 need them. */
#ifndef TAILOR_TESTS_UNIT_HTTP1_MESSAGE_H
#define TAILOR_TESTS_UNIT_HTTP1_MESSAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "http1/http1.h"

#define HEAD_BYTES 600 /* small, so that the tables can reach it */

/* A message whose bytes may hold NUL. */
#define MESSAGE(text) text, sizeof(text) - 1
#define HOST "Host: a\r\n"

static const struct http1_limits limits = {.head_bytes = HEAD_BYTES, .fields = 8};

/* Copies of their own, so that AddressSanitizer sees a read past the end. */
static inline char *copy_of(const char *data, size_t length)
{
	char *copy = malloc(length ? length : 1);

	assert_non_null(copy);
	memcpy(copy, data, length);
	return copy;
}

/* A whole valid request. */
static inline struct http1_head request(const char *message)
{
	struct http1_search search = {0};
	struct http1_head head;

	assert_int_equal(http1_parse_request(message, strlen(message), &limits, &search, &head), 1);
	return head;
}

/* A whole valid response to that method. */
static inline struct http1_head response(const char *message, enum http1_method method)
{
	struct http1_search search = {0};
	struct http1_head head;

	assert_int_equal(http1_parse_response(message, strlen(message), &limits, &search, method, &head), 1);
	return head;
}

#endif /* TAILOR_TESTS_UNIT_HTTP1_MESSAGE_H */
