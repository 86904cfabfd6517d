/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load/load.h"

static void a_url_is_split_into_address_host_and_path(void **state)
{
	static const struct {
		const char *url, *address, *host, *path;
	} good[] = {
		{"http://127.0.0.1:8080/a?b", "127.0.0.1:8080", "127.0.0.1:8080", "/a?b"},
		{"HTTP://localhost", "127.0.0.1:80", "localhost", "/"},
		{"http://LOCALHOST:9/", "127.0.0.1:9", "LOCALHOST:9", "/"},
		{"http://[::1]/x", "[::1]:80", "[::1]", "/x"},
		{"http://[::1]:81?q", "[::1]:81", "[::1]:81", "?q"},
	};
	static const char *const bad[] = {
		"", "127.0.0.1", "https://127.0.0.1/", "http://", "http:///", "http://name/", "http://localhosts/", "http://1.2.3/",
		"http://127.0.0.1:/", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://u@127.0.0.1/", "http://::1/",
		"http://unix:/x", "http://127.0.0.1/ ", "http://127.0.0.1/\n",
		"http://127.0.0.1000000000000000000000000000000000000000000000000000000000000000000000000000000/",
	};
	char host[TAILOR_LOAD_HOST_BYTES], error[TAILOR_LOAD_ERROR_BYTES], text[TAILOR_ADDRESS_TEXT_BYTES];
	struct tailor_address address;
	const char *path;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(tailor_load_parse_url(good[i].url, &address, host, &path, error), 0);
		assert_string_equal(tailor_address_format(text, &address), good[i].address);
		assert_string_equal(host, good[i].host);
		assert_string_equal(path, good[i].path);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error[0] = '\0';
		assert_int_equal(tailor_load_parse_url(bad[i], &address, host, &path, error), -EINVAL);
		assert_true(strlen(error) > 20);
	}
}

static void a_request_is_written_whole(void **state)
{
	static const char *const headers[] = {"User-Agent: x", "A: b"};
	const struct tailor_load_common common = {
		.host = "h:1", .method = "GET", .headers = headers, .header_count = 2, .body = "hello", .body_bytes = 5};
	struct tailor_load_plan plan = {0};
	char error[TAILOR_LOAD_ERROR_BYTES];

	(void)state;
	assert_int_equal(tailor_load_plan_add(&plan, &common, NULL, "?q", NULL, error), 0);
	assert_int_equal(tailor_load_plan_add(&plan, &common, "PUT", "/p", "", error), 0);
	assert_int_equal(tailor_load_plan_add(&plan, &common, "PUT", "/p q", "", error), -EINVAL);
	assert_int_equal(tailor_load_plan_add(&plan, &common, "CONNECT", "/p", "", error), -EINVAL);
	assert_int_equal(plan.count, 2);
	assert_string_equal(plan.requests[0].bytes,
	                    "GET /?q HTTP/1.1\r\nHost: h:1\r\nUser-Agent: x\r\nA: b\r\nContent-Length: 5\r\n\r\nhello");
	assert_int_equal(plan.requests[0].length, strlen(plan.requests[0].bytes));
	assert_int_equal(plan.requests[0].method, HTTP1_GET);
	assert_string_equal(plan.requests[1].bytes,
	                    "PUT /p HTTP/1.1\r\nHost: h:1\r\nUser-Agent: x\r\nA: b\r\nContent-Length: 0\r\n\r\n");
	tailor_load_plan_free(&plan);
	assert_int_equal(plan.count, 0);
}

static int slowest_first(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return a > b ? -1 : a < b;
}

static void the_ten_slowest_of_all_parts_are_kept_in_order(void **state)
{
	struct tailor_load_result parts[3], total;
	uint64_t times[1000];

	(void)state;
	srand(5);
	assert_int_equal(tailor_load_result_init(&total), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(tailor_load_result_init(&parts[i]), 0);
	for (size_t i = 0; i < 1000; i++) {
		struct tailor_load_slow slow = {.response_ns = (uint64_t)(rand() % 2000), .status = 200};

		times[i] = slow.response_ns;
		tailor_load_result_add_slow(&parts[i % 7 < 3 ? i % 7 : 2], &slow);
	}
	for (size_t i = 0; i < 3; i++) {
		tailor_load_result_merge(&total, &parts[i]);
		tailor_load_result_free(&parts[i]);
	}
	qsort(times, 1000, sizeof(times[0]), slowest_first);
	assert_int_equal(total.slow_count, TAILOR_LOAD_SLOWEST);
	for (size_t i = 0; i < TAILOR_LOAD_SLOWEST; i++)
		assert_int_equal(total.slowest[i].response_ns, times[i]);
	tailor_load_result_free(&total);
}

static void merged_results_add_up_and_a_reset_one_is_empty(void **state)
{
	struct tailor_load_result one, other;

	(void)state;
	assert_int_equal(tailor_load_result_init(&one), 0);
	assert_int_equal(tailor_load_result_init(&other), 0);
	one.wanted = 5;
	one.good = 2;
	one.failed[TAILOR_LOAD_CUT] = 3;
	other.wanted = 2;
	other.bad = 1;
	other.failed[TAILOR_LOAD_CUT] = 1;
	other.connect_error = ECONNREFUSED;
	tailor_histogram_record(one.response, 10);
	tailor_histogram_record(other.response, 30);
	tailor_histogram_record(other.late, 7);
	tailor_load_result_merge(&one, &other);
	assert_int_equal(one.wanted, 7);
	assert_int_equal(one.good + one.bad + tailor_load_result_failed(&one), one.wanted);
	assert_int_equal(one.connect_error, ECONNREFUSED);
	assert_int_equal(tailor_histogram_count(one.response), 2);
	assert_int_equal(tailor_histogram_max(one.late), 7);
	tailor_load_result_reset(&one);
	assert_int_equal(one.wanted + one.good + one.bad + tailor_load_result_failed(&one), 0);
	assert_int_equal(tailor_histogram_count(one.response), 0);
	tailor_load_result_free(&one);
	tailor_load_result_free(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_is_split_into_address_host_and_path),
		cmocka_unit_test(a_request_is_written_whole),
		cmocka_unit_test(the_ten_slowest_of_all_parts_are_kept_in_order),
		cmocka_unit_test(merged_results_add_up_and_a_reset_one_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
