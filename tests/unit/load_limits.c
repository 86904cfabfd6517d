/* SPDX-License-Identifier: Apache-2.0 */
/* What a load is judged by: limits, the kept schedule, and the JSON that a program judges by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>

#include "load/print.h"
#include "load_output.h"

#define URL "http://127.0.0.1:9/"

static int holds(const char *text, const struct tailor_load_result *total, char reason[TAILOR_LOAD_ERROR_BYTES])
{
	struct tailor_load_condition condition;

	if (tailor_load_condition_parse(text, &condition, reason) != 0)
		fail_msg("%s", reason);
	return tailor_load_condition_holds(&condition, total, reason);
}

static void limits_are_compared_with_the_total(void **state)
{
	static const struct {
		const char *text;
		int holds;
		const char *reason;
	} cases[] = {
	        {"p99.9>20ms", 1, "p99.9>20ms: p99.9 was 980 ms"},
	        {" p50 >= 490ms ", 1, NULL},
	        {"p50>600ms", 0, NULL},
	        {"p0<1ms", 0, NULL},
	        {"p0<=1ms", 1, NULL},
	        {"p100>979ms", 1, NULL},
	        {"max<1s", 1, "max<1s: max was 980 ms"},
	        {"min>=1ms", 1, NULL},
	        {"mean\t<\t491ms", 1, NULL},
	        {"service-max>490ms", 0, NULL},
	        {"service-p99>480ms", 1, "service-p99>480ms: service-p99 was 486 ms"},
	        {"bad>0", 1, "bad>0: bad was 15"},
	        {"bad>1.5%", 0, NULL},
	        {"bad>=1.5%", 1, "bad>=1.5%: bad was 1.5% (15 of 1000)"},
	        {"different>4", 0, NULL},
	        {"failed>=20", 1, NULL},
	        {"dropped>0", 0, NULL},
	        {"requests<1001", 1, NULL},
	        {"in-time<99%", 1, "in-time<99%: in-time was 9% (90 of 1000)"},
	        {"in-time<=90", 1, NULL},
	        {"wanted>=1000", 1, NULL},
	        {"good<965", 0, NULL},
	        {"rate<96.6", 1, "rate<96.6: rate was 96.5/s"},
	        {"rate < 96.5/s", 0, NULL},
	};
	char reason[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_result total;

	(void)state;
	result_fill(&total);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (holds(cases[i].text, &total, reason) != cases[i].holds)
			fail_msg("%s", cases[i].text);
		if (cases[i].reason)
			assert_string_equal(reason, cases[i].reason);
	}
	tailor_load_result_free(&total);
}

static void no_answer_is_never_fast_enough(void **state)
{
	char reason[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_result total;

	(void)state;
	result_empty(&total);
	assert_true(holds("p99>1h", &total, reason));
	assert_string_equal(reason, "p99>1h: there was no answer");
	assert_true(holds("service-min>=1h", &total, reason));
	assert_false(holds("p99<1h", &total, reason));
	assert_false(holds("max<=1h", &total, reason));
	assert_true(holds("in-time<99%", &total, reason));
	assert_false(holds("bad>0%", &total, reason));
	assert_true(holds("rate<1", &total, reason));
	tailor_load_result_free(&total);
}

static void what_is_no_limit_is_refused_with_what_to_write(void **state)
{
	static const struct {
		const char *text, *help;
	} cases[] = {
	        {"", "METRIC, one of"},
	        {"p99", "METRIC, one of"},
	        {"p99=20ms", "METRIC, one of"},
	        {">20ms", "METRIC is"},
	        {"p101>1ms", "METRIC is"},
	        {"p100.5>1ms", "METRIC is"},
	        {"p>1ms", "METRIC is"},
	        {"p9.>1ms", "METRIC is"},
	        {"p-1>1ms", "METRIC is"},
	        {"p1e1>1ms", "METRIC is"},
	        {"p nn>1ms", "METRIC is"},
	        {"service-bad>1", "METRIC is"},
	        {"service->1ms", "METRIC is"},
	        {"P99>1ms", "METRIC is"},
	        {"p99>20", "with its unit"},
	        {"p99>", "with its unit"},
	        {"p99>-1ms", "with its unit"},
	        {"p99>>1ms", "with its unit"},
	        {"p99>1%", "with its unit"},
	        {"p99>1ms 2", "with its unit"},
	        {"bad>", "a number"},
	        {"bad>1ms", "a number"},
	        {"bad>-1", "a number"},
	        {"bad>101%", "0% to 100%"},
	        {"bad>1 %x", "a number"},
	        {"bad>nan", "a number"},
	        {"rate<5%", "a second"},
	        {"rate<4 50", "a second"},
	        {"bad>0x10", "a number"},
	        {"p99>0000000000000000000000000000000000000000000000000000000000000000001ms", "with its unit"},
	        {"p0000000000000000000000000000000000000000000000000000000000000000000000001>1ms", "METRIC is"},
	};
	struct tailor_load_condition condition;
	char error[TAILOR_LOAD_ERROR_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (tailor_load_condition_parse(cases[i].text, &condition, error) != -EINVAL ||
		    !strstr(error, cases[i].help))
			fail_msg("\"%s\"", cases[i].text);
		assert_null(strchr(error, '\n'));
	}
}

/* 1000 requests of which `late` were sent after 50 ms, `own` of these because they were taken up then. */
static void fill_lateness(struct tailor_load_result *total, int late, int own)
{
	result_empty(total);
	total->wanted = total->good = 1000;
	for (int i = 0; i < 1000; i++) {
		tailor_histogram_record(total->sent, i < late ? 50 * MS : 20000);
		tailor_histogram_record(total->late, i < own ? 50 * MS : 20000);
		tailor_histogram_record(total->response, 51 * MS);
		tailor_histogram_record(total->service, MS);
	}
}

