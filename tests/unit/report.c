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

#include "report/report.h"

static struct tailor_span spans[8];
static struct tailor_loss loss = {.channel = "cpu0", .from_ns = 0, .to_ns = UINT64_MAX, .events = 12};

/* 44 ms: 3 short spans, a failover wait, a collection with a long detail, 2 short spans. */
static struct tailor_timeline example(void)
{
	static const uint64_t ends[] = {10000, 15000, 20000, 100000, 43900000, 43950000, 44000000};
	static const enum tailor_cause causes[] = {TAILOR_CAUSE_PROXY,        TAILOR_CAUSE_REQUEST_TRANSIT,
	                                           TAILOR_CAUSE_RUN_QUEUE,    TAILOR_CAUSE_FAILOVER_WAIT,
	                                           TAILOR_CAUSE_SERVER_QUEUE, TAILOR_CAUSE_RESPONSE_TRANSIT,
	                                           TAILOR_CAUSE_PROXY};
	uint64_t now = 1000000;

	memset(spans, 0, sizeof(spans));
	for (size_t i = 0; i < 7; i++) {
		spans[i] = (struct tailor_span){.start_ns = now, .end_ns = 1000000 + ends[i], .cause = causes[i]};
		now = spans[i].end_ns;
	}
	strcpy(spans[3].thread, "a");
	spans[4].tid = 4242;
	strcpy(spans[4].thread, "evil\x1b[31m-thread\nname-that-is-quite-long-xxxx");
	memset(spans[4].detail, 'w', sizeof(spans[4].detail) - 1);
	return (struct tailor_timeline){
	        .request = {.id = 0x3fa9c2d1e05b7a64,
	                    .begin_ns = 1000000,
	                    .end_ns = 45000000,
	                    .status = 200,
	                    .failover = 1,
	                    .wall_ns = UINT64_C(1769860800123456789),
	                    .target = "GET /\x1b]0;gotcha\x07\xff\xe2\x80\xae",
	                    .server = "b"},
	        .dominant = TAILOR_CAUSE_SERVER_QUEUE,
	        .dominant_ns = 43800000,
	        .join = TAILOR_JOIN_CONFIRMED,
	        .complete = 930,
	        .missing = TAILOR_MISSING_KERNEL | TAILOR_MISSING_EVENTS,
	        .spans = spans,
	        .span_count = 7,
	        .losses = &loss,
	        .loss_count = 1,
	};
}

/* Not inlined: gcc 12 then takes the text for a pointer to this function's variable. */
__attribute__((noinline)) static char *text_of(const struct tailor_timeline *timeline)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	tailor_report_text(out, timeline);
	fclose(out);
	return text;
}

/* Each byte of a line that begins a character is a column, but for East Asian ones (three bytes from U+3000 on), which are two. */
static void assert_fits(const char *text)
{
	size_t columns = 0;

	for (const char *at = text; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (byte == '\n') {
			columns = 0;
			continue;
		}
		assert_true(byte >= 0x20 && byte != 0x7f);
		columns += (byte & 0xc0) != 0x80;
		columns += byte >= 0xe3 && byte < 0xf0;
		assert_in_range(columns, 0, TAILOR_REPORT_COLUMNS);
	}
}

static void the_text_fits_100_columns_and_holds_no_control_characters(void **state)
{
	struct tailor_timeline timeline = example();
	char *text;

	(void)state;
	memset(timeline.request.target, 'q', sizeof(timeline.request.target) - 1);
	text = text_of(&timeline);
	assert_fits(text);
	free(text);
}

