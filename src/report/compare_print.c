/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/timeline_names.h>

#include "base/units.h"
#include "report/report.h"
#include "report/summary.h"

#define NAME_COLUMNS 35

static const char *const headings[] = {
        [TAILOR_MEASURE_RATE] = "how often",
        [TAILOR_MEASURE_SLOW] = "latency of the slow requests (not of all)",
        [TAILOR_MEASURE_ORDINARY] = "latency of the ordinary requests (one in N is stored)",
        [TAILOR_MEASURE_CAUSE] = "time for each slow request, by cause",
};

static const char *const measure_keys[] = {
        [TAILOR_MEASURE_RATE] = "slow-per-second",
        [TAILOR_MEASURE_SLOW] = "slow-latency",
        [TAILOR_MEASURE_ORDINARY] = "ordinary-latency",
        [TAILOR_MEASURE_CAUSE] = "cause-time",
};

/* Fewer than one in ten seconds, in both: these are told by the hour. */
static int is_rare(const struct tailor_difference *difference)
{
	return !(difference->a >= 0.1) && !(difference->b >= 0.1);
}

/* "12.3 ms", "+12.3 ms", "2.5/s", "2.5/h", "-". */
static const char *value(char buffer[32], const struct tailor_difference *difference, double number, int sign)
{
	char text[30];

	if (isnan(number))
		return "-";
	if (difference->measure == TAILOR_MEASURE_RATE) {
		snprintf(buffer, 32, sign ? "%+.3g/%s" : "%.3g/%s", is_rare(difference) ? 3600 * number : number, is_rare(difference) ? "h" : "s");
		return buffer;
	}
	tailor_format_duration(text, sizeof(text), (uint64_t)llround(fabs(number)));
	snprintf(buffer, 32, "%s%s", !sign ? "" : number < 0 ? "-" : "+", text);
	return buffer;
}

static const char *verdict(const struct tailor_difference *difference)
{
	if (isnan(difference->low))
		return "too few";
	if (difference->high < 0)
		return "less";
	return difference->low > 0 ? "more" : "no difference shown";
}

static const char *name_of(char buffer[64], const struct tailor_difference *difference)
{
	switch (difference->measure) {
	case TAILOR_MEASURE_RATE: return is_rare(difference) ? "slow requests an hour" : "slow requests a second";
	case TAILOR_MEASURE_CAUSE: return tailor_cause_name(difference->cause);
	case TAILOR_MEASURE_SLOW:
	case TAILOR_MEASURE_ORDINARY: snprintf(buffer, 64, "p%g", 100 * difference->quantile); break;
	}
	return buffer;
}

static size_t slow_in(const struct tailor_summary *summary)
{
	size_t slow = 0;

	for (size_t i = 0; i < summary->count; i++)
		slow += !summary->requests[i].ordinary;
	return slow;
}

static void print_store(FILE *out, char letter, const char *path, const struct tailor_summary *summary)
{
	char printable[4 * TAILOR_REPORT_COLUMNS];
	size_t slow = slow_in(summary);

	tailor_report_printable(printable, sizeof(printable), path, 50);
	fprintf(out, "%c  %s: %zu slow, %zu ordinary\n", letter, printable, slow, summary->count - slow);
	if (summary->omitted > 0)
		fprintf(out, "   %" PRIu64 " more were only counted: they are in the rate, and in no latency or cause\n", summary->omitted);
}

static void print_text(FILE *out, const struct tailor_difference *differences, int count)
{
	enum tailor_measure before = TAILOR_MEASURE_CAUSE;
	char name[64], first[32], second[32], third[32], low[32], high[32], range[68];

	for (int i = 0; i < count; i++) {
		const struct tailor_difference *difference = &differences[i];

		if (i == 0 || difference->measure != before)
			fprintf(out, "\n%s\n%-*s %9s %9s  %9s  %s\n", headings[difference->measure], NAME_COLUMNS, "", "A", "B",
			        "B - A", "95% interval");
		before = difference->measure;
		snprintf(range, sizeof(range), "%s .. %s", value(low, difference, difference->low, 1),
		         value(high, difference, difference->high, 1));
		fprintf(out, "  %-*s %9s %9s  %9s  %-21s", NAME_COLUMNS - 2, name_of(name, difference),
		        value(first, difference, difference->a, 0), value(second, difference, difference->b, 0),
		        value(third, difference, difference->b - difference->a, 1),
		        isnan(difference->low) ? "-" : range);
		fprintf(out, "  %s\n", isnan(difference->low) ? "too few" : verdict(difference)[0] == 'n' ? "=" : verdict(difference));
	}
	fprintf(out,
	        "\n\"less\" and \"more\": zero is outside the interval (bootstrap over stretches of time, %d resamples).\n"
	        "=: no difference is shown. One row in twenty would be told to differ where none does. Too few: fewer\n"
	        "than ten requests beyond the quantile, or ten seconds, or five with requests. Time counts from the\n"
	        "first timeline to the last. What is slow is told by slow.threshold: compare stores that had the same\n"
	        "one. A store holds slow requests and one in N others: quantiles of all requests cannot be had from\n"
	        "it, but from an access log (access_log.path), which this does not read.\n",
	        TAILOR_COMPARE_RESAMPLES);
}

static json_t *number(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *requests_in(const struct tailor_summary *summary)
{
	size_t slow = slow_in(summary);

	return json_pack("{s:I, s:I, s:I}", "slow", (json_int_t)slow, "ordinary", (json_int_t)(summary->count - slow), "only_counted",
	                 (json_int_t)summary->omitted);
}

static int print_json(FILE *out, const char *name_a, const struct tailor_summary *a, const char *name_b, const struct tailor_summary *b,
                      const struct tailor_difference *differences, int count)
{
	char path[2][4096 + 1];
	json_t *array = json_array(), *root;
	char *text;

	for (int i = 0; i < count; i++) {
		const struct tailor_difference *difference = &differences[i];
		json_t *entry = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s}", "measure", measure_keys[difference->measure],
		                          "unit", difference->measure == TAILOR_MEASURE_RATE ? "1/s" : "ns", "a",
		                          number(difference->a), "b", number(difference->b), "low", number(difference->low),
		                          "high", number(difference->high), "verdict", verdict(difference));

		if (difference->measure == TAILOR_MEASURE_CAUSE)
			json_object_set_new(entry, "cause", json_string(tailor_cause_key(difference->cause)));
		else if (difference->measure != TAILOR_MEASURE_RATE)
			json_object_set_new(entry, "quantile", json_real(difference->quantile));
		json_array_append_new(array, entry);
	}
	root = json_pack("{s:s, s:s, s:o, s:o, s:i, s:s, s:o}", "a", tailor_report_utf8(path[0], sizeof(path[0]), name_a), "b",
	                 tailor_report_utf8(path[1], sizeof(path[1]), name_b), "a_requests", requests_in(a), "b_requests", requests_in(b),
	                 "resamples", TAILOR_COMPARE_RESAMPLES, "of", "stored requests: slow ones, and one in N ordinary ones; not of all", "differences", array);
	text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

int tailor_report_compare(FILE *out, const char *name_a, const struct tailor_summary *a, const char *name_b,
                          const struct tailor_summary *b, int json)
{
	struct tailor_difference differences[TAILOR_DIFFERENCES_MAX];
	int count = tailor_compare(a, b, differences);

	if (count < 0)
		return count;
	if (json)
		return print_json(out, name_a, a, name_b, b, differences, count);
	print_store(out, 'A', name_a, a);
	print_store(out, 'B', name_b, b);
	print_text(out, differences, count);
	return 0;
}
