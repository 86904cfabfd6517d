/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a load for people and for programs. All functions belong to one thread. */
#ifndef TAILOR_LOAD_PRINT_H
#define TAILOR_LOAD_PRINT_H

#include <stdio.h>

#include "load/load.h"

/* How p99 has changed against the last intervals. */
#define TAILOR_LOAD_HISTORY 15
struct tailor_load_change {
	uint64_t p99_ns[TAILOR_LOAD_HISTORY]; /* of the last intervals with answers; a ring */
	size_t count;                         /* ever recorded */
};

/*
 * Compares p99_ns with the intervals recorded before, then records it. *ret_magnitude: -3..3, powers of ten away from the
 * mean of the last five. *ret_outlier: -3..3, by how many median absolute deviations (scaled to a standard deviation) it is
 * off the median of the last TAILOR_LOAD_HISTORY: over 4, 8 or 16 of them; 0 before there are five, and for a change of
 * less than 10%, which is not worth an eye.
 */
void tailor_load_change_add(struct tailor_load_change *change, uint64_t p99_ns, int *ret_magnitude, int *ret_outlier);

enum tailor_load_format {
	TAILOR_LOAD_FORMAT_TABLE,   /* for the eye */
	TAILOR_LOAD_FORMAT_CLASSIC, /* the columns of slow_cooker, in ms */
};

/* What prints interval lines. Zeroed before first use. */
struct tailor_load_printer {
	FILE *out;
	enum tailor_load_format format;
	const struct tailor_load_options *options;
	int refresh; /* `out` is a terminal: tailor_load_print_progress() writes a line there that the next one replaces */
	struct tailor_load_change change;
	/* the printer's own */
	int progress_shown;
};

/* The lines above the interval lines. */
void tailor_load_print_header(struct tailor_load_printer *printer, const char *url);
/* One line of an interval that ended at wall_ns (CLOCK_REALTIME). */
void tailor_load_print_interval(struct tailor_load_printer *printer, uint64_t wall_ns, const struct tailor_load_result *interval);
/* What the interval has come to so far; does nothing without `refresh`. */
void tailor_load_print_progress(struct tailor_load_printer *printer, uint64_t wall_ns, const struct tailor_load_result *so_far);

/* What is known of the slowest requests' timelines; an entry for each of total->slowest, "" where there is none. */
#define TAILOR_LOAD_CAUSE_BYTES 128
struct tailor_load_causes {
	char text[TAILOR_LOAD_SLOWEST][TAILOR_LOAD_CAUSE_BYTES];
};

/* Totals, percentiles, histogram by powers of two, the generator's own account and the slowest requests. causes may be NULL. */
void tailor_load_print_total(FILE *out, const char *url, const struct tailor_load_options *options,
                             const struct tailor_load_result *total, const struct tailor_load_causes *causes);
/* The same as one JSON object. Returns 0, -ENOMEM or -EIO. */
int tailor_load_print_json(FILE *out, const char *url, const struct tailor_load_options *options,
                           const struct tailor_load_result *total, const struct tailor_load_causes *causes);

/* CSV (RFC 4180): the head line, then a row for each interval. Return 0 or -EIO. */
int tailor_load_csv_begin(FILE *out);
int tailor_load_csv_add(FILE *out, uint64_t wall_ns, const struct tailor_load_result *interval);

/*
 * A log in the format of HdrHistogram's HistogramLogWriter, version 1.3: an interval's response times a line, in ns with
 * three significant digits, V2 encoding, compressed. start_wall_ns: CLOCK_REALTIME. Return 0, -EIO or -ENOMEM.
 */
int tailor_load_hdr_begin(FILE *out, uint64_t start_wall_ns);
int tailor_load_hdr_add(FILE *out, uint64_t start_wall_ns, uint64_t wall_ns, const struct tailor_load_result *interval);

/* A limit of --fail-if: "p99.9>20ms", "bad>0", "in-time<99%", "rate<450". */
struct tailor_load_condition {
	const char *text; /* as given; must live as long */
	int metric;       /* the parser's own */
	int relation;
	double percent;
	double value; /* ns, a number, or percent */
};

/*
 * Reads a condition: METRIC, one of > >= < <=, VALUE. Times (min, mean, max, pN with 0 <= N <= 100, and each of them with
 * "service-" before) are response times and take a unit; good, bad, different, failed, dropped and requests are numbers, or
 * with % a part of those that came due; in-time and wanted likewise; rate is good answers a second. Returns 0, or -EINVAL with
 * one line in error that says what to write.
 */
int tailor_load_condition_parse(const char *text, struct tailor_load_condition *ret_condition,
                                char error[TAILOR_LOAD_ERROR_BYTES]);
/* Whether it holds of the total; then reason says so in one line: "p99.9>20ms: p99.9 was 31.2 ms". A time of no answers never
 * holds for < and always for >: there was none that was fast enough. */
int tailor_load_condition_holds(const struct tailor_load_condition *condition, const struct tailor_load_result *total,
                                char reason[TAILOR_LOAD_ERROR_BYTES]);

#endif /* TAILOR_LOAD_PRINT_H */
