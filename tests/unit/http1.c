/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http1/http1.h"

#define RESPONSE 1
#define HEAD_BYTES 600 /* small, so that the tables can reach it */

/* A message whose bytes may hold NUL. */
#define MESSAGE(text) text, sizeof(text) - 1
#define HOST "Host: a\r\n"

static const struct http1_limits limits = {.head_bytes = HEAD_BYTES, .fields = 8};

static int parse(int kind, const char *data, size_t length, struct http1_search *search, struct http1_head *head)
{
	return kind == RESPONSE ? http1_parse_response(data, length, &limits, search, HTTP1_GET, head)
	                        : http1_parse_request(data, length, &limits, search, head);
}

/* Copies of their own, so that AddressSanitizer sees a read past the end. */
static char *copy_of(const char *data, size_t length)
{
	char *copy = malloc(length ? length : 1);

	assert_non_null(copy);
	memcpy(copy, data, length);
	return copy;
}

static void same_text(struct http1_text one, const char *one_base, struct http1_text other, const char *other_base)
{
	assert_int_equal(one.length, other.length);
	if (one.length > 0)
		assert_int_equal(one.data - one_base, other.data - other_base);
}

static void same_head(const struct http1_head *one, const char *one_base, const struct http1_head *other, const char *other_base)
{
	same_text(one->method, one_base, other->method, other_base);
	same_text(one->target, one_base, other->target, other_base);
	same_text(one->reason, one_base, other->reason, other_base);
	assert_int_equal(one->method_known, other->method_known);
	assert_int_equal(one->status, other->status);
	assert_int_equal(one->minor, other->minor);
	assert_int_equal(one->keep_alive, other->keep_alive);
	assert_int_equal(one->expect_continue, other->expect_continue);
	assert_int_equal(one->upgrade, other->upgrade);
	assert_int_equal(one->framing, other->framing);
	assert_int_equal(one->content_length, other->content_length);
	assert_int_equal(one->head_bytes, other->head_bytes);
	assert_int_equal(one->field_count, other->field_count);
	for (size_t i = 0; i < one->field_count; i++) {
		same_text(one->field[i].name, one_base, other->field[i].name, other_base);
		same_text(one->field[i].value, one_base, other->field[i].value, other_base);
		assert_int_equal(one->field[i].known, other->field[i].known);
	}
}

/*
 * Parses every prefix, alone (as after a split there) and as one more byte of a slow sender: "more" up to some length,
 * one result from there on.
 */
static void check_every_split(int kind, const char *message, size_t length, int expected)
{
	struct http1_search slow = {0};
	struct http1_head whole, head;
	int last = 0;

	if (expected == 1) {
		struct http1_search search = {0};

		assert_int_equal(parse(kind, message, length, &search, &whole), 1);
	}
	for (size_t end = 0; end <= length; end++) {
		char *part = copy_of(message, end);
		struct http1_search search = {0};
		int result = parse(kind, part, end, &search, &head);

		if (result == 1)
			same_head(&head, part, &whole, message);
		assert_true(result == 0 || result == expected);
		assert_true(last == 0 || result == last);
		if (last == 0) {
			assert_int_equal(parse(kind, part, end, &slow, &head), result);
			if (result == 1)
				same_head(&head, part, &whole, message);
		}
		/* The rest comes in one piece. */
		if (result == 0) {
			assert_int_equal(parse(kind, message, length, &search, &head), expected);
			if (expected == 1)
				same_head(&head, message, &whole, message);
		}
		free(part);
		last = result;
	}
	assert_int_equal(last, expected);
}

struct head_case {
	const char *message;
	size_t length;
	int expected;
};

static void check_table(int kind, const struct head_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct http1_search search = {0};
		struct http1_head head;
		int result = parse(kind, cases[i].message, cases[i].length, &search, &head);

		if (result != cases[i].expected)
			fail_msg("case %zu gives %d, not %d: %.*s", i, result, cases[i].expected, (int)cases[i].length, cases[i].message);
		check_every_split(kind, cases[i].message, cases[i].length, cases[i].expected);
	}
}
#define CHECK_TABLE(kind, cases) check_table(kind, cases, sizeof(cases) / sizeof((cases)[0]))

