/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines for people and for programs. Texts of timelines come from clients and JVMs: nothing in them is trusted. */
#ifndef TAILOR_REPORT_REPORT_H
#define TAILOR_REPORT_REPORT_H

#include <stdio.h>
#include <tailor/failover.h>
#include <tailor/timeline.h>

/* No line of the text is wider than this. */
#define TAILOR_REPORT_COLUMNS 100

/*
 * Prints one timeline as text, UTF-8: what was asked, how long it took and why, how sure that is, then the spans in
 * order, those at the server indented below a line with their sum. Neighbouring spans that are shorter than 50 us and 0.5%
 * each share one line with their sum; so do a dozen and more of less than 2.5% each. Errors stay in ferror(out).
 */
void tailor_report_text(FILE *out, const struct tailor_timeline *timeline);

/*
 * Prints {"timelines": [...]}: begin, any number of timelines, end. Times are ns since the request's begin (offset_ns)
 * or CLOCK_MONOTONIC (others); causes by key and by name. `count` is how many were printed before. tailor_report_json()
 * returns 0 or -ENOMEM; errors of writing stay in ferror(out).
 */
void tailor_report_json_begin(FILE *out);
int tailor_report_json(FILE *out, const struct tailor_timeline *timeline, size_t count);
void tailor_report_json_end(FILE *out);

/*
 * Prints failovers: as a table with a line of at most 160 columns for each, and what they are in sum; or as {"failovers": [...]}, times in ns. Returns 0 or
 * -ENOMEM; errors of writing stay in ferror(out).
 */
int tailor_report_failovers(FILE *out, const struct tailor_failover *failovers, size_t count, int json);

/*
 * Writes the timelines, of one boot and by time, as a Perfetto trace (a stream of TracePackets; times are CLOCK_MONOTONIC,
 * with what CLOCK_REALTIME was): tracks for client, proxy, server threads, kernel and JVM, a slice for each request and each
 * span, and a flow for each request along them. Returns 0 or -ENOMEM; errors of writing stay in ferror(out).
 */
int tailor_report_perfetto(FILE *out, const struct tailor_timeline *timelines, size_t count);

/*
 * Copies text so that it is safe to print: printable UTF-8 stays, anything else (control characters, broken sequences,
 * characters that turn the direction of writing) becomes \xNN. Cuts it to `columns` columns, of which a wide character takes
 * two, with "..." at the end when something is left out, and to `size` bytes. Returns how many columns it takes.
 */
size_t tailor_report_printable(char *buffer, size_t size, const char *text, size_t columns);

/* The first character of a text that is not empty: returns its bytes, and how many columns it takes. */
size_t tailor_report_character(const char *text, size_t *ret_columns);

/* The server that the request was at during one of the timeline's spans: before it was moved, the one that it was moved from. */
const char *tailor_report_server(const struct tailor_timeline *timeline, const struct tailor_span *span);

/* Copies text as valid UTF-8: bytes that are not become U+FFFD. Returns buffer. */
char *tailor_report_utf8(char *buffer, size_t size, const char *text);

#endif /* TAILOR_REPORT_REPORT_H */
