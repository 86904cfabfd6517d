/* SPDX-License-Identifier: Apache-2.0 */
/* Lines as slow_cooker prints them, for the scripts that read those. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "load/lines.h"

#define INTERVAL_BYTES 48

/* Writes "value" without the zeros at its end. */
static void add_fraction(char *buffer, size_t size, uint64_t ns, uint64_t unit, const char *name)
{
	char fraction[16] = "";
	int digits = 0;

	for (uint64_t left = unit; left > 1; left /= 10)
		digits++;
	if (ns % unit)
		snprintf(fraction, sizeof(fraction), ".%0*" PRIu64, digits, ns % unit);
	for (size_t length = strlen(fraction); length > 0 && fraction[length - 1] == '0'; length--)
		fraction[length - 1] = '\0';
	snprintf(buffer, size, "%" PRIu64 "%s%s", ns / unit, fraction, name);
}

/* As Go's time.Duration is printed: "500ms", "1.5s", "1m0s", "1h0m0s". */
static char *format_interval(char buffer[INTERVAL_BYTES], uint64_t ns)
{
	uint64_t minutes = ns / (60 * TAILOR_NS_PER_S);
	int length = 0;

	if (ns == 0)
		return strcpy(buffer, "0s");
	if (ns < TAILOR_NS_PER_US)
		add_fraction(buffer, INTERVAL_BYTES, ns, 1, "ns");
	else if (ns < TAILOR_NS_PER_MS)
		add_fraction(buffer, INTERVAL_BYTES, ns, TAILOR_NS_PER_US, "\u00b5s");
	else if (ns < TAILOR_NS_PER_S)
		add_fraction(buffer, INTERVAL_BYTES, ns, TAILOR_NS_PER_MS, "ms");
	else {
		if (minutes >= 60)
			length = snprintf(buffer, INTERVAL_BYTES, "%" PRIu64 "h", minutes / 60);
		if (minutes > 0)
			length += snprintf(buffer + length, INTERVAL_BYTES - (size_t)length, "%" PRIu64 "m",
			                   minutes % 60);
		add_fraction(buffer + length, INTERVAL_BYTES - (size_t)length, ns - minutes * 60 * TAILOR_NS_PER_S,
		             TAILOR_NS_PER_S, "s");
	}
	return buffer;
}

static size_t method_bytes(const struct tailor_load_request *request)
{
	return strcspn(request->bytes, " ");
}

void tailor_load_classic_header(FILE *out, const char *url, const struct tailor_load_options *options)
{
	const struct tailor_load_plan *plan = options->plan;
	char interval[INTERVAL_BYTES], rate[32];
	int method = 0;

	if (options->arrival == TAILOR_LOAD_CLOSED || options->arrival == TAILOR_LOAD_RECORDED)
		snprintf(rate, sizeof(rate), "%s", tailor_load_arrival_name(options->arrival));
	else
		snprintf(rate, sizeof(rate), "%.10g", options->rate);
	if (plan && plan->count > 0)
		method = (int)method_bytes(&plan->requests[0]);
	for (size_t i = 1; method && i < plan->count; i++)
		if (strncmp(plan->requests[i].bytes, plan->requests[0].bytes, (size_t)method + 1) != 0)
			method = 0;
	fprintf(out, "# sending %s %.*s req/s with concurrency=%u to %s ...\n", rate, method ? method : 5,
	        method ? plan->requests[0].bytes : "mixed", options->connections, url);
	fprintf(out, "# %20s good/b/f t   goal%% %*s min [p50 p95 p99  p999]  max change\n", "",
	        (int)strlen(format_interval(interval, options->interval_ns)) - 2, "");
}

/* Whole ms, in `width` columns; 0 also where there was no answer, as scripts expect a number. */
static void add_ms(struct tailor_load_line *line, int width, uint64_t ns)
{
	tailor_load_line_add(line, "%*" PRIu64 " ", width, ns / TAILOR_NS_PER_MS);
}

void tailor_load_classic_line(struct tailor_load_line *line, uint64_t interval_ns, uint64_t wall_ns,
                              const struct tailor_load_result *interval, int magnitude)
{
	static const char *const marks[] = {"---", "--", "-", "", "+", "++", "+++"};
	const struct tailor_histogram *response = interval->response;
	uint64_t answered = interval->good + interval->bad, percent = 0;
	char time[TAILOR_LOAD_TIME_BYTES], length[INTERVAL_BYTES];

	if (interval->wanted > 0)
		percent = answered >= interval->wanted ? 100 : answered * 100 / interval->wanted;
	tailor_load_line_add(line, "%s %6" PRIu64 "/%" PRIu64 "/%" PRIu64 " %" PRIu64 " %3" PRIu64 "%% %s ",
	                     tailor_load_format_time(time, wall_ns, 0), interval->good, interval->bad,
	                     tailor_load_result_failed(interval), interval->wanted, percent,
	                     format_interval(length, interval_ns));
	add_ms(line, 3, tailor_histogram_min(response));
	tailor_load_line_add(line, "[");
	add_ms(line, 3, tailor_histogram_percentile(response, 50));
	add_ms(line, 3, tailor_histogram_percentile(response, 95));
	add_ms(line, 3, tailor_histogram_percentile(response, 99));
	add_ms(line, 4, tailor_histogram_percentile(response, 99.9));
	tailor_load_line_add(line, "] ");
	add_ms(line, 4, tailor_histogram_max(response));
	tailor_load_line_add(line, "%s", marks[magnitude + 3]);
}