static void good_requests_are_taken_at_every_split(void **state)
{
	static const struct head_case cases[] = {
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHo"), 1},
		{MESSAGE("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
		{MESSAGE("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.0\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.2\r\n" HOST "\r\n"), 1},
		{MESSAGE("GET /s?q={!term}a|b[1 TO%202]\"x\" HTTP/1.1\r\n" HOST "\r\n"), -400}, /* a space in it */
		{MESSAGE("GET /s?q={!term}a|b[1%20TO]\"x\"\\ HTTP/1.1\r\n" HOST "\r\n"), 1},
		{MESSAGE("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), 1},
		{MESSAGE("GET http://a:80/x HTTP/1.1\r\nHost: a:80\r\n\r\n"), 1},
		{MESSAGE("GET HTTPS://A?x HTTP/1.1\r\n" HOST "\r\n"), 1},
		{MESSAGE("M-SEARCH /x HTTP/1.1\r\n" HOST "\r\n"), 1},
		{MESSAGE("POST /x HTTP/1.1\r\n" HOST "Content-Length: 0005\r\n\r\nhello"), 1},
		{MESSAGE("POST /x HTTP/1.1\r\n" HOST "content-LENGTH:9223372036854775807\t \r\n\r\n"), 1},
		{MESSAGE("POST /x HTTP/1.1\r\n" HOST "Transfer-Encoding: \t Chunked \r\n\r\n"), 1},
		{MESSAGE("POST /x HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 3\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.1\r\nHost: [::1]:8080\r\nEmpty:\r\nX: \xe4\xf6\t\"q\" \xff\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a_b-c.%41~:\r\n\r\n"), 1},
		{MESSAGE("GET / HTTP/1.1\r\n!#$%&'*+-.^_`|~09azAZ: x\r\n" HOST "\r\n"), 1},
	};

	(void)state;
	CHECK_TABLE(0, cases);
}

static void bad_requests_are_refused_alike_at_every_split(void **state)
{
	static const struct head_case cases[] = {
		/* request line */
		{MESSAGE("\r\n\n"), -400},
		{MESSAGE("\r\n\rGET / HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("\nGET / HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE(" GET / HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET  / HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /  HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET\t/ HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1 \r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /\r\n\r\n"), -400},
		{MESSAGE("GET / \r\n\r\n"), -400},
		{MESSAGE("GET\r\n\r\n"), -400},
		{MESSAGE("G(T / HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("G\0T / HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /\x7f HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /#x HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET /\r HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET x HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET * HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / http/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/1.10\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/11.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/1,1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/1.x\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/x.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTPS/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET / HTTP/2.0\r\n" HOST "\r\n"), -505},
		{MESSAGE("GET / HTTP/0.9\r\n" HOST "\r\n"), -505},
		{MESSAGE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), -505},
		{MESSAGE("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"), -501},
		/* line ends */
		{MESSAGE("GET / HTTP/1.1\nHost: a\n\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\r\n\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\rHost: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), -400},
		/* field lines */
		{MESSAGE("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: a\r\n \r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X\t: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X(y): a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X\xe4: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X\0: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: 12345678\x7f" "9abcdefgh\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "X: 123456\v7890123456\r\n\r\n"), -400},
		/* Host */
		{MESSAGE("GET / HTTP/1.1\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: :80\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: ::1\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: []\r\n\r\n"), -400},
		{MESSAGE("GET / HTTP/1.1\r\nHost: a%4\r\n\r\n"), -400},
		{MESSAGE("GET http://b/ HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET http://a:80/ HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n"), -400},
		{MESSAGE("GET http://u@a/ HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET http:/// HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET http:// HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n"), -400},
		{MESSAGE("GET http://a/ HTTP/1.1\r\n\r\n"), -400},
		/* lengths */
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551621\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, gzip\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: , chunked\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked,\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;a=b\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked x\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), -501},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip;q=1\r\nTransfer-Encoding: chunked\r\n\r\n"), -501},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"), -400},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Expect: 200-ok\r\n\r\n"), -417},
		{MESSAGE("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue, x\r\n\r\n"), -417},
		/* one field more than the limit */
		{MESSAGE("GET / HTTP/1.1\r\n" HOST "A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nH: 8\r\n\r\n"), -431},
	};

	(void)state;
	CHECK_TABLE(0, cases);
}

static void heads_past_the_limit_are_refused_and_at_the_limit_are_taken(void **state)
{
	char message[2 * HEAD_BYTES];
	struct http1_search search = {0};
	struct http1_head head;
	int start;

	(void)state;
	memset(message, 'x', sizeof(message));
	memcpy(message, "GET /", 5);
	check_every_split(0, message, sizeof(message), -414);
	start = snprintf(message, sizeof(message), "GET / HTTP/1.1\r\nHost: a\r\nX: ");
	message[start] = 'x';
	check_every_split(0, message, sizeof(message), -431);
	memcpy(message + HEAD_BYTES - 4, "\r\n\r\n", 4);
	check_every_split(0, message, sizeof(message), 1);
	assert_int_equal(http1_parse_request(message, HEAD_BYTES, &limits, &search, &head), 1);
	assert_int_equal(head.head_bytes, HEAD_BYTES);
	memcpy(message + HEAD_BYTES - 4, "x\r\n\r\n", 5);
	check_every_split(0, message, sizeof(message), -431);
	memset(message, 'x', sizeof(message));
	memcpy(message, "HTTP/1.1 200 ", 13);
	check_every_split(RESPONSE, message, sizeof(message), -502);
}

static void good_responses_are_taken_at_every_split(void **state)
{
	static const struct head_case cases[] = {
		{MESSAGE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 1},
		{MESSAGE("HTTP/1.1 200 \r\n\r\n"), 1},
		{MESSAGE("HTTP/1.1 200\r\n\r\n"), 1},
		{MESSAGE("HTTP/1.0 404 Not \xe4 found\t\r\nServer: x\r\n\r\n"), 1},
		{MESSAGE("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), 1},
		{MESSAGE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 1},
	};

	(void)state;
	CHECK_TABLE(RESPONSE, cases);
}

static void bad_responses_are_refused_alike_at_every_split(void **state)
{
	static const struct head_case cases[] = {
		{MESSAGE("\r\nHTTP/1.1 200 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\n\n"), -502},
		{MESSAGE("HTTP/1.1  200 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 20 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 2000 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 099 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 600 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 2x0 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/2.0 200 OK\r\n\r\n"), -502},
		{MESSAGE("ICY 200 OK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 O\0K\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 O\rK\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nX : a\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), -502},
		{MESSAGE("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nH: 8\r\nI: 9\r\n\r\n"), -502},
	};

	(void)state;
	CHECK_TABLE(RESPONSE, cases);
}

static struct http1_head request(const char *message)
{
	struct http1_search search = {0};
	struct http1_head head;

	assert_int_equal(http1_parse_request(message, strlen(message), &limits, &search, &head), 1);
	return head;
}

static struct http1_head response(const char *message, enum http1_method method)
{
	struct http1_search search = {0};
	struct http1_head head;

	assert_int_equal(http1_parse_response(message, strlen(message), &limits, &search, method, &head), 1);
	return head;
}

static void assert_text(struct http1_text text, const char *expected)
{
	assert_int_equal(text.length, strlen(expected));
	assert_memory_equal(text.data, expected, text.length);
}

static void a_request_is_taken_apart_without_copies(void **state)
{
	static const char message[] = "\r\nPOST /s?q=1 HTTP/1.1\r\nHOST: a:1\r\nContent-Length: \t12 \r\n"
				      "TraceParent: 00-x\r\nX-Empty: \r\nx-request-id:7\r\n\r\nbody";
	struct http1_head head = request(message);

	(void)state;
	assert_text(head.method, "POST");
	assert_int_equal(head.method_known, HTTP1_POST);
	assert_text(head.target, "/s?q=1");
	assert_int_equal(head.minor, 1);
	assert_true(head.keep_alive);
	assert_int_equal(head.framing, HTTP1_LENGTH);
	assert_int_equal(head.content_length, 12);
	assert_int_equal(head.head_bytes, strlen(message) - 4);
	assert_int_equal(head.field_count, 5);
	assert_text(head.field[0].name, "HOST");
	assert_text(head.field[0].value, "a:1");
	assert_int_equal(head.field[0].known, HTTP1_HOST);
	assert_text(head.field[1].value, "12");
	assert_int_equal(head.field[2].known, HTTP1_TRACEPARENT);
	assert_int_equal(head.field[3].known, HTTP1_OTHER);
	assert_text(head.field[3].value, "");
	assert_int_equal(head.field[4].known, HTTP1_X_REQUEST_ID);
	assert_true(head.target.data > message && head.target.data < message + sizeof(message));
}

static void every_known_field_is_recognized_in_any_case_and_no_neighbour_of_it(void **state)
{
	static const struct {
		const char *name;
		enum http1_known known;
	} cases[] = {
		{"Connection", HTTP1_CONNECTION},
		{"Transfer-Encodinh", HTTP1_OTHER},
		{"Host", HTTP1_HOST},
		{"Upgrade", HTTP1_UPGRADE},
		{"Keep-Alive", HTTP1_KEEP_ALIVE},
		{"Proxy-Connection", HTTP1_PROXY_CONNECTION},
		{"TE", HTTP1_TE},
		{"Trailer", HTTP1_TRAILER},
		{"Traceparent", HTTP1_TRACEPARENT},
		{"Tracestate", HTTP1_TRACESTATE},
		{"X-Request-Id", HTTP1_X_REQUEST_ID},
		{"Date", HTTP1_DATE},
		{"Server", HTTP1_SERVER},
		{"HTTP2-Settings", HTTP1_HTTP2_SETTINGS},
		{"Content-Lengti", HTTP1_OTHER},
		{"Tf", HTTP1_OTHER},
		{"Hosu", HTTP1_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char message[200];

		for (int variant = 0; variant < 3; variant++) {
			char name[32] = "";

			for (size_t j = 0; cases[i].name[j]; j++) {
				char byte = cases[i].name[j];

				if (byte >= 'A' && byte <= 'Z' && variant == 1)
					byte |= 0x20;
				if (byte >= 'a' && byte <= 'z' && variant == 2)
					byte &= ~0x20;
				name[j] = byte;
			}
			snprintf(message, sizeof(message), "HTTP/1.1 200 OK\r\n%s: x\r\n\r\n", name);
			assert_int_equal(response(message, HTTP1_GET).field[0].known, cases[i].known);
		}
	}
}

static void methods_are_case_sensitive(void **state)
{
	static const struct {
		const char *method;
		enum http1_method known;
	} cases[] = {{"GET", HTTP1_GET},         {"HEAD", HTTP1_HEAD},       {"POST", HTTP1_POST},
	             {"PUT", HTTP1_PUT},         {"DELETE", HTTP1_DELETE},   {"OPTIONS", HTTP1_OPTIONS},
	             {"PATCH", HTTP1_PATCH},     {"TRACE", HTTP1_TRACE},     {"get", HTTP1_METHOD_OTHER},
	             {"GETS", HTTP1_METHOD_OTHER}, {"SEARCH", HTTP1_METHOD_OTHER}};
	char message[100];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(message, sizeof(message), "%s / HTTP/1.1\r\nHost: a\r\n\r\n", cases[i].method);
		assert_int_equal(request(message).method_known, cases[i].known);
	}
}

static void connection_and_version_decide_about_keep_alive(void **state)
{
	(void)state;
	assert_true(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").keep_alive);
	assert_false(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").keep_alive);
	assert_false(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x ,\tClose\r\n\r\n").keep_alive);
	assert_false(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n").keep_alive);
	assert_true(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n").keep_alive);
	assert_false(request("GET / HTTP/1.0\r\n\r\n").keep_alive);
	assert_true(request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
	assert_false(request("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n").keep_alive);
	assert_true(response("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP1_GET).keep_alive);
	assert_false(response("HTTP/1.1 200 OK\r\n\r\n", HTTP1_GET).keep_alive);
	assert_false(response("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP1_GET).keep_alive);
}

static void expectations_and_upgrades_are_for_http_1_1_only(void **state)
{
	(void)state;
	assert_true(request("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n").expect_continue);
	assert_false(request("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expect_continue);
	assert_true(request("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n").upgrade);
	assert_false(request("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n").upgrade);
	assert_false(request("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\r\n").upgrade);
	assert_false(request("GET / HTTP/1.0\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n").upgrade);
}

static void the_method_and_status_decide_whether_a_response_has_a_body(void **state)
{
	static const struct {
		const char *message;
		enum http1_method method;
		enum http1_framing framing;
		uint64_t length;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", HTTP1_GET, HTTP1_LENGTH, 7},
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", HTTP1_HEAD, HTTP1_NO_BODY, 0},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_POST, HTTP1_CHUNKED, 0},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP1_HEAD, HTTP1_NO_BODY, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", HTTP1_GET, HTTP1_UNTIL_CLOSE, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", HTTP1_CONNECT, HTTP1_NO_BODY, 0},
		{"HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\n", HTTP1_CONNECT, HTTP1_LENGTH, 3},
		{"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n", HTTP1_GET, HTTP1_NO_BODY, 0},
		{"HTTP/1.1 304 No\r\nContent-Length: 3\r\n\r\n", HTTP1_GET, HTTP1_NO_BODY, 0},
		{"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", HTTP1_GET, HTTP1_NO_BODY, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", HTTP1_GET, HTTP1_LENGTH, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http1_head head = response(cases[i].message, cases[i].method);

		assert_int_equal(head.framing, cases[i].framing);
		assert_int_equal(head.content_length, cases[i].length);
	}
	assert_int_equal(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").framing, HTTP1_NO_BODY);
}

/* Feeds the body in parts that end at the given points, and returns the total or -EPROTO. */
static int64_t take_in_parts(const char *body, size_t length, size_t first, size_t step, bool *ret_done)
{
	struct http1_chunked chunked = {0};
	int64_t total = 0;
	size_t at = 0, end = first;

	*ret_done = false;
	for (;;) {
		char *part = copy_of(body + at, end - at);
		int64_t taken = http1_chunked_take(&chunked, part, end - at, ret_done);

		free(part);
		if (taken < 0)
			return taken;
		total += taken;
		if (*ret_done || end == length)
			return total;
		assert_int_equal(taken, end - at);
		at = end;
		end = step && length - end > step ? end + step : length;
	}
}

static void chunked_bodies_end_where_they_end_at_every_split(void **state)
{
	static const struct {
		const char *body;
		size_t length;
		int64_t taken; /* of the body, or -EPROTO */
		bool done;
	} cases[] = {
		{MESSAGE("5\r\nhello\r\n0\r\n\r\n"), 15, true},
		{MESSAGE("5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK"), 15, true},
		{MESSAGE("0\r\n\r\n"), 5, true},
		{MESSAGE("000\r\n\r\n"), 7, true},
		{MESSAGE("00a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"), 37, true},
		{MESSAGE("1;a\r\nx\r\n1;a=b\r\nx\r\n1 ; a = \"q;\\\"\r\n"), -EPROTO, false},
		{MESSAGE("1;a\r\nx\r\n1;a=b;c\r\nx\r\n1 ;\ta = \"q;\\\" \" ; d=e\r\nx\r\n0;z\r\n\r\n"), 53, true},
		{MESSAGE("0\r\nTrailed: x\r\nOther:\r\n\r\n"), 25, true},
		{MESSAGE("5\r\nhel"), 6, false},
		{MESSAGE("7fffffffffffffff\r\nx"), 19, false},
		{MESSAGE("8000000000000000\r\nx"), -EPROTO, false},
		{MESSAGE("10000000000000005\r\nhello\r\n0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("\r\n5\r\nhello\r\n0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("g\r\n"), -EPROTO, false},
		{MESSAGE("-5\r\nhello"), -EPROTO, false},
		{MESSAGE("+5\r\nhello"), -EPROTO, false},
		{MESSAGE("0x5\r\nhello"), -EPROTO, false},
		{MESSAGE(" 5\r\nhello"), -EPROTO, false},
		{MESSAGE("5 \r\nhello"), -EPROTO, false},
		{MESSAGE("5\nhello\r\n0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("5\r\nhello\n0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("5\r\nhello0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("5\r\nhello!\r\n0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("5\r\nhello\rX0\r\n\r\n"), -EPROTO, false},
		{MESSAGE("5\rX"), -EPROTO, false},
		{MESSAGE("5\r\nhello\r\n\r\n"), -EPROTO, false},
		{MESSAGE("5;\r\nhello"), -EPROTO, false},
		{MESSAGE("5;a=\r\nhello"), -EPROTO, false},
		{MESSAGE("5;a \r\nhello"), -EPROTO, false},
		{MESSAGE("5;a=\"b\"c\r\nhello"), -EPROTO, false},
		{MESSAGE("5;a=\"b\r\nhello"), -EPROTO, false},
		{MESSAGE("5;a\nb\r\nhello"), -EPROTO, false},
		{MESSAGE("5;a=\"\n\"\r\nhello"), -EPROTO, false},
		{MESSAGE("5;a=b\0\r\nhello"), -EPROTO, false},
		{MESSAGE("0\r\n\n"), -EPROTO, false},
		{MESSAGE("0\r\n\rX"), -EPROTO, false},
		{MESSAGE("0\r\nX: y\n\r\n"), -EPROTO, false},
		{MESSAGE("0\r\nX : y\r\n\r\n"), -EPROTO, false},
		{MESSAGE("0\r\nX\r\n\r\n"), -EPROTO, false},
		{MESSAGE("0\r\n: y\r\n\r\n"), -EPROTO, false},
		{MESSAGE("0\r\nX: y\r\n z\r\n\r\n"), -EPROTO, false},
		{MESSAGE("0\r\nX: y\x01\r\n\r\n"), -EPROTO, false},
		{MESSAGE("0\r\nX: y\rz\r\n\r\n"), -EPROTO, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t split = 0; split <= cases[i].length; split++) {
			for (size_t step = 0; step <= 2; step++) {
				bool done;
				int64_t taken = take_in_parts(cases[i].body, cases[i].length, split, step, &done);

				if (taken != cases[i].taken || done != cases[i].done)
					fail_msg("case %zu split at %zu gives %lld, done %d", i, split, (long long)taken, done);
			}
		}
	}
}

static void size_lines_and_trailers_are_limited(void **state)
{
	size_t length = 20000;
	char *body = malloc(length);
	bool done;

	(void)state;
	assert_non_null(body);
	memset(body, '0', length);
	assert_int_equal(take_in_parts(body, length, length, 0, &done), -EPROTO);
	memcpy(body + 4094, "\r\n\r\n", 4);
	assert_int_equal(take_in_parts(body, length, length, 0, &done), 4098);
	assert_true(done);
	memset(body, '0', length);
	memcpy(body + 4095, "\r\n\r\n", 4);
	assert_int_equal(take_in_parts(body, length, length, 0, &done), -EPROTO);
	memset(body, 'x', length);
	body[1] = ';';
	body[0] = '5';
	assert_int_equal(take_in_parts(body, length, length, 0, &done), -EPROTO);
	/* many short trailers */
	memcpy(body, "0\r\n", 3);
	for (size_t at = 3; at + 5 <= length; at += 5)
		memcpy(body + at, "a:b\r\n", 5);
	assert_int_equal(take_in_parts(body, length, length, 7, &done), -EPROTO);
	memcpy(body + 3 + 5 * 1600, "\r\n", 2);
	assert_int_equal(take_in_parts(body, length, length, 7, &done), 3 + 5 * 1600 + 2);
	assert_true(done);
	free(body);
}

static void lists_are_searched_by_element(void **state)
{
	static const struct {
		const char *list;
		bool has;
	} cases[] = {{"close", true},     {"Close", true},      {"x, close", true}, {"x,close ,y", true}, {"closed", false},
	             {"x close", false}, {"", false},          {",,\tCLOSE,", true}, {"clos", false},     {"close;x", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(http1_list_has((struct http1_text){cases[i].list, strlen(cases[i].list)}, "close"), cases[i].has);
}

static void hop_by_hop_fields_are_those_of_the_rfc_and_those_that_connection_names(void **state)
{
	static const bool expected[] = {false, true, true, true, false, false, true, false};
	struct http1_head head = request("GET / HTTP/1.1\r\nHost: a\r\nConnection: x-a, content-length, host\r\nTE: trailers\r\n"
					 "X-A: 1\r\nX-B: 2\r\nContent-Length: 0\r\nKeep-Alive: 5\r\nTrailer: X\r\n\r\n");

	(void)state;
	assert_int_equal(head.field_count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < head.field_count; i++)
		assert_int_equal(http1_is_hop_by_hop(&head, &head.field[i]), expected[i]);
}

/* Bytes of valid messages, changed at random: whatever comes out must come out at every split. */
static void mutated_messages_are_judged_alike_at_every_split(void **state)
{
	static const char seed_message[] = "POST /s?q=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
	static const char bytes[] = "\r\n \t:,;\0aZ0\x7f\xff\"/*";
	uint64_t random = 88172645463325252u;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char message[sizeof(seed_message) - 1];
		struct http1_search search = {0};
		struct http1_head head;

		memcpy(message, seed_message, sizeof(message));
		for (int change = 0; change < 1 + round % 3; change++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			message[random % sizeof(message)] = bytes[(random >> 32) % (sizeof(bytes) - 1)];
		}
		check_every_split(0, message, sizeof(message), http1_parse_request(message, sizeof(message), &limits, &search, &head));
	}
}

static void statuses_of_our_own_have_their_reasons(void **state)
{
	(void)state;
	assert_string_equal(http1_reason(503), "Service Unavailable");
	assert_string_equal(http1_reason(505), "HTTP Version Not Supported");
	assert_string_equal(http1_reason(999), "Error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests_are_taken_at_every_split),
		cmocka_unit_test(bad_requests_are_refused_alike_at_every_split),
		cmocka_unit_test(heads_past_the_limit_are_refused_and_at_the_limit_are_taken),
		cmocka_unit_test(good_responses_are_taken_at_every_split),
		cmocka_unit_test(bad_responses_are_refused_alike_at_every_split),
		cmocka_unit_test(a_request_is_taken_apart_without_copies),
		cmocka_unit_test(every_known_field_is_recognized_in_any_case_and_no_neighbour_of_it),
		cmocka_unit_test(methods_are_case_sensitive),
		cmocka_unit_test(connection_and_version_decide_about_keep_alive),
		cmocka_unit_test(expectations_and_upgrades_are_for_http_1_1_only),
		cmocka_unit_test(the_method_and_status_decide_whether_a_response_has_a_body),
		cmocka_unit_test(chunked_bodies_end_where_they_end_at_every_split),
		cmocka_unit_test(size_lines_and_trailers_are_limited),
		cmocka_unit_test(lists_are_searched_by_element),
		cmocka_unit_test(hop_by_hop_fields_are_those_of_the_rfc_and_those_that_connection_names),
		cmocka_unit_test(mutated_messages_are_judged_alike_at_every_split),
		cmocka_unit_test(statuses_of_our_own_have_their_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
