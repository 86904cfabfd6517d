/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "proxy/date.h"
#include "proxy/head.h"

/* What a server gets of a plain request between Host and traceparent. */
static const char *told(const char *client, const char *host, bool x_forwarded, bool forwarded)
{
	static char text[16384];
	const struct http1_limits limits = {.head_bytes = 8192, .fields = 16};
	struct forwarded_rules rules = {.x_forwarded = x_forwarded, .forwarded = forwarded};
	struct http1_search search = {0};
	struct tailor_address address;
	struct trace_source trace;
	struct http1_head head;
	char request[9000];
	int length;

	assert_int_equal(tailor_address_parse(client, &address), 0);
	if (address.storage.ss_family != AF_UNIX)
		tailor_address_ip(&address, rules.address);
	snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host);
	assert_int_equal(http1_parse_request(request, strlen(request), &limits, &search, &head), 1);
	trace_open(&trace, 1, 0);
	length = head_write_request(&trace, &head, 1, "", &rules, text, sizeof(text) - 1);
	assert_true(length > 0 && (size_t)length <= strlen(request) + HEAD_ADDED_BYTES);
	text[length] = '\0';
	*strstr(text, "traceparent") = '\0';
	return strstr(strstr(text, "Host"), "\r\n") + 2;
}

static void addresses_are_told_as_each_field_has_them(void **state)
{
	(void)state;
	assert_string_equal(told("192.0.2.7:1", "a", true, false),
	                    "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n");
	assert_string_equal(told("[2001:db8::7]:1", "a", true, false),
	                    "X-Forwarded-For: 2001:db8::7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n");
	/* Over IPv6 all the same it is an IPv4 client. */
	assert_string_equal(told("[::ffff:192.0.2.7]:1", "a", false, true), "Forwarded: for=192.0.2.7;host=a;proto=http\r\n");
	assert_string_equal(told("[2001:db8::7]:1", "[::1]:80", false, true),
	                    "Forwarded: for=\"[2001:db8::7]\";host=\"[::1]:80\";proto=http\r\n");
	assert_string_equal(told("unix:/x", "a", true, true),
	                    "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\nForwarded: for=unknown;host=a;proto=http\r\n");
}

/* Behind an open quote the proxy's own element would be part of a string, and the client's word the only one (RFC 7239, 4 and 8.1). */
static void a_client_cannot_hide_what_is_added_in_a_quote(void **state)
{
	static const struct {
		const char *theirs, *told;
	} cases[] = {
		{"for=\"_x, y\"", "for=\"_x, y\", for=192.0.2.7;host=a;proto=http"},
		{"for=\"a\\\"b\"", "for=\"a\\\"b\", for=192.0.2.7;host=a;proto=http"},
		{"for=203.0.113.9, for=\"", "for=192.0.2.7;host=a;proto=http"},
		{"for=\"_x\\\"", "for=192.0.2.7;host=a;proto=http"},
		{"for=\"\r\nForwarded: \"", "for=192.0.2.7;host=a;proto=http"},
		{"for=\"\r\nForwarded: for=198.51.100.1", "for=198.51.100.1, for=192.0.2.7;host=a;proto=http"},
	};
	char host[200], wanted[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(host, sizeof(host), "a\r\nForwarded: %s", cases[i].theirs);
		snprintf(wanted, sizeof(wanted), "Forwarded: %s\r\n", cases[i].told);
		assert_string_equal(told("192.0.2.7:1", host, false, true), wanted);
	}
}

static void what_is_added_keeps_to_its_bound(void **state)
{
	char host[256];

	(void)state;
	memset(host, 'a', 255);
	host[255] = '\0';
	assert_non_null(strstr(told("[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:1", host, true, true), host));
	/* All of it in quotes. */
	memcpy(host, "[::1]:", 6);
	memset(host + 6, '1', 5);
	host[11] = '\0';
	told("[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:1", host, true, true);
}

static void a_date_is_in_the_form_of_http(void **state)
{
	struct date date = {0};

	(void)state;
	assert_string_equal(date_text(&date, 784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_string_equal(date_text(&date, 784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_string_equal(date_text(&date, 784111778), "Sun, 06 Nov 1994 08:49:38 GMT");
	assert_string_equal(date_text(&date, 0), "Thu, 01 Jan 1970 00:00:00 GMT");
	assert_string_equal(date_text(&date, 951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_told_as_each_field_has_them),
		cmocka_unit_test(a_client_cannot_hide_what_is_added_in_a_quote),
		cmocka_unit_test(what_is_added_keeps_to_its_bound),
		cmocka_unit_test(a_date_is_in_the_form_of_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
