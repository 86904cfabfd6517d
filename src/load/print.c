/* SPDX-License-Identifier: Apache-2.0 */
/* Interval lines, as they come and as they grow. */
#include "load/print.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/units.h"
#include "load/lines.h"

#define CELL_BYTES 32
#define TERMINAL_COLUMNS 80
#define CLEAR_LINE "\r\033[K"

/* A duration without the blank before its unit: a field is a word, for awk as for the eye. */
static const char *format_word(char buffer[CELL_BYTES], uint64_t ns)
{
	char *blank = strchr(tailor_format_duration(buffer, CELL_BYTES, ns), ' ');

	if (blank)
		memmove(blank, blank + 1, strlen(blank));
	return buffer;
}

static const char *cell(char buffer[CELL_BYTES], const struct tailor_histogram *histogram, uint64_t ns)
{
	return tailor_histogram_count(histogram) ? format_word(buffer, ns) : "-";
}

/* What was asked for, "100ms" rather than "100.0ms". */
static const char *format_limit(char buffer[CELL_BYTES], uint64_t ns)
{
	size_t number, end;

	format_word(buffer, ns);
	number = end = strspn(buffer, "0123456789.");
	if (!memchr(buffer, '.', number))
		return buffer;
	while (buffer[end - 1] == '0')
		end--;
	if (buffer[end - 1] == '.')
		end--;
	memmove(buffer + end, buffer + number, strlen(buffer + number) + 1);
	return buffer;
}

static int has_dropped(const struct tailor_load_options *options)
{
	return options->catch_up != TAILOR_LOAD_CATCH_UP_FULL;
}

static void table_header(FILE *out, const struct tailor_load_options *options)
{
	char limit[CELL_BYTES], head[CELL_BYTES + 1];
	int closed = options->arrival == TAILOR_LOAD_CLOSED;

	snprintf(head, sizeof(head), "<%s", format_limit(limit, options->in_time_ns));
	fprintf(out,
	        "good: as expected, bad: another status or body, failed: no whole answer; wanted: %s\n"
	        "%s: good that soon, of the wanted; times, of the answered ones, count from the moment each was %s\n"
	        "change of p99: + ten times the mean of the last five, ++ a hundred, +++ a thousand, - a tenth ...; "
	        "^ out of line with\n"
	        "  the last %d by over 4 deviations, ^^ by 8, ^^^ by 16, v below them ...; "
	        "id: of the slowest request, for `tailor dump`\n",
	        closed ? "sent" : "came due", head, closed ? "sent" : "due", TAILOR_LOAD_HISTORY);
	if (closed)
		fputs("closed loop: each connection waits for its answer before it sends again, "
		      "so while the server stands still it is\n"
		      "  asked almost nothing, and these times hide what clients that come on their own would have to wait\n",
		      out);
	if (has_dropped(options))
		fputs("dropped: came due and was never sent, since it was too late for --catch-up\n", out);
	fprintf(out, "%-8s %7s %5s %6s", "time", "good", "bad", "failed");
	if (has_dropped(options))
		fprintf(out, " %7s", "dropped");
	fprintf(out, " %7s %6s %7s [%6s  %6s  %6s  %6s] %7s %-6s %s\n", "wanted", head, "min", "p50", "p95", "p99",
	        "p99.9", "max", "change", "id");
}

static void add_mark(char mark[8], int change, char up, char down)
{
	size_t length = strlen(mark);

	for (int i = 0; i < (change < 0 ? -change : change); i++)
		mark[length++] = change < 0 ? down : up;
	mark[length] = '\0';
}

/*
 * With one decimal, cut off, not rounded: 100.0% means all of them. At most that, although answers of what came due in
 * the interval before are among these.
 */
static double percent_in_time(const struct tailor_load_result *interval)
{
	uint64_t permille = interval->in_time * 1000 / interval->wanted;

	return permille < 1000 ? (double)permille / 10 : 100;
}

