/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/address.h"
#include "base/moment.h"
#include "base/units.h"

static void durations_need_a_unit_and_nothing_else(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"5ms", 5000000}, {"1.5s", 1500000000}, {"250us", 250000}, {"100ns", 100}, {"2m", 120000000000}, {"0ms", 0}};
	static const char *const bad[] = {"", "5", "ms", "-5ms", " 5ms", "5 ms", "5ms ", "1e3ms", "0x5ms", "1.2.3s", "infs", "5.ms", ".5ms", "5MS"};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(tailor_parse_duration(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tailor_parse_duration(bad[i], &ns), -EINVAL);
	assert_int_equal(tailor_parse_duration("9999h", &ns), -ERANGE);
}

static void sizes_know_binary_and_decimal_units(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_int_equal(tailor_parse_size("256MiB", &bytes), 0);
	assert_int_equal(bytes, 256u << 20);
	assert_int_equal(tailor_parse_size("10kB", &bytes), 0);
	assert_int_equal(bytes, 10000);
	assert_int_equal(tailor_parse_size("512", &bytes), 0);
	assert_int_equal(bytes, 512);
	assert_int_equal(tailor_parse_size("64kib", &bytes), -EINVAL);
	assert_int_equal(tailor_parse_size("1XB", &bytes), -EINVAL);
	assert_int_equal(tailor_parse_size("9999999GiB", &bytes), -ERANGE);
}

static void sizes_print_as_they_are_written(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0"}, {1000, "1000"}, {1024, "1KiB"}, {1536, "1536"}, {65536, "64KiB"}, {256u << 20, "256MiB"}, {UINT64_C(1) << 42, "4096GiB"}};
	char buffer[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(tailor_format_size(buffer, sizeof(buffer), cases[i].bytes), cases[i].text);
}

static void moments_are_read_to_the_nanosecond_with_their_offset(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
	        {"1970-01-01T00:00:00Z", 0},
	        {"2023-11-14T22:13:20Z", UINT64_C(1700000000000000000)},
	        {"2023-11-14T22:13:20.5z", UINT64_C(1700000000500000000)},
	        {"2023-11-14T22:13:20.0000000019Z", UINT64_C(1700000000000000001)},
	        {"2023-11-15T00:13:20.25+02:00", UINT64_C(1700000000250000000)},
	        {"2023-11-14T14:43:20-07:30", UINT64_C(1700000000000000000)},
	};
	static const char *const bad[] = {"", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zx",
	                                  "2023-11-14T22:13:20+2:00", "2023-11-14T22:13:20+25:00", "1969-12-31T23:59:59Z", "2554-07-22T00:00:00Z"};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(tailor_parse_moment(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tailor_parse_moment(bad[i], &ns), -EINVAL);
}

static void durations_print_three_digits_in_a_fitting_unit(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {{0, "0 ns"},          {850, "850 ns"},          {12345, "12.3 us"},       {4070000, "4.07 ms"},
	             {999960, "1.00 ms"},  {99960000, "100 ms"},     {1500000000, "1.50 s"},   {75000000000, "75.0 s"},
	             {9996000, "10.0 ms"}, {138000000, "138 ms"}};
	char buffer[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(tailor_format_duration(buffer, sizeof(buffer), cases[i].ns), cases[i].text);
}

static void addresses_survive_a_round_trip(void **state)
{
	static const char *const good[] = {"127.0.0.1:8080", "[::1]:9201", "0.0.0.0:0", "unix:/tmp/x.sock", "unix:./x.sock"};
	static const char *const bad[] = {"", "127.0.0.1", ":80", "localhost:80", "127.0.0.1:65536", "127.0.0.1:-1", "[::1]", "::1:80x", "unix:", "1.2.3.4.5:80"};
	struct tailor_address address;
	char text[TAILOR_ADDRESS_TEXT_BYTES];
	char path[200] = "unix:";

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(tailor_address_parse(good[i], &address), 0);
		assert_string_equal(tailor_address_format(text, &address), good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tailor_address_parse(bad[i], &address), -EINVAL);
	for (size_t i = 5; i < 150; i++)
		path[i] = 'p';
	assert_int_equal(tailor_address_parse(path, &address), -ENAMETOOLONG);
}

static void only_loopback_and_unix_sockets_are_local(void **state)
{
	static const struct {
		const char *text;
		int local;
	} cases[] = {{"127.0.0.1:1", 1}, {"127.9.9.9:1", 1}, {"[::1]:1", 1}, {"unix:x", 1}, {"0.0.0.0:1", 0}, {"10.0.0.1:1", 0}, {"[::]:1", 0}};
	struct tailor_address address;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(tailor_address_parse(cases[i].text, &address), 0);
		assert_int_equal(tailor_address_is_local(&address), cases[i].local);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_need_a_unit_and_nothing_else),
		cmocka_unit_test(sizes_know_binary_and_decimal_units),
		cmocka_unit_test(sizes_print_as_they_are_written),
		cmocka_unit_test(moments_are_read_to_the_nanosecond_with_their_offset),
		cmocka_unit_test(durations_print_three_digits_in_a_fitting_unit),
		cmocka_unit_test(addresses_survive_a_round_trip),
		cmocka_unit_test(only_loopback_and_unix_sockets_are_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
