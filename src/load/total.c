/* SPDX-License-Identifier: Apache-2.0 */
/* The report at the end, for people. */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "load/lines.h"

/* Beyond this the generator's lateness may be what was measured, not the server. */
#define LATE_NS TAILOR_NS_PER_MS

#define CELL_BYTES 32
#define BAR_COLUMNS 40

static const char *cell(char buffer[CELL_BYTES], const struct tailor_histogram *histogram, uint64_t ns)
{
	return tailor_histogram_count(histogram) ? tailor_format_duration(buffer, CELL_BYTES, ns) : "-";
}

/* With three decimals, cut off, not rounded: 100% means all of them. */
static double percent_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)(uint64_t)((unsigned __int128)part * 100000 / whole) / 1000 : 0;
}

static const char *format_bytes(char buffer[CELL_BYTES], double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	size_t unit = 0;

	for (; unit < 4 && bytes >= 999.5; unit++)
		bytes /= 1000;
	snprintf(buffer, CELL_BYTES, "%.*f %s", unit == 0 || bytes >= 99.95 ? 0 : 1, bytes, units[unit]);
	return buffer;
}

/* "200/s asked, uniform arrivals" and what else makes this load this one. */
static void print_asked(FILE *out, const struct tailor_load_options *options)
{
	char buffer[CELL_BYTES];

	switch (options->arrival) {
	case TAILOR_LOAD_UNIFORM: fprintf(out, "%g/s asked", options->rate); break;
	case TAILOR_LOAD_POISSON: fprintf(out, "%g/s asked, Poisson arrivals", options->rate); break;
	case TAILOR_LOAD_CLOSED: fprintf(out, "closed loop, %u connections", options->connections); break;
	case TAILOR_LOAD_RECORDED: fprintf(out, "as recorded, at %g times its speed", options->speed); break;
	}
	if (options->warm_ns > 0)
		fprintf(out, "; after %s of warm-up, not counted",
		        tailor_format_duration(buffer, sizeof(buffer), options->warm_ns));
}

static void print_counts(FILE *out, const struct tailor_load_options *options, const struct tailor_load_result *total)
{
	uint64_t failed = tailor_load_result_failed(total);
	char buffer[CELL_BYTES];

	fprintf(out, "%" PRIu64 " good, %" PRIu64 " bad, %" PRIu64 " failed", total->good, total->bad, failed);
	for (int i = 0, first = 1; i < TAILOR_LOAD_FAILURES; i++) {
		if (total->failed[i] == 0)
			continue;
		fprintf(out, "%s%" PRIu64 " %s", first ? ": " : ", ", total->failed[i],
		        tailor_load_failure_name((enum tailor_load_failure)i));
		if (i == TAILOR_LOAD_NO_CONNECTION && total->connect_error)
			fprintf(out, " (%s)", strerror(total->connect_error));
		first = 0;
	}
	if (failed > 0)
		fputs("\nthe failed ones are not in the times below", out);
	if (total->different > 0)
		fprintf(out, "\n%" PRIu64 " of the bad ones had another body than the first answer to that request",
		        total->different);
	fprintf(out, "\n%" PRIu64 " in time, within %s: ", total->in_time,
	        tailor_format_duration(buffer, sizeof(buffer), options->in_time_ns));
	if (total->wanted > 0)
		fprintf(out, "%.3f%% of the %" PRIu64 " %s", percent_of(total->in_time, total->wanted), total->wanted,
		        options->arrival == TAILOR_LOAD_CLOSED ? "sent" : "that came due");
	else
		fputs("none came due", out);
	if (total->dropped > 0 || options->catch_up != TAILOR_LOAD_CATCH_UP_FULL)
		fprintf(out, "\n%" PRIu64 " dropped: never sent, since they were late; catch-up: %s", total->dropped,
		        tailor_load_catch_up_name(options->catch_up));
	fprintf(out, "\n%" PRIu64 " connection%s opened; %s of bodies", total->opened, total->opened == 1 ? "" : "s",
	        format_bytes(buffer, (double)total->body_bytes));
	if (total->elapsed_ns > 0)
		fprintf(out, ", %s a second",
		        format_bytes(buffer, (double)total->body_bytes / ((double)total->elapsed_ns / 1e9)));
	fputc('\n', out);
}

static void print_times(FILE *out, const char *name, const struct tailor_histogram *histogram, const char *meaning)
{
	static const double percents[] = {50, 90, 95, 99, 99.9, 99.99};
	char buffer[CELL_BYTES];

	fprintf(out, "%-13s", name);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		fprintf(out, "%9s", cell(buffer, histogram, tailor_histogram_percentile(histogram, percents[i])));
	fprintf(out, "%9s", cell(buffer, histogram, tailor_histogram_max(histogram)));
	fprintf(out, "%9s  %s\n", cell(buffer, histogram, (uint64_t)tailor_histogram_mean(histogram)), meaning);
}