/* At most 118 columns with counts of up to seven digits and one of our ids, 126 with dropped ones. */
static void table_line(struct tailor_load_line *line, const struct tailor_load_options *options, uint64_t wall_ns,
                       const struct tailor_load_result *interval, const char *mark)
{
	static const double percents[] = {50, 95, 99, 99.9};
	const struct tailor_histogram *response = interval->response;
	const char *id = interval->slow_count > 0 ? interval->slowest[0].request_id : "";
	time_t seconds = (time_t)(wall_ns / TAILOR_NS_PER_S);
	char clock[16], buffer[CELL_BYTES];
	struct tm parts;

	localtime_r(&seconds, &parts);
	strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
	tailor_load_line_add(line, "%s %7" PRIu64 " %5" PRIu64 " %6" PRIu64, clock, interval->good, interval->bad,
	                     tailor_load_result_failed(interval));
	if (has_dropped(options))
		tailor_load_line_add(line, " %7" PRIu64, interval->dropped);
	tailor_load_line_add(line, " %7" PRIu64, interval->wanted);
	if (interval->wanted > 0)
		tailor_load_line_add(line, " %5.1f%%", percent_in_time(interval));
	else
		tailor_load_line_add(line, " %6s", "-");
	tailor_load_line_add(line, " %7s [", cell(buffer, response, tailor_histogram_min(response)));
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		tailor_load_line_add(line, "%s%6s", i ? "  " : "",
		                     cell(buffer, response, tailor_histogram_percentile(response, percents[i])));
	tailor_load_line_add(line, "] %7s", cell(buffer, response, tailor_histogram_max(response)));
	if (mark[0] || id[0])
		tailor_load_line_add(line, id[0] ? " %-6s" : " %s", mark);
	if (id[0])
		tailor_load_line_add(line, " %s", id);
	if (interval->dropped > 0 && !has_dropped(options))
		tailor_load_line_add(line, " dropped %" PRIu64, interval->dropped);
}

void tailor_load_print_header(struct tailor_load_printer *printer, const char *url)
{
	if (printer->format == TAILOR_LOAD_FORMAT_CLASSIC)
		tailor_load_classic_header(printer->out, url, printer->options);
	else
		table_header(printer->out, printer->options);
	fflush(printer->out);
}

void tailor_load_print_interval(struct tailor_load_printer *printer, uint64_t wall_ns,
                                const struct tailor_load_result *interval)
{
	struct tailor_load_line line = {.length = 0};
	int magnitude = 0, outlier = 0;
	char mark[8] = "";

	/* An interval without answers has no p99 to compare or to remember. */
	if (tailor_histogram_count(interval->response) > 0)
		tailor_load_change_add(&printer->change, tailor_histogram_percentile(interval->response, 99),
		                       &magnitude, &outlier);
	if (printer->format == TAILOR_LOAD_FORMAT_CLASSIC) {
		tailor_load_classic_line(&line, printer->options->interval_ns, wall_ns, interval, magnitude);
	} else {
		add_mark(mark, magnitude, '+', '-');
		add_mark(mark, outlier, '^', 'v');
		table_line(&line, printer->options, wall_ns, interval, mark);
	}
	fprintf(printer->out, "%s%s\n", printer->progress_shown ? CLEAR_LINE : "", line.text);
	fflush(printer->out);
	printer->progress_shown = 0;
}

static size_t terminal_columns(FILE *out)
{
	struct winsize size;

	if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		return TERMINAL_COLUMNS;
	return size.ws_col;
}

void tailor_load_print_progress(struct tailor_load_printer *printer, uint64_t wall_ns,
                                const struct tailor_load_result *so_far)
{
	struct tailor_load_line line = {.length = 0};
	size_t columns;

	if (!printer->refresh)
		return;
	if (printer->format == TAILOR_LOAD_FORMAT_CLASSIC)
		tailor_load_classic_line(&line, printer->options->interval_ns, wall_ns, so_far, 0);
	else
		table_line(&line, printer->options, wall_ns, so_far, "");
	/* One column less: some terminals wrap when the last one is written. */
	columns = terminal_columns(printer->out) - 1;
	if (line.length > columns)
		line.text[columns] = '\0';
	fprintf(printer->out, "%s%s", CLEAR_LINE, line.text);
	fflush(printer->out);
	printer->progress_shown = 1;
}
