/* SPDX-License-Identifier: Apache-2.0 */
#include "load/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void tailor_load_line_add(struct tailor_load_line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - line->length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line->text + line->length, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		line->length += (size_t)length < room ? (size_t)length : room - 1;
}

char *tailor_load_format_time(char buffer[TAILOR_LOAD_TIME_BYTES], uint64_t wall_ns, int digits)
{
	time_t seconds = (time_t)(wall_ns / TAILOR_NS_PER_S);
	unsigned int fraction = (unsigned int)(wall_ns % TAILOR_NS_PER_S);
	struct tm parts;
	size_t length;

	gmtime_r(&seconds, &parts);
	length = strftime(buffer, TAILOR_LOAD_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
	for (int i = digits; i < 9; i++)
		fraction /= 10;
	if (digits > 0)
		length += (size_t)snprintf(buffer + length, TAILOR_LOAD_TIME_BYTES - length, ".%0*u", digits, fraction);
	snprintf(buffer + length, TAILOR_LOAD_TIME_BYTES - length, "Z");
	return buffer;
}

const char *tailor_load_arrival_name(enum tailor_load_arrival arrival)
{
	switch (arrival) {
	case TAILOR_LOAD_UNIFORM: return "uniform";
	case TAILOR_LOAD_POISSON: return "poisson";
	case TAILOR_LOAD_CLOSED: return "closed";
	case TAILOR_LOAD_RECORDED: return "recorded";
	}
	return "unknown";
}

const char *tailor_load_catch_up_name(enum tailor_load_catch_up catch_up)
{
	switch (catch_up) {
	case TAILOR_LOAD_CATCH_UP_FULL: return "full";
	case TAILOR_LOAD_CATCH_UP_BOUNDED: return "bounded";
	case TAILOR_LOAD_CATCH_UP_NONE: return "none";
	}
	return "unknown";
}

size_t tailor_load_powers(const struct tailor_histogram *histogram, struct tailor_load_power rows[TAILOR_LOAD_POWERS])
{
	size_t count = 0, last = 0;

	for (size_t i = 0; i < TAILOR_LOAD_POWERS; i++) {
		struct tailor_load_power row = {.from_us = i ? UINT64_C(1) << (i - 1) : 0, .to_us = UINT64_C(1) << i};

		row.count = tailor_histogram_between(histogram, row.from_us * TAILOR_NS_PER_US,
		                                     row.to_us * TAILOR_NS_PER_US);
		if (count == 0 && row.count == 0)
			continue;
		rows[count++] = row;
		if (row.count > 0)
			last = count;
	}
	return last;
}
