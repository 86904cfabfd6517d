/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline store's reader: the input is a segment file. Since no mutation hits a checksum, it is read a second time
 * with its checksums mended. Proves: any bytes end in timelines, failovers and counted damage; the spans of each timeline cut its
 * request; each can be printed (no line of the text too wide or with a control character, the JSON one document) and
 * written again without a difference.
 */
#include <errno.h>
#include <jansson.h>
#include <tailor/store.h>

#include "correlate/correlate.h"
#include "fuzz.h"
#include "report/report.h"
#include "store/crc32c.h"
#include "store/segment.h"

/* Of a table of failovers. */
#define TABLE_COLUMNS 160

static void check_lines(const char *text, size_t size, size_t columns_max)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; i++) {
		require((uint8_t)text[i] >= 0x20 || text[i] == '\n');
		columns = text[i] == '\n' ? 0 : columns + ((text[i] & 0xc0) != 0x80);
		require(columns <= columns_max);
	}
}

static void check_text(const struct tailor_timeline *timeline)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	require(out);
	tailor_report_text(out, timeline);
	require(fclose(out) == 0);
	check_lines(text, size, TAILOR_REPORT_COLUMNS);
	free(text);
}

static void check_json(const struct tailor_timeline *timeline)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *json;

	require(out);
	tailor_report_json_begin(out);
	require(tailor_report_json(out, timeline, 0) == 0);
	tailor_report_json_end(out);
	require(fclose(out) == 0);
	json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	require(json && json_array_size(json_object_get(json, "timelines")) == 1);
	json_decref(json);
	free(text);
}

/* A trace is whole packets, each behind its tag and its length. */
static void check_trace(const struct tailor_timeline *timeline)
{
	char *text = NULL;
	size_t size, at = 0;
	FILE *out = open_memstream(&text, &size);

	require(out);
	require(tailor_report_perfetto(out, timeline, 1) == 0);
	require(fclose(out) == 0 && size > 0);
	while (at < size) {
		size_t length = 0;

		require(text[at++] == 0x0a);
		for (unsigned int shift = 0;; shift += 7) {
			require(at < size && shift < 35);
			length |= (size_t)(text[at] & 0x7f) << shift;
			if (!(text[at++] & 0x80))
				break;
		}
		require(length <= size - at);
		at += length;
	}
	free(text);
}

/* The bytes of what was read are right, whatever was read: written and read again they are the same. */
static void check_written_again(const struct tailor_timeline *timeline)
{
	uint8_t *first, *second;
	size_t first_bytes, second_bytes, valid = 0;
	struct tailor_timeline again;

	require(record_encode(timeline, &first, &first_bytes) == 0);
	require(record_valid(first, first_bytes, &valid) && valid == first_bytes);
	require(record_decode(first + RECORD_HEADER_BYTES, first_bytes - RECORD_HEADER_BYTES, &again) == 0);
	require(record_encode(&again, &second, &second_bytes) == 0);
	require(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
	tailor_timeline_free(&again);
	free(first);
	free(second);
}

static void check_failover(const struct tailor_failover *failover)
{
	uint8_t *first, *second;
	size_t size, first_bytes, second_bytes;
	struct tailor_failover again;
	char *text = NULL;
	json_t *json;

	for (int as_json = 0; as_json < 2; as_json++) {
		FILE *out = open_memstream(&text, &size);

		require(out);
		require(tailor_report_failovers(out, failover, 1, as_json) == 0);
		require(fclose(out) == 0);
		if (!as_json) {
			check_lines(text, size, TABLE_COLUMNS);
		} else {
			json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
			require(json && json_array_size(json_object_get(json, "failovers")) == 1);
			json_decref(json);
		}
		free(text);
	}
	require(record_encode_failover(failover, &first, &first_bytes) == 0);
	require(record_decode_failover(first + RECORD_HEADER_BYTES, first_bytes - RECORD_HEADER_BYTES, &again) == 0);
	require(record_encode_failover(&again, &second, &second_bytes) == 0);
	require(first_bytes == second_bytes && memcmp(first, second, first_bytes) == 0);
	free(first);
	free(second);
}

/* Returns how many there are. */
static uint64_t read_failovers(const char *path)
{
	struct tailor_store_reader *reader;
	struct tailor_failover failover;
	uint64_t count = 0;
	int ret;

	require(tailor_store_reader_open(path, &reader) == 0);
	while ((ret = tailor_store_next_failover(reader, &failover)) == 1) {
		count++;
		check_failover(&failover);
	}
	require(ret == 0);
	tailor_store_reader_close(reader);
	return count;
}

static void read_image(const uint8_t *data, size_t size)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	uint64_t records = 0, bytes = 0, count = 0;
	const char *path = fuzz_file(data, size);
	int ret = tailor_store_reader_open(path, &reader);

	require(ret == 0 || ret == -EINVAL);
	if (ret < 0)
		return;
	while ((ret = tailor_store_next(reader, &timeline)) == 1) {
		require(++count <= size / RECORD_HEADER_BYTES);
		require(tailor_timeline_check(&timeline));
		check_text(&timeline);
		check_json(&timeline);
		check_trace(&timeline);
		check_written_again(&timeline);
		tailor_timeline_free(&timeline);
	}
	require(ret == 0);
	tailor_store_damage(reader, &records, &bytes);
	require(records <= size && bytes <= size);
	tailor_store_reader_close(reader);
	require(count + read_failovers(path) <= size / RECORD_HEADER_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *mended = malloc(size + 1);
	size_t at = SEGMENT_HEADER_BYTES;

	require(mended);
	read_image(data, size);
	memcpy(mended, data, size);
	while (at + RECORD_HEADER_BYTES < size) {
		size_t left = size - at - RECORD_HEADER_BYTES, length = load_u32(mended + at);

		/* A length that reaches behind the end is cut: most mutations are within a message. */
		if (length == 0 || length > left) {
			length = left;
			store_u32(mended + at, (uint32_t)length);
		}
		store_u32(mended + at + 4,
		          crc32c(crc32c(0, mended + at, 4), mended + at + RECORD_HEADER_BYTES, length));
		at += RECORD_HEADER_BYTES + length;
	}
	read_image(mended, size);
	free(mended);
	return 0;
}