static void a_schedule_is_kept_when_all_but_a_hundredth_was_sent_in_time(void **state)
{
	struct tailor_load_options options = usual_options();
	char reason[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_result total;

	(void)state;
	fill_lateness(&total, 10, 10);
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 1);
	total.dropped = 1;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "1 of 1000 requests were dropped"));
	tailor_load_result_free(&total);
	fill_lateness(&total, 11, 0);
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "1.1% of the requests were sent more than 10.0 ms late"));
	/* Those that were not asked for in the end do not count. */
	total.wanted += 50;
	total.failed[TAILOR_LOAD_INTERRUPTED] = 50;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	tailor_load_result_free(&total);
	fill_lateness(&total, 0, 0);
	total.wanted += 50;
	total.failed[TAILOR_LOAD_INTERRUPTED] = 50;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 1);
	total.wanted += 50;
	total.failed[TAILOR_LOAD_TIMEOUT] = 50; /* while they waited for a connection: never sent */
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	tailor_load_result_free(&total);
	result_empty(&total);
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 1);
	options.arrival = TAILOR_LOAD_CLOSED;
	total.wanted = 5;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 1);
	tailor_load_result_free(&total);
}

static void lateness_is_blamed_on_who_caused_it(void **state)
{
	struct tailor_load_options options = usual_options();
	const char *path;
	char host[TAILOR_LOAD_HOST_BYTES], reason[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_result total;

	(void)state;
	assert_int_equal(tailor_load_parse_url(URL, &options.address, host, &path, reason), 0);
	fill_lateness(&total, 100, 100);
	total.cpu_share = 0.95;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "busiest thread used 95% of a CPU; use more --threads"));
	total.cpu_share = 0.1;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "did not get a CPU in time"));
	total.stalls = (struct tailor_stalls){.known = 1, .longest_ns = 300 * MS, .total_ns = 900 * MS, .episodes = 3};
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "this machine stood still 3 times, for up to 300 ms"));
	total.stalls.total_ns = 20 * MS; /* too little for a tenth of the requests */
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "did not get a CPU in time"));
	tailor_load_result_free(&total);
	fill_lateness(&total, 100, 10);
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "the server stood still at times and left no connection free, of 64"));
	tailor_histogram_reset(total.service);
	tailor_histogram_record(total.service, 2000 * MS); /* 100 a second need more than 200 connections */
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "raise --connections to 300"));
	total.failed[TAILOR_LOAD_NO_CONNECTION] = 100;
	total.connect_error = ECONNREFUSED;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_string_equal(reason, "the schedule was not kept: 127.0.0.1:9 refused connections: 100 of 1000 requests failed so; "
	                            "is a server up there, and is its backlog large enough?");
	total.connect_error = EHOSTUNREACH;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "kept: 127.0.0.1:9 could not be connected to (No route to host): 100 of"));
	tailor_load_result_free(&total);
}

