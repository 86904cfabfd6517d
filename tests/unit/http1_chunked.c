/* SPDX-License-Identifier: Apache-2.0 */
/* Where a chunked body ends. */
#include <errno.h>

#include "http1_message.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunked_bodies_end_where_they_end_at_every_split),
		cmocka_unit_test(size_lines_and_trailers_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
