/* SPDX-License-Identifier: Apache-2.0 */
/* A record in the store: what is written comes back, and damage costs no more than what is damaged. */
#include <tailor/event.h>

#include "store/crc32c.h"
#include "store/segment.h"
#include "store_directory.h"

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
	assert_int_equal(timeline.complete, 876);
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

static void every_reason_to_move_a_request_comes_back_and_others_are_unknown(void **state)
{
	struct tailor_span span = {.end_ns = 5};

	(void)state;
	for (uint16_t reason = TAILOR_FAILOVER_NONE; reason <= TAILOR_FAILOVER_STALL + 1; reason++) {
		struct tailor_timeline timeline = {.request = {.end_ns = 5, .failover = reason}, .spans = &span, .span_count = 1}, back;
		uint8_t *record;
		size_t bytes;

		assert_int_equal(record_encode(&timeline, &record, &bytes), 0);
		assert_int_equal(record_decode(record + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES, &back), 0);
		assert_int_equal(back.request.failover, reason <= TAILOR_FAILOVER_STALL ? reason : UINT16_MAX);
		tailor_timeline_free(&back);
		free(record);
	}
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
/* What is whole takes no byte, so that a record from before there was such a field is read as whole. */
static void a_whole_timeline_is_written_as_it_was_before_completeness(void **state)
{
	static const struct {
		uint16_t written, read;
		size_t more;
	} cases[] = {{1000, 1000, 0}, {999, 999, 2}, {0, 0, 3}, {2000, 1000, 0}};
	struct tailor_span span = {.end_ns = 5};
	size_t whole = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tailor_timeline timeline = {.spans = &span, .span_count = 1, .complete = cases[i].written}, back;
		uint8_t *record;
		size_t bytes;

		timeline.request.end_ns = 5;
		assert_int_equal(record_encode(&timeline, &record, &bytes), 0);
		whole = i == 0 ? bytes : whole;
		assert_int_equal(bytes, whole + cases[i].more);
		assert_int_equal(record_decode(record + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES, &back), 0);
		assert_int_equal(back.complete, cases[i].read);
		tailor_timeline_free(&back);
		free(record);
	}
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_crc_32c),
		store_test(every_field_comes_back),
		store_test(a_cut_at_any_byte_of_the_last_record_costs_that_record_only),
		store_test(any_flipped_byte_costs_the_record_it_is_in_only),
		store_test(random_bytes_never_crash_the_reader),
		cmocka_unit_test(every_reason_to_move_a_request_comes_back_and_others_are_unknown),
		cmocka_unit_test(unknown_values_are_read_as_unknown),
		cmocka_unit_test(a_whole_timeline_is_written_as_it_was_before_completeness),
		cmocka_unit_test(a_record_whose_spans_do_not_cut_its_request_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