static void who_refuses_connections_is_blamed_before_a_late_generator(void **state)
{
	struct tailor_load_options options = usual_options();
	const char *path;
	char host[TAILOR_LOAD_HOST_BYTES], reason[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_result total;

	(void)state;
	assert_int_equal(tailor_load_parse_url(URL, &options.address, host, &path, reason), 0);
	/* None was sent, and half of them were taken up late. */
	fill_lateness(&total, 0, 500);
	tailor_histogram_reset(total.sent);
	total.good = 0;
	total.failed[TAILOR_LOAD_NO_CONNECTION] = 1000;
	total.connect_error = ECONNREFUSED;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "kept: 127.0.0.1:9 refused connections: 1000 of 1000 requests failed so; "));
	assert_null(strstr(reason, "generator"));
	tailor_load_result_free(&total);
	/* Of the others, many were late by the generator's own doing: that is told, too. */
	fill_lateness(&total, 200, 200);
	total.wanted += 300;
	total.failed[TAILOR_LOAD_NO_CONNECTION] = 300;
	total.connect_error = ECONNREFUSED;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
	assert_non_null(strstr(reason, "kept: 127.0.0.1:9 refused connections: 300 of 1300 requests failed so; "));
	assert_non_null(strstr(reason, "; besides, 15.4% of the requests were sent more than 10.0 ms late, or not at all: the generator"));
	tailor_load_result_free(&total);
	/* A few that were refused are no broken schedule; the counts tell of them. */
	fill_lateness(&total, 0, 0);
	total.wanted += 5;
	total.failed[TAILOR_LOAD_NO_CONNECTION] = 5;
	assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 1);
	tailor_load_result_free(&total);
}

static void a_connection_that_this_machine_could_not_make_is_not_blamed_on_the_server(void **state)
{
	static const struct {
		int error;
		const char *remedy;
	} cases[] = {
	        {EADDRNOTAVAIL, "net.ipv4.ip_local_port_range"},
	        {EMFILE, "ulimit -n"},
	        {ENFILE, "fs.file-max"},
	        {ENOBUFS, "memory"},
	};
	struct tailor_load_options options = usual_options();
	char reason[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_load_result total;

	(void)state;
	fill_lateness(&total, 100, 10);
	total.failed[TAILOR_LOAD_NO_CONNECTION] = 100;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		total.connect_error = cases[i].error;
		assert_int_equal(tailor_load_schedule_kept(&options, &total, reason), 0);
		assert_non_null(strstr(reason, "kept: this machine could not make a connection ("));
		assert_non_null(strstr(reason, cases[i].remedy));
		assert_null(strstr(reason, "server"));
	}
	tailor_load_result_free(&total);
}

static json_t *print(const struct tailor_load_options *options, const struct tailor_load_result *total,
                     const struct tailor_load_causes *causes)
{
	struct capture capture;
	json_t *root;

	capture_open(&capture);
	assert_int_equal(tailor_load_print_json(capture.out, URL, options, total, causes), 0);
	root = json_loads(capture.text, 0, NULL);
	assert_non_null(root);
	capture_close(&capture);
	return root;
}

