/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tailor/event.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "accesslog/accesslog.h"
#include "base/clock.h"

#define WALL_NS (UINT64_C(1700000000123456789)) /* 2023-11-14T22:13:20 UTC */
#define MS(n) ((n) * TAILOR_NS_PER_MS)

static char directory[] = "/tmp/tailor-accesslog-XXXXXX";
static char path[64];

static int enter(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/log", directory);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	return rmdir(directory);
}

static struct tailor_record moved_request(void)
{
	struct tailor_record record = {
	        .request = {.id = 0xab, .begin_ns = MS(1000), .end_ns = MS(1010), .status = 200, .response_bytes = 2326,
	                    .attempts = 2, .failover = TAILOR_FAILOVER_GC, .target = "GET /a?q=\"x\"", .server = "b"},
	        .client_ip = 0x7f000001,
	        .minor = 1,
	        .parsed_ns = MS(1001),
	        .attempts = 2,
	        .answered = 1,
	};

	record.attempt[1] = (struct tailor_attempt){
	        .server = 1, .send_ns = MS(1003), .response_begin_ns = MS(1007), .response_end_ns = MS(1008)};
	return record;
}

static void a_text_line_is_common_log_format_with_pairs_behind(void **state)
{
	struct tailor_record record = moved_request();
	char line[TAILOR_ACCESSLOG_LINE_BYTES];
	size_t length = tailor_accesslog_format_text(&record, WALL_NS, line, sizeof(line));

	(void)state;
	assert_string_equal(line, "127.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"GET /a?q=\\x22x\\x22 HTTP/1.1\" 200 2326 "
	                          "id=00000000000000ab server=b end=done attempts=2 failover=gc ms=10.000 head_ms=1.000 "
	                          "connect_ms=2.000 server_ms=4.000 response_ms=1.000 client_ms=2.000\n");
	assert_int_equal(length, strlen(line));
	assert_int_equal(tailor_accesslog_format_text(&record, WALL_NS, line, length), 0);
}