static void print_histogram(FILE *out, const struct tailor_histogram *histogram)
{
	static const char bar[] = "########################################";
	struct tailor_load_power rows[TAILOR_LOAD_POWERS];
	size_t count = tailor_load_powers(histogram, rows);
	uint64_t all = tailor_histogram_count(histogram), most = 0, seen = 0;
	char from[CELL_BYTES], to[CELL_BYTES];

	_Static_assert(sizeof(bar) == BAR_COLUMNS + 1, "a bar of the most columns");
	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		most = rows[i].count > most ? rows[i].count : most;
	fprintf(out, "\n%-22s %9s %9s %9s\n", "response time", "answers", "share", "so far");
	for (size_t i = 0; i < count; i++) {
		int columns = (int)((double)rows[i].count * BAR_COLUMNS / (double)most + 0.5);

		seen += rows[i].count;
		fprintf(out, "%8s  .. %8s  %9" PRIu64 " %8.3f%% %8.3f%%",
		        tailor_format_duration(from, sizeof(from), rows[i].from_us * TAILOR_NS_PER_US),
		        tailor_format_duration(to, sizeof(to), rows[i].to_us * TAILOR_NS_PER_US), rows[i].count,
		        percent_of(rows[i].count, all), percent_of(seen, all));
		/* A point: there are some, too few for a column. */
		if (rows[i].count > 0)
			fprintf(out, "  %.*s", columns ? columns : 1, columns ? bar : ".");
		fputc('\n', out);
	}
}

static void print_lateness(FILE *out, const char *what, const struct tailor_histogram *histogram, const char *meaning)
{
	char p99[CELL_BYTES], max[CELL_BYTES];

	fprintf(out, "%s late by p99 %s, max %s%s\n", what,
	        cell(p99, histogram, tailor_histogram_percentile(histogram, 99)),
	        cell(max, histogram, tailor_histogram_max(histogram)), meaning);
}

static void print_generator(FILE *out, const struct tailor_load_options *options,
                            const struct tailor_load_result *total)
{
	uint64_t late_p99_ns = tailor_histogram_percentile(total->late, 99);
	char buffer[CELL_BYTES];

	fputc('\n', out);
	if (options->arrival != TAILOR_LOAD_CLOSED) {
		print_lateness(out, "generator: took requests up", total->late, "");
		print_lateness(out, "  sent them", total->sent, ", waiting for a free connection included");
		fputs("  ", out);
	} else {
		fputs("generator: ", out);
	}
	fprintf(out, "its busiest thread used %.1f%% of a CPU; %s of CPU in all\n", 100 * total->cpu_share,
	        tailor_format_duration(buffer, sizeof(buffer), total->cpu_ns));
	if (options->slack_ns > 0)
		fprintf(out, "  sends are grouped: one may be up to %s late, which is part of its response time\n",
		        tailor_format_duration(buffer, sizeof(buffer), options->slack_ns));
	if (late_p99_ns > LATE_NS + options->slack_ns)
		fputs("  limited by the generator: its lateness is part of the response times; "
		      "give it a CPU of its own, more --threads, or a lower --rate\n",
		      out);
	else if (total->cpu_share > TAILOR_LOAD_CPU_SHARE_HIGH)
		fputs("  limited by the generator, or nearly so: use more --threads or a lower --rate\n", out);
	else
		fputs("  not limited by the generator\n", out);
	if (total->stalls.episodes > 0)
		fprintf(out,
		        "  this machine stood still: %" PRIu64 " time%s, longest %s "
		        "(its host's doing; nothing could run on the CPUs concerned)\n",
		        total->stalls.episodes, total->stalls.episodes == 1 ? "" : "s",
		        tailor_format_duration(buffer, sizeof(buffer), total->stalls.longest_ns));
}

static void print_slowest(FILE *out, const struct tailor_load_result *total, const struct tailor_load_causes *causes)
{
	char buffer[CELL_BYTES];

	if (total->slow_count == 0)
		return;
	fputs("\nslowest:\n", out);
	for (size_t i = 0; i < total->slow_count; i++) {
		const struct tailor_load_slow *slow = &total->slowest[i];

		fprintf(out, "  %9s  %3u  %s", tailor_format_duration(buffer, sizeof(buffer), slow->response_ns),
		        slow->status, slow->path);
		if (slow->request_id[0])
			fprintf(out, "  request %s", slow->request_id);
		if (causes && causes->text[i][0])
			fprintf(out, "  %s", causes->text[i]);
		fputc('\n', out);
	}
}

void tailor_load_print_total(FILE *out, const char *url, const struct tailor_load_options *options,
                             const struct tailor_load_result *total, const struct tailor_load_causes *causes)
{
	int closed = options->arrival == TAILOR_LOAD_CLOSED;

	fprintf(out, "\n%" PRIu64 " requests in %.1f s (", total->good + total->bad + tailor_load_result_failed(total),
	        (double)total->elapsed_ns / 1e9);
	print_asked(out, options);
	fprintf(out, ") to %s\n", url);
	print_counts(out, options, total);
	fprintf(out, "\n%-13s%9s%9s%9s%9s%9s%9s%9s%9s\n", "", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max",
	        "mean");
	print_times(out, "response time", total->response, closed ? "since sent" : "since due");
	print_times(out, "service time", total->service, "since sent");
	if (closed)
		fputs("closed loop: response time is service time; "
		      "what clients would have waited while the server stood still is not in it\n",
		      out);
	print_histogram(out, total->response);
	print_generator(out, options, total);
	print_slowest(out, total, causes);
	fflush(out);
}
