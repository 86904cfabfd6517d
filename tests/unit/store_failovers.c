/* SPDX-License-Identifier: Apache-2.0 */
/* Failovers in the store, beside timelines: each reader gets what it asks for, and damage costs no more than what is damaged. */
#include "failover_example.h"
#include "store/crc32c.h"
#include "store/segment.h"
#include "store_directory.h"

static struct tailor_failover example(uint64_t begin_ns)
{
	struct tailor_failover failover = failover_example(begin_ns);

	failover.incomplete = 1;
	return failover;
}

static void append_failover(struct tailor_store_writer *writer, uint64_t begin_ns)
{
	struct tailor_failover failover = example(begin_ns);

	assert_int_equal(tailor_store_append_failover(writer, &failover), 0);
}

/* Timelines with the ids 1 to 3, and behind each a failover that began then. */
static void fill_both(void)
{
	struct tailor_store_writer *writer;

	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	for (uint64_t id = 1; id <= 3; id++) {
		append(writer, id);
		append_failover(writer, id);
	}
	tailor_store_writer_close(writer);
}

/* As read_all(), of failovers by their begin. */
static int read_failovers(uint64_t *ret_begins, uint64_t *ret_bad, uint64_t *ret_bytes)
{
	struct tailor_store_reader *reader;
	struct tailor_failover failover;
	int got, count = 0;

	*ret_begins = 0;
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	while ((got = tailor_store_next_failover(reader, &failover)) == 1) {
		*ret_begins |= UINT64_C(1) << (failover.begin_ns & 63);
		count++;
	}
	assert_int_equal(got, 0);
	tailor_store_damage(reader, ret_bad, ret_bytes);
	tailor_store_reader_close(reader);
	return count;
}

static void every_field_of_a_failover_comes_back(void **state)
{
	struct tailor_failover written = example(5), back;
	struct tailor_store_writer *writer;
	struct tailor_store_reader *reader;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	append_failover(writer, 5);
	tailor_store_writer_close(writer);
	assert_int_equal(tailor_store_reader_open(directory, &reader), 0);
	assert_int_equal(tailor_store_next_failover(reader, &back), 1);
	assert_int_equal(back.begin_ns, written.begin_ns);
	assert_int_equal(back.end_ns, written.end_ns);
	assert_int_equal(back.wall_ns, written.wall_ns);
	assert_string_equal(back.server, written.server);
	assert_string_equal(back.cause, written.cause);
	assert_int_equal(back.kind, written.kind);
	assert_int_equal(back.noticed, written.noticed);
	assert_int_equal(back.workers, written.workers);
	assert_int_equal(back.in_flight, written.in_flight);
	assert_int_equal(back.moved, written.moved);
	assert_int_equal(back.not_moved, written.not_moved);
	assert_string_equal(back.why_not, written.why_not);
	assert_int_equal(back.noticed_ns, written.noticed_ns);
	assert_int_equal(back.reacted_ns, written.reacted_ns);
	assert_int_equal(back.saved_ns, written.saved_ns);
	assert_int_equal(back.saved_requests, written.saved_requests);
	assert_int_equal(back.incomplete, 1);
	assert_int_equal(tailor_store_next_failover(reader, &back), 0);
	tailor_store_reader_close(reader);
}

static void each_reader_passes_over_what_the_other_one_reads(void **state)
{
	uint64_t ids, bad, lost;

	(void)state;
	fill_both();
	assert_int_equal(read_all(directory, &ids, &bad, &lost), 3);
	assert_int_equal(ids, 2 | 4 | 8);
	assert_int_equal(bad + lost, 0);
	assert_int_equal(read_failovers(&ids, &bad, &lost), 3);
	assert_int_equal(ids, 2 | 4 | 8);
	assert_int_equal(bad + lost, 0);
}

static void any_flipped_byte_costs_one_record_of_either_kind(void **state)
{
	uint64_t ids, begins, bad, lost;
	uint8_t *bytes;
	size_t length;
	char path[400];

	(void)state;
	fill_both();
	path_of(path, FIRST_SEGMENT);
	length = load(path, &bytes);
	for (size_t at = SEGMENT_HEADER_BYTES; at < length; at++) {
		int timelines, failovers;

		bytes[at] ^= 0x41;
		save(path, bytes, length);
		timelines = read_all(directory, &ids, &bad, &lost);
		assert_true(bad == 1 || lost > 0);
		failovers = read_failovers(&begins, &bad, &lost);
		assert_true(bad == 1 || lost > 0);
		assert_int_equal(timelines + failovers, 5);
		bytes[at] ^= 0x41;
	}
	free(bytes);
}

