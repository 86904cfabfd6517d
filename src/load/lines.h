/* SPDX-License-Identifier: Apache-2.0 */
/* What the printers of this room share. */
#ifndef TAILOR_LOAD_LINES_H
#define TAILOR_LOAD_LINES_H

#include "load/print.h"

/* A line that is put together before it is written, so that it can be cut and is written at once. */
struct tailor_load_line {
	char text[640];
	size_t length;
};

/* Appends; what does not fit is left out. */
void tailor_load_line_add(struct tailor_load_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The columns of slow_cooker, without the line's end; interval_ns is the nominal length of the intervals. */
void tailor_load_classic_header(FILE *out, const char *url, const struct tailor_load_options *options);
void tailor_load_classic_line(struct tailor_load_line *line, uint64_t interval_ns, uint64_t wall_ns,
                              const struct tailor_load_result *interval, int magnitude);

/* wall_ns as RFC 3339 in UTC, with `digits` (0..9) digits of the second's fraction. Returns buffer. */
#define TAILOR_LOAD_TIME_BYTES 40
char *tailor_load_format_time(char buffer[TAILOR_LOAD_TIME_BYTES], uint64_t wall_ns, int digits);

/* "uniform", "poisson", ... as on the command line. */
const char *tailor_load_arrival_name(enum tailor_load_arrival arrival);
const char *tailor_load_catch_up_name(enum tailor_load_catch_up catch_up);

/* Values in [from_us, to_us), powers of two; the first row of all is what is below 1 us. */
#define TAILOR_LOAD_POWERS 34
struct tailor_load_power {
	uint64_t from_us;
	uint64_t to_us;
	uint64_t count;
};

/* Fills rows from the first to the last that is not empty; the counts add up to the histogram's. Returns how many. */
size_t tailor_load_powers(const struct tailor_histogram *histogram, struct tailor_load_power rows[TAILOR_LOAD_POWERS]);

#endif /* TAILOR_LOAD_LINES_H */