static void characters_that_are_two_columns_wide_count_as_two(void **state)
{
	struct tailor_timeline timeline = example();
	char buffer[64], *text;

	(void)state;
	for (size_t i = 0; i + 3 < sizeof(timeline.request.target); i += 3)
		memcpy(timeline.request.target + i, "\xe6\xbc\xa2", 3);
	for (size_t i = 0; i + 3 < sizeof(spans[4].detail); i += 3)
		memcpy(spans[4].detail + i, "\xe6\xbc\xa2", 3);
	spans[4].detail[93] = '\0';
	text = text_of(&timeline);
	assert_fits(text);
	free(text);
	assert_int_equal(tailor_report_printable(buffer, sizeof(buffer), "\xe6\xbc\xa2\xe5\xad\x97", 3), 3);
	assert_string_equal(buffer, "...");
	assert_int_equal(tailor_report_printable(buffer, sizeof(buffer), "\xe6\xbc\xa2\xe5\xad\x97", 4), 4);
}

static void the_text_says_what_a_person_must_know(void **state)
{
	static const char *const parts[] = {
	        "request 3fa9c2d1e05b7a64  2026-01-31 12:00:00.123456 UTC",
	        "GET /\\x1b]0;gotcha\\x07\\xff\\xe2\\x80\\xae",
	        "status 200 from b",
	        "failed over from a (gc)",
	        "client saw  44.0 ms",
	        "server saw  unknown",
	        "because of  waiting in the server's queue, 43.8 ms (99.5%)",
	        "joined to the request: confirmed",
	        "missing     kernel events",
	        "missing     some events",
	        "lost        12 events of cpu0",
	        "complete    930 of 1000 parts",
	        "(2 shorter spans)",
	        "evil\\x1b[31",
	};
	struct tailor_timeline timeline = example();
	char *text = text_of(&timeline);

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!strstr(text, parts[i]))
			fail_msg("\"%s\" is not in\n%s", parts[i], text);
	}
	free(text);
}

/* 100 ms: proxy, then at the server a long wait, 40 small spans on and off the CPU with one unexplained, proxy. */
static void the_servers_part_stands_indented_and_a_long_run_of_small_spans_is_folded(void **state)
{
	static struct tailor_span many[43];
	struct tailor_timeline timeline = example();
	uint64_t now = 1000000;
	char *text;

	(void)state;
	for (size_t i = 0; i < 43; i++) {
		uint64_t length = i == 0 || i == 42 ? 5000000 : i == 1 ? 50000000 : 1000000;

		many[i] = (struct tailor_span){.start_ns = now, .end_ns = now + length, .tid = i == 21 ? 0 : 77};
		many[i].cause = i == 0 || i == 42 ? TAILOR_CAUSE_PROXY
		                : i == 1          ? TAILOR_CAUSE_GC
		                : i == 21         ? TAILOR_CAUSE_UNEXPLAINED
		                : i % 2           ? TAILOR_CAUSE_ON_CPU
		                                  : TAILOR_CAUSE_PREEMPTED;
		now += length;
	}
	timeline.request.end_ns = now;
	timeline.spans = many;
	timeline.span_count = 43;
	text = text_of(&timeline);
	if (!strstr(text, "  at server b:\n") || !strstr(text, "    garbage collection, thread 77\n") ||
	    !strstr(text, "    (40 spans: preempted 20.0 ms, on CPU 19.0 ms)") || !strstr(text, "90.0 ms   90.0%"))
		fail_msg("%s", text);
	/* The proxy's last span is not the server's. */
	assert_true(strstr(text, "·█  proxy, thread 77\n") != NULL);
	free(text);
}

static void what_passed_before_a_move_was_at_the_server_that_was_left(void **state)
{
	struct tailor_timeline timeline = example();
	char *text, *before, *moved, *after;

	(void)state;
	/* At a: 10 and 5 us; moved at 100 us; at b: 43.8 ms and 50 us. */
	spans[0].cause = TAILOR_CAUSE_ON_CPU;
	spans[1].cause = TAILOR_CAUSE_PREEMPTED;
	spans[2].cause = TAILOR_CAUSE_ON_CPU;
	spans[2].end_ns = spans[3].start_ns = 1090000; /* too long to be folded */
	spans[5].cause = TAILOR_CAUSE_ON_CPU;
	spans[4].end_ns = spans[5].start_ns = 40000000;
	text = text_of(&timeline);
	before = strstr(text, "  at server a:\n");
	moved = before ? strstr(before, "  failover wait, a\n") : NULL;
	after = moved ? strstr(moved, "  at server b:\n") : NULL;
	if (!after)
		fail_msg("%s", text);
	assert_string_equal(tailor_report_server(&timeline, &spans[0]), "a");
	assert_string_equal(tailor_report_server(&timeline, &spans[4]), "b");
	free(text);
}

