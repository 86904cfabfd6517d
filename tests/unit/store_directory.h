/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, as the tests of the store need it. */
#ifndef TAILOR_TESTS_UNIT_STORE_DIRECTORY_H
#define TAILOR_TESTS_UNIT_STORE_DIRECTORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tailor/store.h>
#include <unistd.h>

#define FIRST_SEGMENT "00000000000000000001.tailor"

static char directory[64];

static inline int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/tailor-store-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static inline void path_of(char path[400], const char *name)
{
	snprintf(path, 400, "%s/%s", directory, name);
}

static inline int remove_directory(void **state)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;

	(void)state;
	while (stream && (entry = readdir(stream)) != NULL) {
		char path[400];

		path_of(path, entry->d_name);
		unlink(path);
	}
	if (stream)
		closedir(stream);
	return rmdir(directory);
}

/* A timeline of `id` with two spans and a loss, all fields in use. */
static inline void append(struct tailor_store_writer *writer, uint64_t id)
{
	struct tailor_span spans[2] = {
	        {.start_ns = 1000,
	         .end_ns = 1500,
	         .cause = TAILOR_CAUSE_PROXY,
	         .pid = 7,
	         .tid = 8,
	         .thread = "proxy-0"},
	        {.start_ns = 1500, .end_ns = 9000, .cause = TAILOR_CAUSE_GC, .detail = "Serial young, pause 43.2 ms"},
	};
	struct tailor_loss loss = {.channel = "cpu3", .from_ns = 5, .to_ns = UINT64_MAX, .events = 12};
	struct tailor_timeline timeline = {
	        .request = {.id = id,
	                    .begin_ns = 1000,
	                    .end_ns = 9000,
	                    .wall_ns = 77,
	                    .status = 200,
	                    .end = 3,
	                    .attempts = 2,
	                    .failover = 1,
	                    .response_bytes = 999,
	                    .target = "GET /\x01\xff",
	                    .server = "a"},
	        .kept = TAILOR_KEPT_BASELINE,
	        .dominant = TAILOR_CAUSE_GC,
	        .dominant_ns = 7500,
	        .join = TAILOR_JOIN_CONFIRMED,
	        .server_ns = 6000,
	        .missing = TAILOR_MISSING_AGENT | TAILOR_MISSING_EVENTS,
	        .complete = 876,
	        .spans = spans,
	        .span_count = 2,
	        .losses = &loss,
	        .loss_count = 1,
	};

	assert_int_equal(tailor_store_append(writer, &timeline), 0);
}

static inline void fill(uint64_t first, uint64_t count)
{
	struct tailor_store_writer *writer;

	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	for (uint64_t id = first; id < first + count; id++)
		append(writer, id);
	tailor_store_writer_close(writer);
}

/* Reads all ids into a mask of bits; returns how many timelines there were. */
static inline int read_all(const char *path, uint64_t *ret_ids, uint64_t *ret_bad, uint64_t *ret_bytes)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	int got, count = 0;

	*ret_ids = 0;
	assert_int_equal(tailor_store_reader_open(path, &reader), 0);
	while ((got = tailor_store_next(reader, &timeline)) == 1) {
		*ret_ids |= UINT64_C(1) << (timeline.request.id & 63);
		count++;
		tailor_timeline_free(&timeline);
	}
	assert_int_equal(got, 0);
	tailor_store_damage(reader, ret_bad, ret_bytes);
	tailor_store_reader_close(reader);
	return count;
}

static inline size_t load(const char *path, uint8_t **ret_bytes)
{
	struct stat status;
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	*ret_bytes = malloc((size_t)status.st_size);
	assert_int_equal(fread(*ret_bytes, 1, (size_t)status.st_size, file), status.st_size);
	fclose(file);
	return (size_t)status.st_size;
}

static inline void save(const char *path, const uint8_t *bytes, size_t length)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

/* A test that gets an empty directory. */
#define store_test(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

#endif /* TAILOR_TESTS_UNIT_STORE_DIRECTORY_H */
