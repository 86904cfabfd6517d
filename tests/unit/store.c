/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tailor/store.h>
#include <unistd.h>

#include "store/crc32c.h"
#include "store/segment.h"

#define FIRST_SEGMENT "00000000000000000001.tailor"

static char directory[64];

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/tailor-store-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static void path_of(char path[400], const char *name)
{
	snprintf(path, 400, "%s/%s", directory, name);
}

static int remove_directory(void **state)
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
static void append(struct tailor_store_writer *writer, uint64_t id)
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
	        .spans = spans,
	        .span_count = 2,
	        .losses = &loss,
	        .loss_count = 1,
	};

	assert_int_equal(tailor_store_append(writer, &timeline), 0);
}

static void fill(uint64_t first, uint64_t count)
{
	struct tailor_store_writer *writer;

	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	for (uint64_t id = first; id < first + count; id++)
		append(writer, id);
	tailor_store_writer_close(writer);
}

/* Reads all ids into a mask of bits; returns how many timelines there were. */
static int read_all(const char *path, uint64_t *ret_ids, uint64_t *ret_bad, uint64_t *ret_bytes)
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

static size_t load(const char *path, uint8_t **ret_bytes)
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

static void save(const char *path, const uint8_t *bytes, size_t length)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static void the_checksum_is_crc_32c(void **state)
{
	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283); /* RFC 3720 gives the same polynomial's test values */
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void every_field_comes_back(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;

	(void)state;
	fill(0xdeadbeef12345678, 1);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	assert_int_equal(tailor_store_next(reader, &timeline), 1);
	assert_int_equal(timeline.request.id, 0xdeadbeef12345678);
	assert_int_equal(timeline.request.begin_ns, 1000);
	assert_int_equal(timeline.request.end_ns, 9000);
	assert_int_equal(timeline.request.wall_ns, 77);
	assert_int_equal(timeline.request.status, 200);
	assert_int_equal(timeline.request.end, 3);
	assert_int_equal(timeline.request.attempts, 2);
	assert_int_equal(timeline.request.failover, 1);
	assert_int_equal(timeline.request.response_bytes, 999);
	assert_string_equal(timeline.request.target, "GET /\x01\xff");
	assert_string_equal(timeline.request.server, "a");
	assert_int_equal(timeline.kept, TAILOR_KEPT_BASELINE);
	assert_int_equal(timeline.dominant, TAILOR_CAUSE_GC);
	assert_int_equal(timeline.dominant_ns, 7500);
	assert_int_equal(timeline.join, TAILOR_JOIN_CONFIRMED);
	assert_int_equal(timeline.server_ns, 6000);
	assert_int_equal(timeline.missing, TAILOR_MISSING_AGENT | TAILOR_MISSING_EVENTS);
	assert_int_equal(timeline.span_count, 2);
	assert_int_equal(timeline.spans[0].pid, 7);
	assert_int_equal(timeline.spans[0].tid, 8);
	assert_string_equal(timeline.spans[0].thread, "proxy-0");
	assert_int_equal(timeline.spans[1].start_ns, 1500);
	assert_int_equal(timeline.spans[1].end_ns, 9000);
	assert_int_equal(timeline.spans[1].cause, TAILOR_CAUSE_GC);
	assert_string_equal(timeline.spans[1].detail, "Serial young, pause 43.2 ms");
	assert_int_equal(timeline.loss_count, 1);
	assert_string_equal(timeline.losses[0].channel, "cpu3");
	assert_true(timeline.losses[0].to_ns == UINT64_MAX);
	assert_int_equal(timeline.losses[0].events, 12);
	tailor_timeline_free(&timeline);
	assert_int_equal(tailor_store_next(reader, &timeline), 0);
	tailor_store_reader_close(reader);
}

static void a_cut_at_any_byte_of_the_last_record_costs_that_record_only(void **state)
{
	uint64_t ids, bad, lost;
	uint8_t *bytes;
	size_t length, record;
	char path[400];

	(void)state;
	fill(1, 3);
	path_of(path, FIRST_SEGMENT);
	length = load(path, &bytes);
	record = (length - SEGMENT_HEADER_BYTES) / 3;
	assert_int_equal(record * 3, length - SEGMENT_HEADER_BYTES);
	for (size_t cut = length - record; cut < length; cut++) {
		save(path, bytes, cut);
		assert_int_equal(read_all(directory, &ids, &bad, &lost), 2);
		assert_int_equal(ids, 2 | 4);
		assert_int_equal(lost, cut - (length - record));
		assert_int_equal(bad, 0);
	}
	/* A new writer leaves the torn one behind and the store goes on. */
	fill(4, 2);
	assert_int_equal(read_all(directory, &ids, &bad, &lost), 4);
	assert_int_equal(ids, 2 | 4 | 16 | 32);
	free(bytes);
}