static int decode_changed(struct tailor_failover failover, struct tailor_failover *back)
{
	uint8_t *record;
	size_t bytes;
	int got;

	assert_int_equal(record_encode_failover(&failover, &record, &bytes), 0);
	got = record_decode_failover(record + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES, back);
	free(record);
	return got;
}

static void a_failover_that_cannot_have_been_is_damaged(void **state)
{
	struct tailor_failover failover = example(1), back;

	(void)state;
	assert_int_equal(decode_changed(failover, &back), 0);
	failover.end_ns = failover.begin_ns - 1; /* ends before it began */
	assert_int_equal(decode_changed(failover, &back), -EBADMSG);
	failover = example(1);
	failover.saved_ns = 7 * UINT64_C(136000000) + 7; /* more than all of them could have waited */
	assert_int_equal(decode_changed(failover, &back), -EBADMSG);
	failover = example(1);
	failover.saved_requests = 0;
	assert_int_equal(decode_changed(failover, &back), -EBADMSG);
	failover = example(1);
	failover.reacted_ns = UINT64_MAX;
	assert_int_equal(decode_changed(failover, &back), -EBADMSG);
}

static void unknown_kinds_of_stops_are_read_as_unknown(void **state)
{
	struct tailor_failover failover = example(1), back;

	(void)state;
	failover.kind = (enum tailor_stop_kind)77;
	failover.noticed = TAILOR_STOP_KINDS;
	assert_int_equal(decode_changed(failover, &back), 0);
	assert_int_equal(back.kind, TAILOR_STOP_KINDS);
	assert_int_equal(back.noticed, TAILOR_STOP_KINDS);
}

/* A failover behind a timeline's own fields in one record. */
static void a_record_of_both_kinds_is_damaged(void **state)
{
	struct tailor_span span = {.start_ns = 1, .end_ns = 2};
	struct tailor_timeline timeline = {.request = {.begin_ns = 1, .end_ns = 2}, .spans = &span, .span_count = 1}, back;
	struct tailor_failover failover = example(1), failover_back;
	uint8_t *first, *second, *both;
	size_t first_bytes, second_bytes, bytes;

	(void)state;
	assert_int_equal(record_encode(&timeline, &first, &first_bytes), 0);
	assert_int_equal(record_encode_failover(&failover, &second, &second_bytes), 0);
	first_bytes -= RECORD_HEADER_BYTES;
	second_bytes -= RECORD_HEADER_BYTES;
	bytes = first_bytes + second_bytes;
	both = malloc(bytes);
	memcpy(both, first + RECORD_HEADER_BYTES, first_bytes);
	memcpy(both + first_bytes, second + RECORD_HEADER_BYTES, second_bytes);
	assert_int_equal(record_decode(both, bytes, &back), -EBADMSG);
	assert_int_equal(record_decode_failover(both, bytes, &failover_back), -EBADMSG);
	/* Each alone is of the other's kind. */
	assert_int_equal(record_decode(both + first_bytes, second_bytes, &back), RECORD_OF_OTHER_KIND);
	assert_int_equal(record_decode_failover(both, first_bytes, &failover_back), RECORD_OF_OTHER_KIND);
	free(first);
	free(second);
	free(both);
}

static void failovers_are_kept_below_the_stores_limit_too(void **state)
{
	struct tailor_store_writer *writer;
	uint64_t begins, bad, lost, size = 0;
	struct dirent *entry;
	DIR *stream;

	(void)state;
	assert_int_equal(tailor_store_writer_open(directory, 1 << 20, &writer), 0);
	for (uint64_t i = 0; i < 30000; i++)
		append_failover(writer, i);
	tailor_store_writer_close(writer);
	stream = opendir(directory);
	while ((entry = readdir(stream)) != NULL) {
		struct stat status;
		char path[400];

		path_of(path, entry->d_name);
		assert_int_equal(stat(path, &status), 0);
		size += S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
	}
	closedir(stream);
	assert_in_range(size, (1 << 20) * 3 / 4, 1 << 20);
	assert_in_range(read_failovers(&begins, &bad, &lost), 1000, 29999);
	assert_int_equal(bad + lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        store_test(every_field_of_a_failover_comes_back),
	        store_test(each_reader_passes_over_what_the_other_one_reads),
	        store_test(any_flipped_byte_costs_one_record_of_either_kind),
	        cmocka_unit_test(a_failover_that_cannot_have_been_is_damaged),
	        cmocka_unit_test(unknown_kinds_of_stops_are_read_as_unknown),
	        cmocka_unit_test(a_record_of_both_kinds_is_damaged),
	        store_test(failovers_are_kept_below_the_stores_limit_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
