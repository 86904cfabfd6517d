/* SPDX-License-Identifier: Apache-2.0 */
/* Causes of a load's slowest requests, from a store that the store's own writer wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <tailor/store.h>
#include <unistd.h>

#include "cli/load_timelines.h"
#include "load_output.h"

static char directory[64];

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/tailor-load-timelines-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;

	(void)state;
	while (stream && (entry = readdir(stream)) != NULL)
		unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
	return rmdir(directory);
}

static void append(struct tailor_store_writer *writer, uint64_t id, enum tailor_cause cause, uint64_t dominant_ns)
{
	struct tailor_span spans[2] = {
	        {.start_ns = 1000, .end_ns = 1000 + dominant_ns, .cause = cause},
	        {.start_ns = 1000 + dominant_ns, .end_ns = 1000 + dominant_ns + MS, .cause = TAILOR_CAUSE_ON_CPU},
	};
	struct tailor_timeline timeline = {
	        .request = {.id = id,
	                    .begin_ns = 1000,
	                    .end_ns = spans[1].end_ns,
	                    .status = 200,
	                    .target = "GET /",
	                    .server = "a"},
	        .dominant = cause,
	        .dominant_ns = dominant_ns,
	        .spans = spans,
	        .span_count = 2,
	};

	assert_int_equal(tailor_store_append(writer, &timeline), 0);
}

/* Requests with these ids, the first one slowest. */
static void fill_slowest(struct tailor_load_result *total, const char *const ids[], size_t count)
{
	memset(total, 0, sizeof(*total));
	for (size_t i = 0; i < count; i++) {
		total->slowest[i].response_ns = (200 - i) * MS;
		total->slowest[i].path = "/";
		strcpy(total->slowest[i].request_id, ids[i]);
	}
	total->slow_count = count;
}

static void the_dominant_cause_of_each_is_found_among_many(void **state)
{
	static const char *const ids[] = {"00000000000003e7", "0000000000000005", "FEDCBA9876543210"};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_store_writer *writer;
	struct tailor_load_result total;
	struct tailor_load_causes causes;
	uint64_t before_ns;
	size_t found;

	(void)state;
	fill_slowest(&total, ids, 3);
	assert_int_equal(tailor_store_writer_open(directory, 64 << 20, &writer), 0);
	for (uint64_t id = 0; id < 2000; id++)
		append(writer, id, id % 2 ? TAILOR_CAUSE_GC : TAILOR_CAUSE_RUN_QUEUE, (id % 2 ? 117 : 50) * MS);
	append(writer, 0xfedcba9876543210, TAILOR_CAUSE_UNEXPLAINED, 9 * MS);
	tailor_store_writer_close(writer);
	before_ns = tailor_clock_ns();
	assert_int_equal(tailor_load_timelines_find(directory, &total, &causes, &found, error), 0);
	assert_true(tailor_clock_ns() - before_ns < TAILOR_LOAD_TIMELINES_WAIT_MS * MS); /* nothing was missing */
	assert_int_equal(found, 3);
	assert_string_equal(causes.text[0], "garbage collection, 117 ms of 118 ms");
	assert_string_equal(causes.text[1], "garbage collection, 117 ms of 118 ms");
	assert_string_equal(causes.text[2], "unexplained, 9.00 ms of 10.0 ms");
	assert_string_equal(causes.text[3], "");
}

static void *append_later(void *writer)
{
	usleep(300000);
	append(writer, 7, TAILOR_CAUSE_RESPONSE_BUFFERED, 40 * MS);
	return NULL;
}