static void a_request_without_a_head_or_an_answer_says_so(void **state)
{
	struct tailor_record record = {
	        .request = {.id = 1, .begin_ns = MS(5), .end_ns = MS(7), .status = 408, .end = TAILOR_REQUEST_END_REFUSED},
	        .refusal = TAILOR_REFUSED_CLIENT_LATE,
	        .answered = -1};
	char line[TAILOR_ACCESSLOG_LINE_BYTES];

	(void)state;
	assert_true(tailor_accesslog_format_text(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_string_equal(line, "- - - [14/Nov/2023:22:13:20 +0000] \"-\" 408 0 id=0000000000000001 server=- end=refused "
	                          "attempts=0 failover=none ms=2.000 head_ms=2.000 connect_ms=0.000 server_ms=0.000 "
	                          "response_ms=0.000 client_ms=0.000 refused=client-late\n");
	assert_true(tailor_accesslog_format_json(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_non_null(strstr(line, "\"client\":null,\"request\":null,\"status\":408,"));
	assert_non_null(strstr(line, ",\"refused\":\"client-late\"}"));
}

/* It was moved, and the second server broke off; it is the first one that let it wait until it was refused. */
static struct tailor_record failed_request(void)
{
	struct tailor_record record = moved_request();

	record.request.status = 504;
	record.request.failover = TAILOR_FAILOVER_NONE;
	record.request.end = TAILOR_REQUEST_END_REFUSED;
	snprintf(record.request.server, sizeof(record.request.server), "a");
	record.refusal = TAILOR_REFUSED_SERVER_LATE;
	record.answered = -1;
	record.attempt[0] = (struct tailor_attempt){.send_ns = MS(1002), .end_ns = MS(1009), .end = TAILOR_ATTEMPT_END_TIMEOUT};
	record.attempt[1] = (struct tailor_attempt){
	        .server = 1, .send_ns = MS(1003), .end_ns = MS(1004), .end = TAILOR_ATTEMPT_END_CLOSED};
	return record;
}

static void a_request_at_which_a_server_failed_has_the_phases_that_it_reached(void **state)
{
	struct tailor_record record = failed_request();
	char line[TAILOR_ACCESSLOG_LINE_BYTES];

	(void)state;
	assert_int_equal(tailor_failed_attempt(&record), 0);
	assert_true(tailor_accesslog_format_text(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_non_null(strstr(line, " server=a end=refused attempts=2 failover=none ms=10.000 head_ms=1.000 connect_ms=1.000 "
	                             "server_ms=7.000 response_ms=0.000 client_ms=1.000 refused=server-late\n"));
	assert_true(tailor_accesslog_format_json(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_non_null(strstr(line, "\"phases_ms\":{\"head\":1.0,\"connect\":1.0,\"server\":7.0,\"response\":0.0,"
	                             "\"client\":1.0},\"refused\":\"server-late\"}"));
	/* It never had a connection. */
	record.attempt[0].send_ns = 0;
	assert_true(tailor_accesslog_format_text(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_non_null(strstr(line, " connect_ms=8.000 server_ms=0.000 response_ms=0.000 client_ms=1.000 "));
	/* It broke off, or what it said was no HTTP. */
	record.attempt[0].send_ns = MS(1002);
	record.attempt[0].response_begin_ns = MS(1006);
	assert_true(tailor_accesslog_format_text(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_non_null(strstr(line, " connect_ms=1.000 server_ms=4.000 response_ms=3.000 client_ms=1.000 "));
}

static void a_request_that_is_refused_for_itself_is_no_failure_of_its_server(void **state)
{
	struct tailor_record record = failed_request();

	(void)state;
	record.request.status = 413;
	record.refusal = TAILOR_REFUSED_BODY;
	assert_int_equal(tailor_failed_attempt(&record), -1);
	/* The server's own. */
	record.request.status = 502;
	record.refusal = TAILOR_REFUSED_NONE;
	assert_int_equal(tailor_failed_attempt(&record), -1);
	/* It came to no server. */
	record.request.status = 504;
	record.refusal = TAILOR_REFUSED_DEADLINE;
	record.attempts = 0;
	assert_int_equal(tailor_failed_attempt(&record), -1);
}

static void a_json_line_is_one_object(void **state)
{
	struct tailor_record record = moved_request();
	char line[TAILOR_ACCESSLOG_LINE_BYTES];
	size_t length = tailor_accesslog_format_json(&record, WALL_NS, line, sizeof(line));

	(void)state;
	assert_int_equal(line[length - 1], '\n');
	line[length - 1] = '\0';
	assert_string_equal(line,
	                    "{\"time\":\"2023-11-14T22:13:20.123456Z\",\"id\":\"00000000000000ab\",\"client\":\"127.0.0.1\","
	                    "\"request\":\"GET /a?q=\\\"x\\\"\",\"status\":200,\"bytes\":2326,\"server\":\"b\",\"end\":\"done\","
	                    "\"attempts\":2,\"failover\":\"gc\",\"ms\":10.0,\"phases_ms\":{\"head\":1.0,\"connect\":2.0,"
	                    "\"server\":4.0,\"response\":1.0,\"client\":2.0}}");
	assert_int_equal(tailor_accesslog_format_json(&record, WALL_NS, line, length - 1), 0);
	record.request.target[5] = (char)0xff; /* not UTF-8 */
	assert_true(tailor_accesslog_format_json(&record, WALL_NS, line, sizeof(line)) > 0);
	assert_non_null(strstr(line, "\"request\":null"));
}

static size_t lines_in(const char *name)
{
	FILE *file = fopen(name, "r");
	size_t lines = 0;
	int byte, last = '\n';

	assert_non_null(file);
	while ((byte = fgetc(file)) != EOF) {
		lines += byte == '\n';
		last = byte;
	}
	assert_int_equal(last, '\n');
	fclose(file);
	return lines;
}

static void a_renamed_log_is_opened_anew(void **state)
{
	struct tailor_record record = moved_request();
	struct tailor_accesslog *log;
	char old[80];

	(void)state;
	snprintf(old, sizeof(old), "%s.1", path);
	assert_int_equal(tailor_accesslog_open(path, TAILOR_ACCESSLOG_TEXT, &log), 0);
	tailor_accesslog_add(log, &record, WALL_NS);
	assert_int_equal(tailor_accesslog_flush(log), 0);
	assert_int_equal(rename(path, old), 0);
	tailor_accesslog_add(log, &record, WALL_NS);
	assert_int_equal(tailor_accesslog_flush(log), 0);
	tailor_accesslog_reopen(log);
	tailor_accesslog_add(log, &record, WALL_NS);
	tailor_accesslog_close(log);
	assert_int_equal(lines_in(old), 2);
	assert_int_equal(lines_in(path), 1);
	unlink(old);
	unlink(path);
}

static void a_line_that_its_file_cannot_end_is_lost_when_the_log_is_opened_anew(void **state)
{
	struct tailor_record record = moved_request();
	char line[TAILOR_ACCESSLOG_LINE_BYTES], old[80];
	size_t length = tailor_accesslog_format_text(&record, WALL_NS, line, sizeof(line));
	struct rlimit before, full;
	struct stat written;
	struct tailor_accesslog *log;

	(void)state;
	snprintf(old, sizeof(old), "%s.1", path);
	assert_int_equal(tailor_accesslog_open(path, TAILOR_ACCESSLOG_TEXT, &log), 0);
	/* As on a full disk: there is room for one line and a bit. */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	full = (struct rlimit){.rlim_cur = length + 10, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
	tailor_accesslog_add(log, &record, WALL_NS);
	tailor_accesslog_add(log, &record, WALL_NS);
	assert_int_equal(tailor_accesslog_flush(log), -EFBIG);
	assert_int_equal(rename(path, old), 0);
	tailor_accesslog_reopen(log);
	tailor_accesslog_add(log, &record, WALL_NS);
	assert_int_equal(tailor_accesslog_flush(log), 0);
	assert_int_equal(tailor_accesslog_lost(log), 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	tailor_accesslog_close(log);
	assert_int_equal(lines_in(path), 1);
	assert_int_equal(stat(path, &written), 0);
	assert_int_equal(written.st_size, length);
	unlink(path);
	unlink(old);
}

static void lines_that_nobody_takes_wait_in_bounded_memory_and_are_then_counted(void **state)
{
	struct tailor_record record = moved_request();
	struct tailor_accesslog *log;
	size_t added = 60000, read_lines = 0;
	char buffer[65536];
	int reader;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(tailor_accesslog_open(path, TAILOR_ACCESSLOG_TEXT, &log), -ENXIO);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(tailor_accesslog_open(path, TAILOR_ACCESSLOG_TEXT, &log), 0);
	for (size_t i = 0; i < added; i++) {
		tailor_accesslog_add(log, &record, WALL_NS);
		if (i % 100 == 0)
			(void)tailor_accesslog_flush(log);
	}
	assert_int_equal(tailor_accesslog_flush(log), -EAGAIN);
	assert_true(tailor_accesslog_lost(log) > 0);
	for (int left = 1; left;) {
		ssize_t count = read(reader, buffer, sizeof(buffer));

		for (ssize_t i = 0; i < count; i++)
			read_lines += buffer[i] == '\n';
		left = tailor_accesslog_flush(log) != 0 || count > 0;
	}
	assert_int_equal(read_lines + tailor_accesslog_lost(log), added);
	tailor_accesslog_close(log);
	close(reader);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_line_is_common_log_format_with_pairs_behind),
		cmocka_unit_test(a_request_without_a_head_or_an_answer_says_so),
		cmocka_unit_test(a_request_at_which_a_server_failed_has_the_phases_that_it_reached),
		cmocka_unit_test(a_request_that_is_refused_for_itself_is_no_failure_of_its_server),
		cmocka_unit_test(a_json_line_is_one_object),
		cmocka_unit_test(a_renamed_log_is_opened_anew),
		cmocka_unit_test(a_line_that_its_file_cannot_end_is_lost_when_the_log_is_opened_anew),
		cmocka_unit_test(lines_that_nobody_takes_wait_in_bounded_memory_and_are_then_counted),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
