/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/date.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

const char *date_text(struct date *date, uint64_t second)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t now = (time_t)second;
	struct tm tm;

	if (date->text[0] && date->second == second)
		return date->text;
	date->second = second;
	if (!gmtime_r(&now, &tm))
		tm = (struct tm){.tm_mday = 1, .tm_year = 70, .tm_wday = 4};
	/* strftime() would use the locale's names. */
	snprintf(date->text, sizeof(date->text), "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * (tm.tm_wday % 7),
	         (unsigned int)tm.tm_mday % 100, months + 3 * (tm.tm_mon % 12), (unsigned int)(tm.tm_year + 1900) % 10000,
	         (unsigned int)tm.tm_hour % 100, (unsigned int)tm.tm_min % 100, (unsigned int)tm.tm_sec % 100);
	return date->text;
}

const char *date_now(struct date *date, uint64_t now_ns)
{
	if (now_ns >= date->until_ns) {
		uint64_t wall_ns = tailor_clock_wall_ns();

		date->until_ns = now_ns + TAILOR_NS_PER_S - wall_ns % TAILOR_NS_PER_S;
		(void)date_text(date, wall_ns / TAILOR_NS_PER_S);
	}
	return date->text;
}