static void json_says_everything_by_name(void **state)
{
	static const char *const names[] = {
	        "url",      "rate",      "duration_s", "requests",      "good",       "bad",     "failed",  "wanted",
	        "response", "service",   "late",       "cpu_share",     "host_stall", "slowest", "arrival", "catch_up",
	        "in_time",  "different", "dropped",    "opened",        "body_bytes", "cpu_s",   "sent",    "slack_us",
	        "failures", "threads",   "histogram",  "schedule_kept", "connections"};
	struct tailor_load_causes causes = {.text = {"garbage collection, 900 ms of 980 ms"}};
	struct tailor_load_options options = usual_options();
	struct tailor_load_result total;
	json_t *root, *row, *slowest;
	json_int_t sum = 0;
	size_t i;

	(void)state;
	result_fill(&total);
	total.slowest[1].path = "/\xff"; /* not UTF-8 */
	root = print(&options, &total, &causes);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!json_object_get(root, names[i]))
			fail_msg("%s", names[i]);
	assert_string_equal(json_string_value(json_object_get(root, "arrival")), "uniform");
	assert_true(json_is_true(json_object_get(root, "schedule_kept")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "failures"), "timeout")), 20);
	assert_true(json_real_value(json_object_get(json_object_get(root, "sent"), "max_ms")) == 0.03);
	json_array_foreach(json_object_get(root, "histogram"), i, row)
	{
		assert_int_equal(json_integer_value(json_object_get(row, "to_us")),
		                 2 * json_integer_value(json_object_get(row, "from_us")));
		sum += json_integer_value(json_object_get(row, "count"));
	}
	assert_int_equal(sum, 980);
	slowest = json_object_get(root, "slowest");
	assert_string_equal(json_string_value(json_object_get(json_array_get(slowest, 0), "cause")), causes.text[0]);
	assert_true(json_is_null(json_object_get(json_array_get(slowest, 1), "cause")));
	assert_true(json_is_null(json_object_get(json_array_get(slowest, 1), "request_id")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(slowest, 1), "path")), "/?");
	json_decref(root);
	tailor_load_result_free(&total);
}

static void json_has_null_where_there_is_nothing_to_tell(void **state)
{
	struct tailor_load_options options = usual_options();
	struct tailor_load_result total;
	json_t *root;

	(void)state;
	result_empty(&total);
	options.arrival = TAILOR_LOAD_CLOSED;
	root = print(&options, &total, NULL);
	assert_true(json_is_null(json_object_get(root, "rate")));
	assert_true(json_is_null(json_object_get(root, "host_stall")));
	assert_true(json_is_null(json_object_get(json_object_get(root, "response"), "p99_ms")));
	assert_true(json_is_null(json_object_get(json_object_get(root, "late"), "p99_ms")));
	assert_true(json_is_null(json_object_get(json_object_get(root, "sent"), "max_ms")));
	assert_int_equal(json_array_size(json_object_get(root, "histogram")), 0);
	json_decref(root);
	tailor_load_result_free(&total);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(limits_are_compared_with_the_total),
	        cmocka_unit_test(no_answer_is_never_fast_enough),
	        cmocka_unit_test(what_is_no_limit_is_refused_with_what_to_write),
	        cmocka_unit_test(a_schedule_is_kept_when_all_but_a_hundredth_was_sent_in_time),
	        cmocka_unit_test(lateness_is_blamed_on_who_caused_it),
	        cmocka_unit_test(who_refuses_connections_is_blamed_before_a_late_generator),
	        cmocka_unit_test(a_connection_that_this_machine_could_not_make_is_not_blamed_on_the_server),
	        cmocka_unit_test(json_says_everything_by_name),
	        cmocka_unit_test(json_has_null_where_there_is_nothing_to_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
