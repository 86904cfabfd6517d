/* SPDX-License-Identifier: Apache-2.0 */
#include "load/print.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"

/* Beyond this the generator, not the server, may be what was measured. */
#define LATE_NS TAILOR_NS_PER_MS
#define CPU_SHARE_HIGH 0.8

#define CELL_BYTES 32

static const char *cell(char buffer[CELL_BYTES], const struct tailor_histogram *histogram, uint64_t ns)
{
	return tailor_histogram_count(histogram) ? tailor_format_duration(buffer, CELL_BYTES, ns) : "-";
}

void tailor_load_print_header(FILE *out)
{
	fputs("good: 2xx/3xx, bad: other status, failed: no whole answer; wanted: came due, and the good ones as a part of it\n"
	      "response times, of the answered ones, count from the moment each was due\n",
	      out);
	fprintf(out, "%-8s  %8s%8s%8s %8s %5s  %9s  [%8s  %8s  %8s  %8s ] %9s\n", "time", "good", "bad", "failed", "wanted", "%",
	        "min", "p50", "p95", "p99", "p99.9", "max");
	fflush(out);
}

void tailor_load_print_interval(FILE *out, uint64_t wall_ns, const struct tailor_load_result *interval)
{
	static const double percents[] = {50, 95, 99, 99.9};
	const struct tailor_histogram *response = interval->response;
	time_t seconds = (time_t)(wall_ns / TAILOR_NS_PER_S);
	char clock[16], buffer[CELL_BYTES];
	struct tm parts;

	localtime_r(&seconds, &parts);
	strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
	fprintf(out, "%s  %8" PRIu64 "%8" PRIu64 "%8" PRIu64 " %8" PRIu64 " ", clock, interval->good, interval->bad,
	        tailor_load_result_failed(interval), interval->wanted);
	if (interval->wanted > 0)
		fprintf(out, "%5.1f ", 100.0 * (double)interval->good / (double)interval->wanted);
	else
		fputs("    - ", out);
	fprintf(out, " %9s  [", cell(buffer, response, tailor_histogram_min(response)));
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		fprintf(out, "%s%8s", i ? "  " : "",
		        cell(buffer, response, tailor_histogram_percentile(response, percents[i])));
	fprintf(out, " ] %9s\n", cell(buffer, response, tailor_histogram_max(response)));
	fflush(out);
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

static void print_generator(FILE *out, const struct tailor_load_result *total)
{
	uint64_t late_p99_ns = tailor_histogram_percentile(total->late, 99);
	char p99[CELL_BYTES], max[CELL_BYTES];

	fprintf(out, "\ngenerator: took requests up late by p99 %s, max %s; its busiest thread used %.1f%% of a CPU\n",
	        cell(p99, total->late, late_p99_ns), cell(max, total->late, tailor_histogram_max(total->late)),
	        100 * total->cpu_share);
	if (late_p99_ns > LATE_NS)
		fputs("  its lateness is part of the response times: give it a CPU of its own, more --threads, "
		      "or a lower --rate\n",
		      out);
	else if (total->cpu_share > CPU_SHARE_HIGH)
		fputs("  it is near its limit: use more --threads or a lower --rate\n", out);
	if (total->stalls.episodes > 0)
		fprintf(out,
		        "  this machine stood still: %" PRIu64 " time%s, longest %s (its host's doing; nothing could run on the "
		        "CPUs concerned)\n",
		        total->stalls.episodes, total->stalls.episodes == 1 ? "" : "s",
		        tailor_format_duration(max, sizeof(max), total->stalls.longest_ns));
}

void tailor_load_print_total(FILE *out, const char *url, const struct tailor_load_options *options,
                             const struct tailor_load_result *total)
{
	uint64_t failed = tailor_load_result_failed(total);
	char buffer[CELL_BYTES];

	fprintf(out, "\n%" PRIu64 " requests in %.1f s (%g/s asked) to %s\n", total->good + total->bad + failed,
	        (double)total->elapsed_ns / 1e9, options->rate, url);
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
	fprintf(out, "\n\n%-13s%9s%9s%9s%9s%9s%9s%9s%9s\n", "", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max",
	        "mean");
	print_times(out, "response time", total->response, "since due");
	print_times(out, "service time", total->service, "since sent");
	print_generator(out, total);
	if (total->slow_count == 0)
		return;
	fputs("\nslowest:\n", out);
	for (size_t i = 0; i < total->slow_count; i++) {
		const struct tailor_load_slow *slow = &total->slowest[i];

		fprintf(out, "  %9s  %3u  %s", tailor_format_duration(buffer, sizeof(buffer), slow->response_ns),
		        slow->status, slow->path);
		fprintf(out, slow->request_id[0] ? "  request %s\n" : "\n", slow->request_id);
	}
	fflush(out);
}
