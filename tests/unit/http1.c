/* SPDX-License-Identifier: Apache-2.0 */
/* Which heads are taken, and that no split of the input changes that. */
#include <stdio.h>

#include "http1_message.h"

#define RESPONSE 1

static int parse(int kind, const char *data, size_t length, struct http1_search *search, struct http1_head *head)
{
	return kind == RESPONSE ? http1_parse_response(data, length, &limits, search, HTTP1_GET, head)
	                        : http1_parse_request(data, length, &limits, search, head);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_requests_are_taken_at_every_split),
		cmocka_unit_test(bad_requests_are_refused_alike_at_every_split),
		cmocka_unit_test(heads_past_the_limit_are_refused_and_at_the_limit_are_taken),
		cmocka_unit_test(good_responses_are_taken_at_every_split),
		cmocka_unit_test(bad_responses_are_refused_alike_at_every_split),
		cmocka_unit_test(mutated_messages_are_judged_alike_at_every_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
