/* SPDX-License-Identifier: Apache-2.0 */
/* What a head that was taken means. */
#include <stdio.h>

#include "http1_message.h"

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
		cmocka_unit_test(a_request_is_taken_apart_without_copies),
		cmocka_unit_test(every_known_field_is_recognized_in_any_case_and_no_neighbour_of_it),
		cmocka_unit_test(methods_are_case_sensitive),
		cmocka_unit_test(connection_and_version_decide_about_keep_alive),
		cmocka_unit_test(expectations_and_upgrades_are_for_http_1_1_only),
		cmocka_unit_test(the_method_and_status_decide_whether_a_response_has_a_body),
		cmocka_unit_test(lists_are_searched_by_element),
		cmocka_unit_test(hop_by_hop_fields_are_those_of_the_rfc_and_those_that_connection_names),
		cmocka_unit_test(statuses_of_our_own_have_their_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