/* The reason is that of the attempt that answered: of the last move, where there were two. */
static void of_two_moves_the_one_that_the_reason_is_of_is_told(void **state)
{
	struct tailor_timeline timeline = example();
	char *text;

	(void)state;
	spans[5].cause = TAILOR_CAUSE_FAILOVER_WAIT;
	strcpy(spans[5].thread, "c");
	text = text_of(&timeline);
	if (!strstr(text, "failed over from c (gc)\n"))
		fail_msg("%s", text);
	free(text);
}

/* The proxy's worker is a thread, too: what is not known of it, or that it waited for a disk, was at no server. */
static void what_the_proxy_waited_for_was_not_at_the_server(void **state)
{
	static const enum tailor_cause causes[] = {TAILOR_CAUSE_BLOCKED_IO, TAILOR_CAUSE_UNEXPLAINED, TAILOR_CAUSE_MACHINE_STOPPED};
	struct tailor_timeline timeline = example();

	(void)state;
	for (size_t i = 0; i < 7; i++)
		spans[i] = (struct tailor_span){.start_ns = 1000000 + 5000000 * i, .end_ns = 6000000 + 5000000 * i, .pid = 9, .tid = 9};
	spans[6].end_ns = timeline.request.end_ns;
	spans[0].cause = TAILOR_CAUSE_PROXY;
	spans[3].cause = spans[4].cause = TAILOR_CAUSE_ON_CPU;
	spans[3].pid = spans[4].pid = spans[3].tid = 70;
	spans[4].tid = 71;
	spans[6].cause = TAILOR_CAUSE_PROXY;
	for (size_t i = 0; i < 3; i++) {
		char *text;

		spans[1].cause = spans[2].cause = spans[5].cause = causes[i];
		spans[2].tid = 10; /* two lines, which the server would be named above */
		text = text_of(&timeline);
		if (!strstr(text, "15.0 ms    10.0 ms   22.7%") || !strstr(text, "at server b:\n"))
			fail_msg("%s", text);
		free(text);
	}
}

static void a_loss_beside_the_request_is_told_as_such(void **state)
{
	struct tailor_timeline timeline = example();
	struct tailor_loss beside[] = {{.channel = "cpu0", .from_ns = 500, .to_ns = 1000000, .events = 12},
	                               {.channel = "cpu1", .from_ns = 45000000, .to_ns = UINT64_MAX, .events = 1},
	                               {.channel = "cpu2", .from_ns = 999999, .to_ns = 1000001, .events = 3}};
	char *text;

	(void)state;
	timeline.losses = beside;
	timeline.loss_count = 3;
	text = text_of(&timeline);
	if (!strstr(text, "lost        12 events of cpu0, before the request\n") || !strstr(text, "lost        1 event of cpu1, after the request\n") ||
	    !strstr(text, "lost        3 events of cpu2\n"))
		fail_msg("%s", text);
	free(text);
}

static void without_loss_there_is_no_word_of_parts(void **state)
{
	struct tailor_timeline timeline = example();
	char *text;

	(void)state;
	timeline.missing = 0;
	timeline.loss_count = 0;
	timeline.complete = 0; /* a store that is older than the number */
	text = text_of(&timeline);
	assert_null(strstr(text, "of 1000"));
	assert_non_null(strstr(text, "nothing is missing"));
	free(text);
}

static void a_timeline_that_contradicts_itself_is_printed_without_harm(void **state)
{
	struct tailor_timeline timeline = example();

	(void)state;
	timeline.request.end_ns = 0;
	spans[1].start_ns = UINT64_MAX;
	spans[2].end_ns = 0;
	timeline.request.end = 77;
	timeline.request.failover = 999;
	free(text_of(&timeline));
	timeline.span_count = 0;
	timeline.request.begin_ns = timeline.request.end_ns;
	free(text_of(&timeline));
}

