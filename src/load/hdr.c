/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HdrHistogram's log format 1.3 with its V2 encoding: all numbers big-endian, counts as ZigZag LEB128 of 64 bits whose
 * ninth byte carries eight bits, a run of n zeros as -n; around it the length and zlib's format; base64 of that in the
 * log. https://github.com/HdrHistogram/HdrHistogram: AbstractHistogram.encodeIntoByteBuffer, ZigZagEncoding,
 * HistogramLogWriter.
 *
 * With 3 significant digits from 1 on, its buckets and those of tailor_histogram are the same: each power of two from
 * 2^10 on in 1024 steps. Counts are thus handed over exactly.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "load/lines.h"

#define COOKIE_V2 0x1c849313            /* 0x1c849303 with 1 in the nibble that was the size of a word */
#define COOKIE_V2_COMPRESSED 0x1c849314 /* 0x1c849304, likewise */
#define SIGNIFICANT_DIGITS 3
#define LOWEST 1
#define HIGHEST UINT64_C(3600000000000)
#define HEADER_BYTES 40
#define OUTER_BYTES 8
#define COUNT_BYTES_MAX 9

/* Bytes that grow; `failed` once there was no memory. */
struct bytes {
	uint8_t *data;
	size_t length;
	size_t room;
	int failed;
};

static void put(struct bytes *bytes, const void *data, size_t length)
{
	if (bytes->failed)
		return;
	if (bytes->room - bytes->length < length) {
		size_t room = 2 * bytes->room + length + 1024;
		uint8_t *more = realloc(bytes->data, room);

		if (!more) {
			bytes->failed = 1;
			return;
		}
		bytes->data = more;
		bytes->room = room;
	}
	memcpy(bytes->data + bytes->length, data, length);
	bytes->length += length;
}

static void put_u32(struct bytes *bytes, uint32_t value)
{
	value = htobe32(value);
	put(bytes, &value, sizeof(value));
}

static void put_u64(struct bytes *bytes, uint64_t value)
{
	value = htobe64(value);
	put(bytes, &value, sizeof(value));
}

static void put_zigzag(struct bytes *bytes, int64_t value)
{
	uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
	uint8_t coded[COUNT_BYTES_MAX];
	size_t length = 0;

	while (length < COUNT_BYTES_MAX - 1 && left >= 0x80) {
		coded[length++] = (uint8_t)(left | 0x80);
		left >>= 7;
	}
	coded[length++] = (uint8_t)left;
	put(bytes, coded, length);
}

static void put_counts(struct bytes *bytes, const struct tailor_histogram *histogram)
{
	uint64_t ns, count;
	size_t position = 0, next = 0;

	if (tailor_histogram_count(histogram) == 0)
		put_zigzag(bytes, 0);
	while (tailor_histogram_next(histogram, &position, &ns, &count)) {
		size_t index = tailor_histogram_bucket_of(ns), zeros = index - next;

		if (zeros > 0)
			put_zigzag(bytes, zeros == 1 ? 0 : -(int64_t)zeros);
		put_zigzag(bytes, (int64_t)count);
		next = index + 1;
	}
}

static void put_histogram(struct bytes *bytes, const struct tailor_histogram *histogram)
{
	const double conversion_ratio = 1;
	uint64_t ratio_bits;
	uint32_t length;

	memcpy(&ratio_bits, &conversion_ratio, sizeof(ratio_bits));
	put_u32(bytes, COOKIE_V2);
	put_u32(bytes, 0); /* the length, known below */
	put_u32(bytes, 0); /* normalizing index offset */
	put_u32(bytes, SIGNIFICANT_DIGITS);
	put_u64(bytes, LOWEST);
	put_u64(bytes, HIGHEST);
	put_u64(bytes, ratio_bits);
	put_counts(bytes, histogram);
	if (bytes->failed)
		return;
	length = htobe32((uint32_t)(bytes->length - HEADER_BYTES));
	memcpy(bytes->data + 4, &length, sizeof(length));
}

static int put_compressed(struct bytes *bytes, const struct bytes *plain)
{
	uLongf length = compressBound(plain->length);
	cleanup_free uint8_t *packed = malloc(length);

	if (!packed || compress2(packed, &length, plain->data, plain->length, Z_DEFAULT_COMPRESSION) != Z_OK)
		return -ENOMEM;
	put_u32(bytes, COOKIE_V2_COMPRESSED);
	put_u32(bytes, (uint32_t)length);
	put(bytes, packed, length);
	return bytes->failed ? -ENOMEM : 0;
}

static void put_base64(FILE *out, const uint8_t *data, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t three = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
		                 (left > 2 ? data[i + 2] : 0);

		fputc(digits[three >> 18], out);
		fputc(digits[three >> 12 & 63], out);
		fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[three & 63] : '=', out);
	}
}

int tailor_load_hdr_begin(FILE *out, uint64_t start_wall_ns)
{
	char time[TAILOR_LOAD_TIME_BYTES];
	double start_s = (double)(start_wall_ns / TAILOR_NS_PER_MS) / 1e3;

	/* BaseTime says that the rows' times count from there; without it readers have to guess. */
	fprintf(out,
	        "#[Response times since due, in ns, by tailor load]\n#[Histogram log format version 1.3]\n"
	        "#[BaseTime: %.3f (seconds since epoch)]\n#[StartTime: %.3f (seconds since epoch), %s]\n"
	        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
	        start_s, start_s, tailor_load_format_time(time, start_wall_ns, 3));
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

int tailor_load_hdr_add(FILE *out, uint64_t start_wall_ns, uint64_t wall_ns, const struct tailor_load_result *interval)
{
	uint64_t length_ns = interval->until_ns - interval->from_ns;
	/* CLOCK_REALTIME may have been set back meanwhile; no reader takes a negative time. */
	uint64_t start_ns = wall_ns > start_wall_ns + length_ns ? wall_ns - start_wall_ns - length_ns : 0;
	struct bytes plain = {0}, packed = {0};
	int ret;

	put_histogram(&plain, interval->response);
	ret = plain.failed ? -ENOMEM : put_compressed(&packed, &plain);
	if (ret == 0) {
		fprintf(out, "%.3f,%.3f,%.3f,", (double)start_ns / 1e9, (double)length_ns / 1e9,
		        (double)tailor_histogram_max(interval->response) / 1e6);
		put_base64(out, packed.data, packed.length);
		fputc('\n', out);
		ret = fflush(out) != 0 || ferror(out) ? -EIO : 0;
	}
	free(plain.data);
	free(packed.data);
	return ret;
}
