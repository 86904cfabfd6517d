/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct unit {
	const char *name;
	double factor;
};

/*
 * Reads "NUMBER UNIT" without a space between them: digits, at most one point, then one of the units.
 * strtod() alone would also take signs, spaces, exponents, "inf" and hexadecimal.
 */
static int parse_with_unit(const char *text, const struct unit *units, double max, uint64_t *ret_value)
{
	size_t length = strspn(text, "0123456789.");
	const char *point = memchr(text, '.', length);
	double number;

	if (length == 0 || !isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[length - 1]))
		return -EINVAL;
	if (point && memchr(point + 1, '.', length - (size_t)(point + 1 - text)))
		return -EINVAL;
	number = strtod(text, NULL);
	for (; units->name; units++) {
		if (strcmp(text + length, units->name) != 0)
			continue;
		number *= units->factor;
		if (number > max)
			return -ERANGE;
		*ret_value = (uint64_t)llround(number);
		return 0;
	}
	return -EINVAL;
}

int tailor_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},    {"s", 1e9},
	                                    {"m", 60e9}, {"h", 3600e9}, {NULL, 0}};

	return parse_with_unit(text, units, 1000 * 3600e9, ret_ns);
}

int tailor_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {{"", 1},
	                                    {"B", 1},
	                                    {"kB", 1e3},
	                                    {"MB", 1e6},
	                                    {"GB", 1e9},
	                                    {"KiB", 1024},
	                                    {"MiB", 1024.0 * 1024},
	                                    {"GiB", 1024.0 * 1024 * 1024},
	                                    {NULL, 0}};

	return parse_with_unit(text, units, 1024.0 * 1024 * 1024 * 1024 * 1024, ret_bytes);
}

int tailor_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno || value < min || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

char *tailor_format_size(char *buffer, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"", "KiB", "MiB", "GiB"};
	size_t unit = 0;

	while (unit < 3 && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buffer, size, "%llu%s", (unsigned long long)bytes, units[unit]);
	return buffer;
}

char *tailor_format_duration(char *buffer, size_t size, uint64_t ns)
{
	static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	size_t unit = 0;
	double value;

	/* The rounded value decides, so that 999.96 us reads "1.00 ms" and never "1000 us". */
	while (unit < 3 && (double)ns / units[unit].factor >= 999.5)
		unit++;
	value = (double)ns / units[unit].factor;
	if (unit == 0 || value >= 99.95)
		snprintf(buffer, size, "%.0f %s", value, units[unit].name);
	else
		snprintf(buffer, size, "%.*f %s", value >= 9.995 ? 1 : 2, value, units[unit].name);
	return buffer;
}
