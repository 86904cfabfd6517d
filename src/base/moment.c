/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

/* Digits after the point; those beyond a nanosecond are passed over. Returns where they end, NULL without any. */
static const char *read_fraction(const char *digits, uint64_t *ret_ns)
{
	size_t count = strspn(digits, "0123456789");
	uint64_t unit = TAILOR_NS_PER_S;

	for (size_t i = 0; i < count && unit > 1; i++) {
		unit /= 10;
		*ret_ns += (uint64_t)(digits[i] - '0') * unit;
	}
	return count ? digits + count : NULL;
}

int tailor_parse_moment(const char *text, uint64_t *ret_ns)
{
	struct tm utc = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
	unsigned int hours, minutes;
	uint64_t fraction_ns = 0;
	time_t seconds;
	int used = 0;

	if (rest && *rest == '.')
		rest = read_fraction(rest + 1, &fraction_ns);
	if (!rest)
		return -EINVAL;
	seconds = timegm(&utc);
	if (strcmp(rest, "Z") != 0 && strcmp(rest, "z") != 0) {
		if ((*rest != '+' && *rest != '-') || sscanf(rest + 1, "%2u:%2u%n", &hours, &minutes, &used) != 2 ||
		    used != 5 || rest[6] || hours > 23 || minutes > 59)
			return -EINVAL;
		seconds += (*rest == '-' ? 1 : -1) * (time_t)(hours * 3600 + minutes * 60);
	}
	/* 64 bits of nanoseconds end in 2554. */
	if (seconds < 0 || (uint64_t)seconds >= UINT64_MAX / TAILOR_NS_PER_S)
		return -EINVAL;
	*ret_ns = (uint64_t)seconds * TAILOR_NS_PER_S + fraction_ns;
	return 0;
}
