/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <tailor/timeline_names.h>

#include "base/units.h"
#include "report/report.h"
#include "report/summary.h"

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static const char *duration(char buffer[32], uint64_t ns)
{
	return tailor_format_duration(buffer, 32, ns);
}

static void print_text(FILE *out, const struct tailor_summary *summary, const struct tailor_cause_sum *sums, int count,
                       uint64_t requests, uint64_t total_ns)
{
	char total[32], median[32], max[32];

	fprintf(out, "%" PRIu64 " slow request%s, %s in all", requests, requests == 1 ? "" : "s", duration(total, total_ns));
	if (summary->count > requests)
		fprintf(out, "; %" PRIu64 " ordinary one%s left apart", (uint64_t)summary->count - requests,
		        summary->count - requests == 1 ? "" : "s");
	if (summary->left_out > 0)
		fprintf(out, "; %" PRIu64 " timeline%s cut out by options", summary->left_out,
		        summary->left_out == 1 ? "" : "s");
	fputc('\n', out);
	if (summary->omitted > 0)
		fprintf(out, "%" PRIu64 " more slow requests were only counted: their time is in no sum\n", summary->omitted);
	fprintf(out, "\n%-33s %6s %6s %8s %6s %8s %8s  %s\n", "cause", "mostly", "seen", "time", "share", "median", "max",
	        "worst request");
	for (int i = 0; i < count; i++)
		fprintf(out, "%-33s %6" PRIu64 " %6" PRIu64 " %8s %5.1f%% %8s %8s  %016" PRIx64 "\n",
		        tailor_cause_name(sums[i].cause), sums[i].dominant_in, sums[i].seen_in,
		        duration(total, sums[i].total_ns), 100 * share(sums[i].total_ns, total_ns),
		        duration(median, sums[i].median_ns), duration(max, sums[i].max_ns), sums[i].worst);
	fputs("\nmostly: requests of which it took the most; seen: requests in which it took any time; median and\n"
	      "max: of its time in one request, of those in which it was seen. `--request ID` shows one of them.\n",
	      out);
}

static int print_json(FILE *out, const struct tailor_summary *summary, const struct tailor_cause_sum *sums, int count,
                      uint64_t requests, uint64_t total_ns)
{
	json_t *causes = json_array(), *root;
	char worst[17];
	char *text;

	for (int i = 0; i < count; i++) {
		snprintf(worst, sizeof(worst), "%016" PRIx64, sums[i].worst);
		json_array_append_new(
		        causes, json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:s}", "cause",
		                          tailor_cause_key(sums[i].cause), "cause_name", tailor_cause_name(sums[i].cause),
		                          "dominant_in", (json_int_t)sums[i].dominant_in, "seen_in",
		                          (json_int_t)sums[i].seen_in, "total_ns", (json_int_t)sums[i].total_ns, "share",
		                          share(sums[i].total_ns, total_ns), "median_ns", (json_int_t)sums[i].median_ns,
		                          "max_ns", (json_int_t)sums[i].max_ns, "worst", worst));
	}
	root = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "slow_requests", (json_int_t)requests, "total_ns",
	                 (json_int_t)total_ns, "ordinary_requests", (json_int_t)(summary->count - requests), "left_out",
	                 (json_int_t)summary->left_out, "omitted", (json_int_t)summary->omitted, "causes", causes);
	text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

int tailor_report_by_cause(FILE *out, const struct tailor_summary *summary, int json)
{
	struct tailor_cause_sum sums[TAILOR_CAUSES];
	uint64_t requests, total_ns;
	int count = tailor_summary_by_cause(summary, sums, &requests, &total_ns);

	if (count < 0)
		return count;
	if (json)
		return print_json(out, summary, sums, count, requests, total_ns);
	print_text(out, summary, sums, count, requests, total_ns);
	return 0;
}
