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

/* A load and a store, and what of the one is found in the other. */
struct search {
	struct tailor_store_writer *writer;
	struct tailor_load_result total;
	struct tailor_load_causes causes;
	size_t found;
};

/* The slowest requests have these ids, the first one slowest; the store is empty, and open for writing. */
static void begin_search(struct search *search, const char *const ids[], size_t count)
{
	memset(search, 0, sizeof(*search));
	for (size_t i = 0; i < count; i++) {
		search->total.slowest[i].response_ns = (200 - i) * MS;
		search->total.slowest[i].path = "/";
		strcpy(search->total.slowest[i].request_id, ids[i]);
	}
	search->total.slow_count = count;
	assert_int_equal(tailor_store_writer_open(directory, 64 << 20, &search->writer), 0);
}

/* Returns how long it took in ns. */
static uint64_t find(struct search *search)
{
	char error[TAILOR_LOAD_ERROR_BYTES];
	uint64_t begin_ns = tailor_clock_ns();

	assert_int_equal(tailor_load_timelines_find(directory, &search->total, &search->causes, &search->found, error), 0);
	return tailor_clock_ns() - begin_ns;
}

static void the_dominant_cause_of_each_is_found_among_many(void **state)
{
	static const char *const ids[] = {"00000000000003e7", "0000000000000005", "FEDCBA9876543210"};
	struct search search;

	(void)state;
	begin_search(&search, ids, 3);
	for (uint64_t id = 0; id < 2000; id++)
		append(search.writer, id, id % 2 ? TAILOR_CAUSE_GC : TAILOR_CAUSE_RUN_QUEUE, (id % 2 ? 117 : 50) * MS);
	append(search.writer, 0xfedcba9876543210, TAILOR_CAUSE_UNEXPLAINED, 9 * MS);
	tailor_store_writer_close(search.writer);
	assert_true(find(&search) < TAILOR_LOAD_TIMELINES_WAIT_MS * MS); /* nothing was missing */
	assert_int_equal(search.found, 3);
	assert_string_equal(search.causes.text[0], "garbage collection, 117 ms of 118 ms");
	assert_string_equal(search.causes.text[1], "garbage collection, 117 ms of 118 ms");
	assert_string_equal(search.causes.text[2], "unexplained, 9.00 ms of 10.0 ms");
	assert_string_equal(search.causes.text[3], "");
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
	struct search search;
	pthread_t thread;

	(void)state;
	begin_search(&search, ids, 1);
	append(search.writer, 1, TAILOR_CAUSE_GC, MS);
	assert_int_equal(pthread_create(&thread, NULL, append_later, search.writer), 0);
	(void)find(&search);
	pthread_join(thread, NULL);
	tailor_store_writer_close(search.writer);
	assert_int_equal(search.found, 1);
	assert_string_equal(search.causes.text[0], "response buffered by TCP, 40.0 ms of 41.0 ms");
}

static void what_is_missing_is_given_up_after_two_seconds(void **state)
{
	static const char *const ids[] = {"00000000000000aa", "0000000000000001"};
	struct search search;
	uint64_t took_ns;

	(void)state;
	begin_search(&search, ids, 2);
	append(search.writer, 1, TAILOR_CAUSE_GC, 99 * MS);
	tailor_store_writer_close(search.writer);
	took_ns = find(&search);
	assert_true(took_ns >= TAILOR_LOAD_TIMELINES_WAIT_MS * MS && took_ns < 2 * TAILOR_LOAD_TIMELINES_WAIT_MS * MS);
	assert_int_equal(search.found, 1);
	assert_string_equal(search.causes.text[0], "");
	assert_string_equal(search.causes.text[1], "garbage collection, 99.0 ms of 100 ms");
}

static void ids_of_others_are_not_looked_for(void **state)
{
	static const char *const ids[] = {
	        "", "7", "000000000000000g", "0x00000000000007", "00000000000000071", " 000000000000007"};
	struct search search;

	(void)state;
	begin_search(&search, ids, sizeof(ids) / sizeof(ids[0]));
	append(search.writer, 7, TAILOR_CAUSE_GC, MS);
	tailor_store_writer_close(search.writer);
	assert_true(find(&search) < TAILOR_LOAD_TIMELINES_WAIT_MS * MS);
	assert_int_equal(search.found, 0);
	for (size_t i = 0; i < TAILOR_LOAD_SLOWEST; i++)
		assert_string_equal(search.causes.text[i], "");
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
