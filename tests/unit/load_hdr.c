/* SPDX-License-Identifier: Apache-2.0 */
/* The HdrHistogram log of a load, read back by a decoder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <zlib.h>

#include "load/print.h"
#include "load_output.h"

#define WALL_NS (UINT64_C(1476304460250) * MS)
#define COUNTS 40000

/* A decoded histogram. */
struct decoded {
	uint64_t counts[COUNTS];
	uint64_t total;
	uint64_t highest;
	uint32_t digits;
};

static uint64_t big_endian(const uint8_t *bytes, size_t length)
{
	uint64_t value = 0;

	while (length--)
		value = value << 8 | *bytes++;
	return value;
}

static size_t from_base64(const char *text, uint8_t *bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t value = 0;
	size_t length = 0;
	int bits = 0;

	assert_int_equal(strcspn(text, "\n") % 4, 0);
	for (; *text && *text != '\n' && *text != '='; text++) {
		const char *digit = strchr(digits, *text);

		assert_non_null(digit);
		value = value << 6 | (uint32_t)(digit - digits);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			bytes[length++] = (uint8_t)(value >> bits);
		}
	}
	return length;
}

static void decode_counts(struct decoded *decoded, const uint8_t *bytes, size_t length)
{
	size_t index = 0;

	for (size_t at = 0; at < length;) {
		uint64_t raw = 0;
		int64_t value;

		for (int byte = 0;; byte++, at++) {
			assert_true(at < length && byte < 9);
			raw |= (uint64_t)(byte == 8 ? bytes[at] : bytes[at] & 0x7f) << 7 * byte;
			if (byte == 8 || bytes[at] < 0x80)
				break;
		}
		at++;
		value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
		if (value < 0) {
			index += (size_t)-value;
			continue;
		}
		assert_true(index < COUNTS);
		decoded->counts[index++] = (uint64_t)value;
		decoded->total += (uint64_t)value;
	}
}

static void decode(struct decoded *decoded, const char *text)
{
	uint8_t *packed = malloc(strlen(text)), *plain = malloc(1 << 20);
	size_t length = from_base64(text, packed);
	uLongf plain_length = 1 << 20;
	double ratio;
	uint64_t bits;

	memset(decoded, 0, sizeof(*decoded));
	assert_int_equal(big_endian(packed, 4), 0x1c849314);
	assert_int_equal(big_endian(packed + 4, 4), length - 8);
	assert_int_equal(uncompress(plain, &plain_length, packed + 8, length - 8), Z_OK);
	assert_int_equal(big_endian(plain, 4), 0x1c849313);
	assert_int_equal(big_endian(plain + 4, 4), plain_length - 40);
	assert_int_equal(big_endian(plain + 8, 4), 0);
	decoded->digits = (uint32_t)big_endian(plain + 12, 4);
	assert_int_equal(big_endian(plain + 16, 8), 1);
	decoded->highest = big_endian(plain + 24, 8);
	bits = big_endian(plain + 32, 8);
	memcpy(&ratio, &bits, sizeof(ratio));
	assert_true(ratio == 1.0);
	decode_counts(decoded, plain + 40, plain_length - 40);
	free(packed);
	free(plain);
}

/* The largest value that HdrHistogram counts at this index, with 2048 sub-buckets and a unit of 1. */
static uint64_t highest_at(size_t index)
{
	size_t bucket = index >> 10, sub = (index & 1023) + 1024;

	if (bucket == 0)
		return index;
	return ((uint64_t)(sub + 1) << (bucket - 1)) - 1;
}

static uint64_t percentile(const struct decoded *decoded, double percent)
{
	uint64_t rank = (uint64_t)ceil(percent / 100 * (double)decoded->total - 1e-6), seen = 0;

	for (size_t i = 0; i < COUNTS; i++) {
		seen += decoded->counts[i];
		if (seen >= rank && seen > 0)
			return highest_at(i);
	}
	return 0;
}

static void assert_near(uint64_t one, uint64_t other)
{
	double off = fabs((double)one - (double)other);

	assert_true(off <= 0.002 * (double)other);
}

static void rows_hold_every_count_and_its_value(void **state)
{
	static const double percents[] = {0.1, 50, 90, 99, 99.9, 99.99, 100};
	struct decoded *decoded = malloc(sizeof(*decoded));
	struct tailor_load_result result;
	struct capture capture;
	uint64_t ns = 1;

	(void)state;
	result_empty(&result);
	srand(3);
	for (int i = 0; i < 20000; i++)
		tailor_histogram_record(result.response, (uint64_t)exp(6 + 12.0 * rand() / RAND_MAX));
	/* Both sides of each power of two, up to the largest value there is. */
	for (; ns <= UINT64_C(3600000000000); ns *= 2) {
		tailor_histogram_record(result.response, ns);
		tailor_histogram_record(result.response, ns - 1);
	}
	tailor_histogram_record(result.response, UINT64_C(3600000000000));
	for (int i = 0; i < 300; i++) /* a count of more than one byte */
		tailor_histogram_record(result.response, 5 * MS);
	capture_open(&capture);
	assert_int_equal(tailor_load_hdr_add(capture.out, WALL_NS, WALL_NS + 12 * TAILOR_NS_PER_S, &result), 0);
	assert_memory_equal(capture.text, "2.000,10.000,3600000.000,HISTFA", 31);
	decode(decoded, strrchr(capture.text, ',') + 1);
	assert_int_equal(decoded->digits, 3);
	assert_int_equal(decoded->highest, UINT64_C(3600000000000));
	assert_int_equal(decoded->total, tailor_histogram_count(result.response));
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		assert_near(percentile(decoded, percents[i]),
		            tailor_histogram_percentile(result.response, percents[i]));
	capture_close(&capture);
	tailor_load_result_free(&result);
	free(decoded);
}

static void an_interval_without_answers_is_a_row_without_counts(void **state)
{
	struct decoded *decoded = malloc(sizeof(*decoded));
	struct tailor_load_result result;
	struct capture capture;

	(void)state;
	result_empty(&result);
	capture_open(&capture);
	/* The clock was set back: no negative start. */
	assert_int_equal(tailor_load_hdr_add(capture.out, WALL_NS, WALL_NS - 5, &result), 0);
	assert_memory_equal(capture.text, "0.000,10.000,0.000,HISTFA", 25);
	decode(decoded, strrchr(capture.text, ',') + 1);
	assert_int_equal(decoded->total, 0);
	capture_close(&capture);
	tailor_load_result_free(&result);
	free(decoded);
}

static void the_head_says_when_the_log_began(void **state)
{
	struct capture capture;

	(void)state;
	capture_open(&capture);
	assert_int_equal(tailor_load_hdr_begin(capture.out, WALL_NS), 0);
	assert_non_null(strstr(capture.text, "\n#[Histogram log format version 1.3]\n"));
	assert_non_null(strstr(capture.text, "\n#[BaseTime: 1476304460.250 (seconds since epoch)]\n"));
	assert_non_null(strstr(capture.text,
	                       "\n#[StartTime: 1476304460.250 (seconds since epoch), 2016-10-12T20:34:20.250Z]\n"));
	assert_non_null(strstr(
	        capture.text,
	        "\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"));
	capture_close(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rows_hold_every_count_and_its_value),
	        cmocka_unit_test(an_interval_without_answers_is_a_row_without_counts),
	        cmocka_unit_test(the_head_says_when_the_log_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