static void json_is_valid_also_for_hostile_texts_and_has_all_spans(void **state)
{
	struct tailor_timeline timeline = example();
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	json_t *root, *first, *span;

	(void)state;
	tailor_report_json_begin(out);
	assert_int_equal(tailor_report_json(out, &timeline, 0), 0);
	assert_int_equal(tailor_report_json(out, &timeline, 1), 0);
	tailor_report_json_end(out);
	fclose(out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "timelines")), 2);
	first = json_array_get(json_object_get(root, "timelines"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "request")), "3fa9c2d1e05b7a64");
	assert_string_equal(json_string_value(json_object_get(first, "dominant")), "server-queue");
	assert_string_equal(json_string_value(json_object_get(first, "dominant_name")),
	                    "waiting in the server's queue");
	assert_int_equal(json_integer_value(json_object_get(first, "client_ns")), 44000000);
	assert_int_equal(json_array_size(json_object_get(first, "spans")), 7);
	span = json_array_get(json_object_get(first, "losses"), 0);
	assert_true(json_is_null(json_object_get(span, "from_ns")) && json_is_null(json_object_get(span, "to_ns"))); /* not known */
	span = json_array_get(json_object_get(first, "spans"), 4);
	assert_int_equal(json_integer_value(json_object_get(span, "offset_ns")), 100000);
	assert_int_equal(json_integer_value(json_object_get(span, "duration_ns")), 43800000);
	assert_string_equal(json_string_value(json_object_get(span, "cause")), "server-queue");
	json_decref(root);
	free(text);
}

static void printable_text_is_cut_at_whole_characters(void **state)
{
	char buffer[64];

	(void)state;
	assert_int_equal(tailor_report_printable(buffer, sizeof(buffer), "h\xc3\xa9llo", 10), 5);
	assert_string_equal(buffer, "h\xc3\xa9llo");
	assert_int_equal(tailor_report_printable(buffer, sizeof(buffer), "h\xc3\xa9llo world", 8), 8);
	assert_string_equal(buffer, "h\xc3\xa9llo...");
	assert_int_equal(tailor_report_printable(buffer, sizeof(buffer), "a\xc0\xaf", 20), 9); /* overlong */
	assert_string_equal(buffer, "a\\xc0\\xaf");
	assert_int_equal(tailor_report_printable(buffer, sizeof(buffer), "a\xd8\x9c", 20), 9); /* Arabic letter mark: turns the direction */
	assert_string_equal(buffer, "a\\xd8\\x9c");
	assert_int_equal(tailor_report_printable(buffer, 5, "abcdefgh", 20), 4);
	assert_string_equal(buffer, "a...");
	assert_string_equal(tailor_report_utf8(buffer, sizeof(buffer),
	                                       "a\xff"
	                                       "b"),
	                    "a\xef\xbf\xbd"
	                    "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_text_fits_100_columns_and_holds_no_control_characters),
	        cmocka_unit_test(characters_that_are_two_columns_wide_count_as_two),
	        cmocka_unit_test(the_text_says_what_a_person_must_know),
	        cmocka_unit_test(the_servers_part_stands_indented_and_a_long_run_of_small_spans_is_folded),
	        cmocka_unit_test(what_passed_before_a_move_was_at_the_server_that_was_left),
	        cmocka_unit_test(of_two_moves_the_one_that_the_reason_is_of_is_told),
	        cmocka_unit_test(what_the_proxy_waited_for_was_not_at_the_server),
	        cmocka_unit_test(a_loss_beside_the_request_is_told_as_such),
	        cmocka_unit_test(without_loss_there_is_no_word_of_parts),
	        cmocka_unit_test(a_timeline_that_contradicts_itself_is_printed_without_harm),
	        cmocka_unit_test(json_is_valid_also_for_hostile_texts_and_has_all_spans),
	        cmocka_unit_test(printable_text_is_cut_at_whole_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