static void any_flipped_byte_costs_the_record_it_is_in_only(void **state)
{
	uint64_t ids, bad, lost;
	uint8_t *bytes;
	size_t length, record;
	char path[400];

	(void)state;
	fill(1, 3);
	path_of(path, FIRST_SEGMENT);
	length = load(path, &bytes);
	record = (length - SEGMENT_HEADER_BYTES) / 3;
	for (size_t at = SEGMENT_HEADER_BYTES; at < length; at++) {
		size_t which = (at - SEGMENT_HEADER_BYTES) / record;

		for (int flip = 1; flip < 256; flip += 127) {
			bytes[at] ^= (uint8_t)flip;
			save(path, bytes, length);
			assert_int_equal(read_all(directory, &ids, &bad, &lost), 2);
			assert_int_equal(ids, 14 & ~(2 << which));
			assert_true(bad == 1 || lost == record);
			bytes[at] ^= (uint8_t)flip;
		}
	}
	free(bytes);
}

static void random_bytes_never_crash_the_reader(void **state)
{
	uint64_t ids, bad, lost, random = 88172645463325252u;
	uint8_t *bytes;
	size_t length;
	char path[400];

	(void)state;
	fill(0, 4);
	path_of(path, FIRST_SEGMENT);
	length = load(path, &bytes);
	for (int round = 0; round < 2000; round++) {
		uint8_t *copy = malloc(length);
		size_t record = SEGMENT_HEADER_BYTES;

		memcpy(copy, bytes, length);
		for (int i = 0; i < 6; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[SEGMENT_HEADER_BYTES + random % (length - SEGMENT_HEADER_BYTES)] = (uint8_t)(random >> 40);
		}
		/* Half of them with checksums that are right again, so that the content is what is read. */
		while (round % 2 && record + RECORD_HEADER_BYTES < length) {
			uint32_t message = load_u32(copy + record);

			if (message > length - record - RECORD_HEADER_BYTES)
				break;
			store_u32(copy + record + 4,
			          crc32c(crc32c(0, copy + record, 4), copy + record + RECORD_HEADER_BYTES, message));
			record += RECORD_HEADER_BYTES + message;
		}
		save(path, copy, length);
		assert_in_range(read_all(directory, &ids, &bad, &lost), 0, 4);
		free(copy);
	}
	free(bytes);
}

static void unknown_values_are_read_as_unknown(void **state)
{
	struct tailor_timeline timeline = {.dominant = (enum tailor_cause)200, .join = (enum tailor_join)9};
	struct tailor_span span = {.cause = (enum tailor_cause)999, .end_ns = 5};
	struct tailor_timeline back;
	uint8_t *record;
	size_t bytes;

	(void)state;
	timeline.spans = &span;
	timeline.span_count = 1;
	timeline.request.end = 99;
	timeline.request.end_ns = 5;
	assert_int_equal(record_encode(&timeline, &record, &bytes), 0);
	assert_int_equal(record_decode(record + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES, &back), 0);
	assert_int_equal(back.dominant, TAILOR_CAUSE_UNEXPLAINED);
	assert_int_equal(back.spans[0].cause, TAILOR_CAUSE_UNEXPLAINED);
	assert_int_equal(back.join, TAILOR_JOIN_NONE);
	assert_int_equal(back.request.end, UINT8_MAX);
	tailor_timeline_free(&back);
	free(record);
}

