/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failover_example.h"
#include "report/report.h"

/* A collection, a stall, and an end. */
static struct tailor_failover examples[] = {
        {0},
        {.begin_ns = 2000, .end_ns = 50002000, .server = "bob", .kind = TAILOR_STOP_STALL, .noticed = TAILOR_STOP_STALL, .in_flight = 1,
         .moved = 1, .reacted_ns = 26000000, .incomplete = 1},
        {.begin_ns = 3000, .end_ns = 5003000, .server = "a", .kind = TAILOR_STOP_GONE, .noticed = TAILOR_STOP_GONE, .in_flight = 1,
         .moved = 1, .not_moved = 2, .why_not = "method", .reacted_ns = 90000},
};

static char *print(const struct tailor_failover *failovers, size_t count, int json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(tailor_report_failovers(out, failovers, count, json), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void the_table_has_a_line_for_each_and_says_what_is_an_estimate(void **state)
{
	static const char *const expected =
	        "when (UTC)               server  stop                         moved  not moved    react   length     saved\n"
	        "2026-01-31 12:00:00.123  a       gc: Allocation Failure      7 of 8  1 begun     412 us   136 ms   ~900 ms\n"
	        "at an unknown time       bob     stall                       1 of 1  -          26.0 ms  50.0 ms        ~0+\n"
	        "at an unknown time       a       gone                        1 of 3  2 method   90.0 us  5.00 ms         -\n"
	        "\n"
	        "3 failovers, 9 requests moved, 3 not; about 900 ms of waiting saved\n"
	        "12 more were only counted: too many came, or they could not be written\n"
	        "time to react: half of them within 412 us, 99% within 26.0 ms, all within 26.0 ms\n"
	        "\n"
	        "react: from the stop's begin until the last moved request's bytes were handed to the kernel; saved: an estimate,\n"
	        "from below: by how much the moved requests were answered before the stop's end, in sum\n"
	        "+: the proxy's own events were lost meanwhile; there may have been more\n";
	char *text = print(examples, 3, 0);

	(void)state;
	assert_string_equal(text, expected);
	free(text);
}

static void a_replay_that_left_after_the_stops_end_is_marked(void **state)
{
	struct tailor_failover late[] = {
	        {.end_ns = 98000, .server = "a", .kind = TAILOR_STOP_SAFEPOINT, .in_flight = 2, .moved = 1, .not_moved = 1, .reacted_ns = 67000000},
	        {.end_ns = 98000, .server = "a", .kind = TAILOR_STOP_SAFEPOINT, .in_flight = 1, .moved = 1, .reacted_ns = 98000},
	};
	char *text = print(late, 2, 0);

	(void)state;
	assert_non_null(strstr(text, "  67.0 ms* 98.0 us        ~0\n"));
	assert_non_null(strstr(text, "  98.0 us  98.0 us        ~0\n"));
	assert_non_null(strstr(text, "\n*: the last of them left after the stop's end: "));
	free(text);
	text = print(late + 1, 1, 0);
	assert_null(strchr(text, '*'));
	free(text);
}

static void the_json_has_null_where_nothing_is_known(void **state)
{
	char *text = print(examples, 3, 1);
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *list = json_object_get(root, "failovers"), *first, *gone;

	(void)state;
	assert_int_equal(json_array_size(list), 3);
	first = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(first, "kind")), "gc");
	assert_string_equal(json_string_value(json_object_get(first, "noticed_as")), "safepoint");
	assert_string_equal(json_string_value(json_object_get(first, "cause")), "Allocation Failure");
	assert_int_equal(json_integer_value(json_object_get(first, "length_ns")), 136000000);
	assert_int_equal(json_integer_value(json_object_get(first, "reacted_ns")), 412000);
	assert_int_equal(json_integer_value(json_object_get(first, "saved_estimate_ns")), 900000000);
	assert_int_equal(json_integer_value(json_object_get(first, "moved")), 7);
	assert_true(json_is_false(json_object_get(first, "incomplete")));
	assert_int_equal(json_integer_value(json_object_get(first, "omitted")), 12);
	gone = json_array_get(list, 2);
	assert_true(json_is_null(json_object_get(gone, "saved_estimate_ns")));
	assert_true(json_is_null(json_object_get(gone, "cause")));
	assert_string_equal(json_string_value(json_object_get(gone, "why_not")), "method");
	json_decref(root);
	free(text);
}

static void hostile_texts_and_huge_numbers_keep_their_columns(void **state)
{
	struct tailor_failover hostile = {.end_ns = UINT64_C(8640000000000000), .kind = (enum tailor_stop_kind)99, .in_flight = UINT32_MAX,
	                                  .moved = UINT32_MAX, .not_moved = UINT32_MAX, .wall_ns = UINT64_MAX,
	                                  .reacted_ns = UINT64_C(8640000000000000), .saved_ns = UINT64_MAX, .incomplete = 1};
	char *text, *end;
	json_t *root;

	(void)state;
	memset(hostile.server, '\x1b', sizeof(hostile.server) - 1);
	memset(hostile.cause, '\xff', sizeof(hostile.cause) - 1);
	memset(hostile.why_not, '\n', sizeof(hostile.why_not) - 1);
	text = print(&hostile, 1, 0);
	for (char *line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		*end = '\0';
		if (strlen(line) > 160)
			fail_msg("%zu columns: %s", strlen(line), line);
		for (const char *at = line; *at; at++)
			assert_true(*at >= ' ');
	}
	free(text);
	text = print(&hostile, 1, 1);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	json_decref(root);
	free(text);
}

static void of_none_the_json_is_an_empty_list(void **state)
{
	char *text = print(NULL, 0, 1);
	json_t *root = json_loads(text, 0, NULL);

	(void)state;
	assert_true(json_is_array(json_object_get(root, "failovers")));
	json_decref(root);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_table_has_a_line_for_each_and_says_what_is_an_estimate),
	        cmocka_unit_test(a_replay_that_left_after_the_stops_end_is_marked),
	        cmocka_unit_test(the_json_has_null_where_nothing_is_known),
	        cmocka_unit_test(hostile_texts_and_huge_numbers_keep_their_columns),
	        cmocka_unit_test(of_none_the_json_is_an_empty_list),
	};

	examples[0] = failover_example(1000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
