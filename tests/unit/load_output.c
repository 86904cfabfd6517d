/* SPDX-License-Identifier: Apache-2.0 */
/* Interval lines and reports of a load: what is printed of given results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "load/print.h"
#include "load_output.h"

/* 2016-10-12T20:34:20.25Z */
#define WALL_NS (UINT64_C(1476304460250) * MS)
#define URL "http://127.0.0.1:9/"

static const struct tailor_load_request get = {.bytes = (char *)"GET / HTTP/1.1\r\n"};

static const struct tailor_load_plan plan = {.requests = (struct tailor_load_request *)&get, .count = 1};

/* Prints one interval with a printer of its own into capture. */
static void print_one(struct capture *capture, enum tailor_load_format format,
                      const struct tailor_load_options *options, const struct tailor_load_result *result)
{
	struct tailor_load_printer printer = {.format = format, .options = options};

	capture_open(capture);
	printer.out = capture->out;
	tailor_load_print_interval(&printer, WALL_NS, result);
	assert_int_equal(printer.change.count, tailor_histogram_count(result->response) > 0);
}

static void a_classic_line_is_what_scripts_of_slow_cooker_read(void **state)
{
	struct tailor_load_printer printer = {.format = TAILOR_LOAD_FORMAT_CLASSIC};
	struct tailor_load_options options = usual_options();
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_empty(&result);
	result.wanted = 5000;
	result.good = 4990;
	for (int i = 0; i < 4990; i++)
		tailor_histogram_record(result.response, (i < 10     ? 0
		                                          : i < 4000 ? 1
		                                          : i < 4900 ? 3
		                                          : i < 4980
		                                                  ? 4
		                                                  : 9) * MS +
		                                                 900000);
	options.plan = &plan;
	options.rate = 500;
	capture_open(&capture);
	printer.out = capture.out;
	printer.options = &options;
	for (int i = 0; i < 5; i++) /* the five before had a p99 of less than a tenth */
		printer.change.p99_ns[printer.change.count++] = 400000;
	tailor_load_print_header(&printer, URL);
	tailor_load_print_interval(&printer, WALL_NS, &result);
	assert_string_equal(capture.text,
	                    "# sending 500 GET req/s with concurrency=64 to http://127.0.0.1:9/ ...\n"
	                    "#                      good/b/f t   goal%   min [p50 p95 p99  p999]  max change\n"
	                    "2016-10-12T20:34:20Z   4990/0/0 5000  99% 10s   0 [  1   3   4    9 ]    9 +\n");
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void a_classic_interval_is_written_as_go_writes_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {{10 * 1000 * MS, "10s"},   {60 * 1000 * MS, "1m0s"},     {500 * MS, "500ms"},
	             {1500 * MS, "1.5s"},       {3600 * 1000 * MS, "1h0m0s"}, {MS + 250000, "1.25ms"},
	             {90 * 1000 * MS, "1m30s"}, {3725 * 1000 * MS, "1h2m5s"}};
	struct tailor_load_options options = usual_options();
	struct tailor_load_result result;
	char wanted[80];

	(void)state;
	result_empty(&result);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture capture;

		options.interval_ns = cases[i].ns;
		print_one(&capture, TAILOR_LOAD_FORMAT_CLASSIC, &options, &result);
		snprintf(wanted, sizeof(wanted), " %s   0 [  0   0   0    0 ]    0 \n", cases[i].text);
		assert_non_null(strstr(capture.text, wanted));
		capture_close(&capture);
	}
	tailor_load_result_free(&result);
}