static void a_timeline_that_comes_a_moment_later_is_waited_for(void **state)
{
	static const char *const ids[] = {"0000000000000007"};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_store_writer *writer;
	struct tailor_load_result total;
	struct tailor_load_causes causes;
	pthread_t thread;
	size_t found;

	(void)state;
	fill_slowest(&total, ids, 1);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 1, TAILOR_CAUSE_GC, MS);
	assert_int_equal(pthread_create(&thread, NULL, append_later, writer), 0);
	assert_int_equal(tailor_load_timelines_find(directory, &total, &causes, &found, error), 0);
	pthread_join(thread, NULL);
	tailor_store_writer_close(writer);
	assert_int_equal(found, 1);
	assert_string_equal(causes.text[0], "response buffered by TCP, 40.0 ms of 41.0 ms");
}

static void what_is_missing_is_given_up_after_two_seconds(void **state)
{
	static const char *const ids[] = {"00000000000000aa", "0000000000000001"};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_store_writer *writer;
	struct tailor_load_result total;
	struct tailor_load_causes causes;
	uint64_t took_ns = tailor_clock_ns();
	size_t found;

	(void)state;
	fill_slowest(&total, ids, 2);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 1, TAILOR_CAUSE_GC, 99 * MS);
	tailor_store_writer_close(writer);
	assert_int_equal(tailor_load_timelines_find(directory, &total, &causes, &found, error), 0);
	took_ns = tailor_clock_ns() - took_ns;
	assert_true(took_ns >= TAILOR_LOAD_TIMELINES_WAIT_MS * MS && took_ns < 2 * TAILOR_LOAD_TIMELINES_WAIT_MS * MS);
	assert_int_equal(found, 1);
	assert_string_equal(causes.text[0], "");
	assert_string_equal(causes.text[1], "garbage collection, 99.0 ms of 100 ms");
}

static void ids_of_others_are_not_looked_for(void **state)
{
	static const char *const ids[] = {
	        "", "7", "000000000000000g", "0x00000000000007", "00000000000000071", " 000000000000007"};
	char error[TAILOR_LOAD_ERROR_BYTES];
	struct tailor_store_writer *writer;
	struct tailor_load_result total;
	struct tailor_load_causes causes;
	uint64_t before_ns = tailor_clock_ns();
	size_t found;

	(void)state;
	fill_slowest(&total, ids, sizeof(ids) / sizeof(ids[0]));
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 7, TAILOR_CAUSE_GC, MS);
	tailor_store_writer_close(writer);
	assert_int_equal(tailor_load_timelines_find(directory, &total, &causes, &found, error), 0);
	assert_int_equal(found, 0);
	assert_true(tailor_clock_ns() - before_ns < TAILOR_LOAD_TIMELINES_WAIT_MS * MS);
	for (size_t i = 0; i < TAILOR_LOAD_SLOWEST; i++)
		assert_string_equal(causes.text[i], "");
}

static void a_path_without_a_store_is_refused_with_the_remedy(void **state)
{
	char error[TAILOR_LOAD_ERROR_BYTES], path[128];
	struct tailor_load_result total = {0};
	struct tailor_load_causes causes;
	size_t found;
	int file;

	(void)state;
	snprintf(path, sizeof(path), "%s/none", directory);
	assert_int_equal(tailor_load_timelines_find(path, &total, &causes, &found, error), -ENOENT);
	assert_non_null(strstr(error, "does not exist; give the store"));
	assert_null(strchr(error, '\n'));
	snprintf(path, sizeof(path), "%s/file", directory);
	file = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(file, "hello", 5), 5);
	close(file);
	assert_int_equal(tailor_load_timelines_find(path, &total, &causes, &found, error), -EINVAL);
	assert_non_null(strstr(error, "is not a store of timelines; give"));
}

#define WITH_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WITH_DIRECTORY(the_dominant_cause_of_each_is_found_among_many),
	        WITH_DIRECTORY(a_timeline_that_comes_a_moment_later_is_waited_for),
	        WITH_DIRECTORY(what_is_missing_is_given_up_after_two_seconds),
	        WITH_DIRECTORY(ids_of_others_are_not_looked_for),
	        WITH_DIRECTORY(a_path_without_a_store_is_refused_with_the_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