/* Sums and shares are made of them: a sum that is not the whole would be a wrong answer. */
static void a_record_whose_spans_do_not_cut_its_request_is_damaged(void **state)
{
	static const struct {
		uint64_t latency_ns, first_ns, first_end_ns, second_ns, second_end_ns;
		int decoded;
	} cases[] = {
		{10, 0, 4, 4, 10, 0},
		{10, 0, 4, 5, 10, -EBADMSG},  /* gap */
		{10, 0, 5, 4, 10, -EBADMSG},  /* overlap */
		{10, 1, 4, 4, 10, -EBADMSG},  /* late */
		{10, 0, 4, 4, 9, -EBADMSG},   /* short */
		{10, 0, 4, 4, 11, -EBADMSG},  /* long */
		{10, 0, 10, 10, 10, -EBADMSG}, /* empty */
		{UINT64_MAX, 0, 4, 4, UINT64_MAX, -EBADMSG}, /* ends before it began */
		{UINT64_MAX / 2, 0, 4, 4, UINT64_MAX / 2, -EBADMSG}, /* centuries */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tailor_span spans[2] = {{.start_ns = 1000 + cases[i].first_ns, .end_ns = 1000 + cases[i].first_end_ns},
		                               {.start_ns = 1000 + cases[i].second_ns, .end_ns = 1000 + cases[i].second_end_ns}};
		struct tailor_timeline timeline = {
		        .request = {.begin_ns = 1000, .end_ns = 1000 + cases[i].latency_ns}, .spans = spans, .span_count = 2};
		struct tailor_timeline back;
		uint8_t *record;
		size_t bytes;
		int error;

		assert_int_equal(record_encode(&timeline, &record, &bytes), 0);
		error = record_decode(record + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES, &back);
		if (error != cases[i].decoded)
			fail_msg("case %zu: %d", i, error);
		if (error == 0)
			tailor_timeline_free(&back);
		free(record);
	}
}

static void what_is_no_store_is_refused_and_an_empty_one_is_empty(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_store_writer *writer;
	uint64_t ids, bad, lost;
	char path[400];

	(void)state;
	assert_int_equal(read_all(directory, &ids, &bad, &lost), 0);
	path_of(path, "nothing");
	assert_int_equal(tailor_store_reader_open(path, &reader), -ENOENT);
	path_of(path, "letter.txt");
	save(path, (const uint8_t *)"Dear all, this is not a timeline", 32);
	assert_int_equal(tailor_store_reader_open(path, &reader), -EINVAL);
	assert_int_equal(tailor_store_reader_open(directory, &reader), -EINVAL);
	assert_int_equal(tailor_store_writer_open(path, 1 << 20, &writer), -EINVAL);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), -EINVAL);
	/* A foreign file under a segment's name costs only itself. */
	unlink(path);
	path_of(path, FIRST_SEGMENT);
	save(path, (const uint8_t *)"Dear all, this is not a timeline", 32);
	fill(1, 1);
	assert_int_equal(read_all(directory, &ids, &bad, &lost), 1);
	assert_int_equal(lost, 32);
}

static void a_second_writer_is_told_that_the_store_is_busy(void **state)
{
	struct tailor_store_writer *first, *second;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &first), 0);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &second), -EBUSY);
	tailor_store_writer_close(first);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &second), 0);
	tailor_store_writer_close(second);
}

static uint64_t store_bytes(void)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	uint64_t sum = 0;

	while ((entry = readdir(stream)) != NULL) {
		char path[400];
		struct stat status;

		path_of(path, entry->d_name);
		if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
			sum += (uint64_t)status.st_size;
	}
	closedir(stream);
	return sum;
}

static void rotation_keeps_the_store_below_its_limit_and_loses_the_oldest_first(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_store_writer *writer;
	struct tailor_timeline timeline;
	uint64_t next = 0, count = 0;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	for (uint64_t id = 0; id < 20000; id++) {
		append(writer, id);
		if (id % 500 == 0)
			assert_true(store_bytes() <= 1 << 20);
	}
	assert_true(store_bytes() > (1 << 20) * 3 / 4);
	tailor_store_writer_close(writer);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	while (tailor_store_next(reader, &timeline) == 1) {
		if (count++ > 0)
			assert_int_equal(timeline.request.id, next);
		next = timeline.request.id + 1;
		tailor_timeline_free(&timeline);
	}
	assert_int_equal(next, 20000);
	assert_true(count > 1000);
	tailor_store_reader_close(reader);
}

static void a_reader_follows_a_writer_also_into_new_segments(void **state)
{
	struct tailor_store_reader *reader;
	struct tailor_store_writer *writer;
	struct tailor_timeline timeline;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	for (uint64_t id = 0; id < 3000; id++) {
		assert_int_equal(tailor_store_next(reader, &timeline), 0);
		append(writer, id);
		assert_int_equal(tailor_store_next(reader, &timeline), 1);
		assert_int_equal(timeline.request.id, id);
		tailor_timeline_free(&timeline);
	}
	tailor_store_writer_close(writer);
	tailor_store_reader_close(reader);
}