static void a_table_line_tells_what_was_in_time_and_the_slowest_request(void **state)
{
	struct tailor_load_options options = usual_options();
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_fill(&result);
	result.good = result.wanted = 1000000;
	result.in_time = 999999; /* not all: never 100.0% */
	print_one(&capture, TAILOR_LOAD_FORMAT_TABLE, &options, &result);
	assert_string_equal(
	        strchr(capture.text, ' '),
	        " 1000000    15     20 1000000  99.9%  1.00ms [ 490ms   931ms   971ms   980ms]   980ms        "
	        "00000000000000ab\n");
	assert_true(capture.length <= 125);
	capture_close(&capture);
	options.catch_up = TAILOR_LOAD_CATCH_UP_NONE;
	result.dropped = 7;
	result.in_time = 1000003; /* with some that came due in the interval before */
	print_one(&capture, TAILOR_LOAD_FORMAT_TABLE, &options, &result);
	assert_non_null(strstr(capture.text, "     20       7 1000000 100.0% "));
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void a_table_line_shows_marks_and_whatever_was_dropped(void **state)
{
	struct tailor_load_options options = usual_options();
	struct tailor_load_printer printer = {.options = &options};
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_empty(&result);
	result.dropped = 3; /* though all were to be caught up with */
	capture_open(&capture);
	printer.out = capture.out;
	for (uint64_t i = 0; i < 7; i++) {
		tailor_histogram_reset(result.response);
		tailor_histogram_record(result.response, i < 6 ? 5 * MS : 60 * MS);
		tailor_load_print_interval(&printer, WALL_NS, &result);
		assert_non_null(strstr(capture.text, i < 6 ? "5.00ms dropped 3\n" : "60.0ms +^^^ dropped 3\n"));
	}
	tailor_histogram_reset(result.response); /* what has no p99 is not compared with */
	tailor_load_print_interval(&printer, WALL_NS, &result);
	assert_int_equal(printer.change.count, 7);
	tailor_histogram_record(result.response, 10000);
	tailor_load_print_interval(&printer, WALL_NS, &result);
	assert_non_null(strstr(capture.text, "10.0us ---vvv dropped 3\n"));
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void heads_stand_above_their_columns(void **state)
{
	static const char *const ends[] = {"good", "bad", "failed", "dropped", "wanted", "<1.5ms",
	                                   "min",  "p50", "p95",    "p99",     "p99.9",  "max"};
	struct tailor_load_options options = usual_options();
	struct tailor_load_printer printer = {.options = &options};
	struct tailor_load_result result;
	struct capture capture;
	const char *head, *line;

	(void)state;
	result_fill(&result);
	options.in_time_ns = MS * 3 / 2;
	options.catch_up = TAILOR_LOAD_CATCH_UP_BOUNDED;
	options.arrival = TAILOR_LOAD_CLOSED;
	capture_open(&capture);
	printer.out = capture.out;
	tailor_load_print_header(&printer, URL);
	assert_non_null(strstr(capture.text, "closed loop"));
	tailor_load_print_interval(&printer, WALL_NS, &result);
	head = strstr(capture.text, "\ntime ") + 1;
	line = strchr(head, '\n') + 1;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = (size_t)(strstr(head, ends[i]) - head) + strlen(ends[i]);

		assert_true(line[end - 1] != ' ' && strchr(" ]", line[end]));
	}
	assert_int_equal(strstr(line, " 00000000000000ab\n") - line, strstr(head, " id\n") - head);
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void times_of_no_answers_are_not_told(void **state)
{
	struct tailor_load_options options = usual_options();
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_empty(&result);
	print_one(&capture, TAILOR_LOAD_FORMAT_TABLE, &options, &result);
	assert_string_equal(strchr(capture.text, ' '),
	                    "       0     0      0       0      -       - [     -       -       -       -]       -\n");
	capture_close(&capture);
	capture_open(&capture);
	tailor_load_csv_add(capture.out, WALL_NS, &result);
	assert_string_equal(capture.text, "2016-10-12T20:34:20.250Z,0,0,0,0,0,0,,,,,,,,,,,,,,\r\n");
	capture_close(&capture);
	capture_open(&capture);
	tailor_load_print_total(capture.out, URL, &options, &result, NULL);
	assert_non_null(
	        strstr(capture.text,
	               "\nresponse time        -        -        -        -        -        -        -        -"));
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void changes_of_p99_are_marked(void **state)
{
	struct tailor_load_change change = {0};
	int magnitude, outlier;

	(void)state;
	for (uint64_t i = 0; i < 20; i++) {
		/* 10.0, 10.1 and 10.2 ms: a deviation of 0.15 ms */
		tailor_load_change_add(&change, 10 * MS + i % 3 * MS / 10, &magnitude, &outlier);
		assert_int_equal(magnitude, 0);
		assert_int_equal(outlier, 0);
	}
	tailor_load_change_add(&change, 11 * MS, &magnitude, &outlier); /* less than a tenth off */
	assert_int_equal(outlier, 0);
	tailor_load_change_add(&change, 11 * MS + 400000, &magnitude, &outlier); /* 1.3 ms off: over 8 deviations */
	assert_int_equal(outlier, 2);
	tailor_load_change_add(&change, 5 * MS, &magnitude, &outlier);
	assert_int_equal(magnitude, 0);
	assert_int_equal(outlier, -3);
	tailor_load_change_add(&change, 900 * MS, &magnitude, &outlier);
	assert_int_equal(magnitude, 1); /* under a hundred times the mean of the last five */
	assert_int_equal(outlier, 3);
	tailor_load_change_add(&change, MS, &magnitude, &outlier);
	assert_int_equal(magnitude, -2);
	assert_int_equal(outlier, -3);
	tailor_load_change_add(&change, 3600000 * MS, &magnitude, &outlier);
	assert_int_equal(magnitude, 3);
}

static void the_first_intervals_have_nothing_to_be_compared_with(void **state)
{
	struct tailor_load_change change = {0};
	int magnitude, outlier;

	(void)state;
	tailor_load_change_add(&change, 10 * MS, &magnitude, &outlier);
	assert_int_equal(magnitude, 0);
	tailor_load_change_add(&change, 100 * MS, &magnitude, &outlier);
	assert_int_equal(magnitude, 1);
	for (int i = 0; i < 3; i++)
		tailor_load_change_add(&change, 10 * MS, &magnitude, &outlier);
	assert_int_equal(outlier, 0);
	tailor_load_change_add(&change, 50 * MS, &magnitude, &outlier);
	assert_int_equal(outlier, 3); /* the sixth: four of five were equal */
}

static void progress_replaces_itself_and_never_wraps(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct winsize size = {.ws_row = 24, .ws_col = 61};
	struct tailor_load_options options = usual_options();
	struct tailor_load_printer printer = {.options = &options, .refresh = 1};
	struct tailor_load_result result;
	char text[1024], name[64];
	ssize_t length;

	(void)state;
	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 || ptsname_r(master, name, sizeof(name)) != 0)
		skip();
	slave = open(name, O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
	result_fill(&result);
	printer.out = fdopen(slave, "r+");
	tailor_load_print_progress(&printer, WALL_NS, &result);
	length = read(master, text, sizeof(text));
	assert_int_equal(length, 4 + 60);
	assert_memory_equal(text, "\r\033[K", 4);
	assert_null(memchr(text, '\n', (size_t)length));
	assert_int_equal(printer.change.count, 0);
	tailor_load_print_interval(&printer, WALL_NS, &result);
	length = read(master, text, sizeof(text));
	assert_memory_equal(text, "\r\033[K", 4);
	assert_int_equal(text[length - 1], '\n');
	tailor_load_print_interval(&printer, WALL_NS, &result);
	length = read(master, text, sizeof(text));
	assert_true(length > 0 && text[0] != '\r');
	fclose(printer.out);
	close(master);
	tailor_load_result_free(&result);
}

static void without_a_terminal_there_is_no_progress(void **state)
{
	struct tailor_load_options options = usual_options();
	struct tailor_load_printer printer = {.options = &options};
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_fill(&result);
	capture_open(&capture);
	printer.out = capture.out;
	tailor_load_print_progress(&printer, WALL_NS, &result);
	fflush(capture.out);
	assert_int_equal(capture.length, 0);
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void the_total_accounts_for_every_request_and_for_the_generator(void **state)
{
	static const char *const phrases[] = {
	        "\n1000 requests in 10.0 s (100/s asked; after 2.00 s of warm-up, not counted) to " URL "\n",
	        "965 good, 15 bad, 20 failed: 20 timed out\n",
	        "4 of the bad ones had another body",
	        "90 in time, within 100 ms: 9.000% of the 1000 that came due\n",
	        "3 dropped",
	        "12 connections opened; 5.0 MB of bodies, 500 kB a second\n",
	        "\n  512 us  ..  1.02 ms          1    0.102%    0.102%  .\n",
	        "\n  524 ms  ..   1.05 s        456   46.530%  100.000%  ########################################\n",
	        "took requests up late by p99 20.0 us, max 20.0 us\n",
	        "sent them late by p99 30.0 us, max 30.0 us",
	        "busiest thread used 3.1% of a CPU; 310 ms of CPU in all\n",
	        "may be up to 500 us late",
	        "not limited by the generator",
	        "slowest:\n     980 ms  200  /slow  request 00000000000000ab  garbage collection, 900 ms of 980 ms\n",
	        "\n     979 ms  503  /next\n",
	};
	struct tailor_load_options options = usual_options();
	struct tailor_load_causes causes = {.text = {"garbage collection, 900 ms of 980 ms"}};
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_fill(&result);
	options.warm_ns = 2 * TAILOR_NS_PER_S;
	options.slack_ns = 500 * TAILOR_NS_PER_US;
	result.dropped = 3;
	capture_open(&capture);
	tailor_load_print_total(capture.out, URL, &options, &result, &causes);
	for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++)
		if (!strstr(capture.text, phrases[i]))
			fail_msg("\"%s\" is missing in:\n%s", phrases[i], capture.text);
	capture_close(&capture);
	options.arrival = TAILOR_LOAD_CLOSED;
	result.cpu_share = 0.9;
	capture_open(&capture);
	tailor_load_print_total(capture.out, URL, &options, &result, NULL);
	assert_non_null(strstr(capture.text, "response time is service time"));
	assert_null(strstr(capture.text, "late by"));
	assert_non_null(strstr(capture.text, "\n  limited by the generator"));
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void csv_has_a_field_for_each_head_and_quotes_the_servers_text(void **state)
{
	struct tailor_load_result result;
	struct capture capture;
	size_t commas = 0, heads = 0;
	char *row;

	(void)state;
	result_fill(&result);
	strcpy(result.slowest[0].request_id, "a,\"b\"");
	capture_open(&capture);
	assert_int_equal(tailor_load_csv_begin(capture.out), 0);
	assert_int_equal(tailor_load_csv_add(capture.out, WALL_NS, &result), 0);
	row = strstr(capture.text, "\r\n") + 2;
	for (const char *at = capture.text; at < row; at++)
		heads += *at == ',';
	for (const char *at = row; *at && *at != '"'; at++)
		commas += *at == ',';
	assert_int_equal(commas, heads);
	assert_memory_equal(row, "2016-10-12T20:34:20.250Z,965,15,20,0,1000,90,1000.000,", 54);
	assert_string_equal(strstr(row, ",20.0"), ",20.000,\"a,\"\"b\"\"\"\r\n");
	capture_close(&capture);
	tailor_load_result_free(&result);
}

static void a_full_disk_is_told(void **state)
{
	struct tailor_load_options options = usual_options();
	FILE *full = fopen("/dev/full", "we");
	struct tailor_load_result result;

	(void)state;
	if (!full)
		skip();
	result_fill(&result);
	assert_int_equal(tailor_load_csv_add(full, WALL_NS, &result), -EIO);
	assert_int_equal(tailor_load_hdr_add(full, WALL_NS, WALL_NS, &result), -EIO);
	assert_int_equal(tailor_load_print_json(full, URL, &options, &result, NULL), -EIO);
	fclose(full);
	tailor_load_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_classic_line_is_what_scripts_of_slow_cooker_read),
	        cmocka_unit_test(a_classic_interval_is_written_as_go_writes_durations),
	        cmocka_unit_test(a_table_line_tells_what_was_in_time_and_the_slowest_request),
	        cmocka_unit_test(a_table_line_shows_marks_and_whatever_was_dropped),
	        cmocka_unit_test(heads_stand_above_their_columns),
	        cmocka_unit_test(times_of_no_answers_are_not_told),
	        cmocka_unit_test(changes_of_p99_are_marked),
	        cmocka_unit_test(the_first_intervals_have_nothing_to_be_compared_with),
	        cmocka_unit_test(progress_replaces_itself_and_never_wraps),
	        cmocka_unit_test(without_a_terminal_there_is_no_progress),
	        cmocka_unit_test(the_total_accounts_for_every_request_and_for_the_generator),
	        cmocka_unit_test(csv_has_a_field_for_each_head_and_quotes_the_servers_text),
	        cmocka_unit_test(a_full_disk_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