static size_t count_timelines(void)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	size_t count = 0;

	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	for (; tailor_store_next(reader, &timeline) == 1; count++)
		tailor_timeline_free(&timeline);
	tailor_store_reader_close(reader);
	return count;
}

static void after_its_files_were_deleted_a_writer_goes_on_where_they_can_be_read(void **state)
{
	struct tailor_store_writer *writer;
	char path[400];

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 1);
	path_of(path, FIRST_SEGMENT);
	assert_int_equal(unlink(path), 0);
	append(writer, 2);
	append(writer, 3);
	assert_int_equal(count_timelines(), 2);
	tailor_store_writer_close(writer);
}

static void a_store_that_was_removed_is_an_error_not_a_success(void **state)
{
	struct tailor_timeline timeline = {.request = {.id = 2}};
	struct tailor_store_writer *writer;

	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append(writer, 1);
	assert_int_equal(remove_directory(state), 0);
	assert_int_equal(tailor_store_append(writer, &timeline), -ENOENT);
	tailor_store_writer_close(writer);
	assert_int_equal(mkdir(directory, 0700), 0);
}

/* How one process goes on with the store of another: the lock is never free meanwhile. */
static void a_store_is_handed_over_with_its_lock(void **state)
{
	struct tailor_store_writer *old, *new, *third;
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	char path[400];

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &old), 0);
	append(old, 1);
	assert_int_equal(tailor_store_writer_take_over(directory, 1 << 20, dup(tailor_store_writer_lock(old)), &new), 0);
	/* The old one starts a segment yet after the new one is there. */
	path_of(path, FIRST_SEGMENT);
	assert_int_equal(rename(path, "/tmp/tailor-store-kept"), 0);
	assert_int_equal(unlink("/tmp/tailor-store-kept"), 0);
	append(old, 2);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &third), -EBUSY);
	tailor_store_writer_close(old);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &third), -EBUSY);
	append(new, 3);
	tailor_store_writer_close(new);
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &third), 0);
	tailor_store_writer_close(third);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	for (uint64_t id = 2; id <= 3; id++) {
		assert_int_equal(tailor_store_next(reader, &timeline), 1);
		assert_int_equal(timeline.request.id, id);
		tailor_timeline_free(&timeline);
	}
	assert_int_equal(tailor_store_next(reader, &timeline), 0);
	tailor_store_reader_close(reader);
}

static void another_stores_lock_opens_nothing(void **state)
{
	struct tailor_store_writer *writer, *other;
	char path[400];
	int lock;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	lock = dup(tailor_store_writer_lock(writer));
	tailor_store_writer_close(writer);
	path_of(path, STORE_LOCK_NAME);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(tailor_store_writer_take_over(directory, 1 << 20, lock, &other), -ESTALE);
	assert_int_equal(close(lock), 0); /* still the caller's */
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &other), 0);
	tailor_store_writer_close(other);
}

#define store_test(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        store_test(a_store_is_handed_over_with_its_lock),
	        store_test(another_stores_lock_opens_nothing),
	        cmocka_unit_test(the_checksum_is_crc_32c),
	        store_test(every_field_comes_back),
	        store_test(a_cut_at_any_byte_of_the_last_record_costs_that_record_only),
	        store_test(any_flipped_byte_costs_the_record_it_is_in_only),
	        store_test(random_bytes_never_crash_the_reader),
	        cmocka_unit_test(unknown_values_are_read_as_unknown),
	        cmocka_unit_test(a_record_whose_spans_do_not_cut_its_request_is_damaged),
	        store_test(what_is_no_store_is_refused_and_an_empty_one_is_empty),
	        store_test(a_second_writer_is_told_that_the_store_is_busy),
	        store_test(rotation_keeps_the_store_below_its_limit_and_loses_the_oldest_first),
	        store_test(a_reader_follows_a_writer_also_into_new_segments),
	        store_test(after_its_files_were_deleted_a_writer_goes_on_where_they_can_be_read),
	        store_test(a_store_that_was_removed_is_an_error_not_a_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
