/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/metric.h"

#include "base/clock.h"

void metric(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP tailor_%s %s\n# TYPE tailor_%s %s\n", name, help, name, type);
}

void metric_histogram(FILE *out, const char *name, const char *label, const char *value, const uint64_t *bounds_ns, const uint64_t *counts,
                      size_t bounds, uint64_t sum_ns)
{
	unsigned long long count = 0;

	for (size_t i = 0; i <= bounds; i++) {
		count += counts[i];
		fprintf(out, "tailor_%s_bucket{%s=\"%s\",le=\"", name, label, value);
		if (i < bounds)
			fprintf(out, "%g\"} %llu\n", (double)bounds_ns[i] / TAILOR_NS_PER_S, count);
		else
			fprintf(out, "+Inf\"} %llu\n", count);
	}
	fprintf(out, "tailor_%s_sum{%s=\"%s\"} %.9f\n", name, label, value, (double)sum_ns / TAILOR_NS_PER_S);
	fprintf(out, "tailor_%s_count{%s=\"%s\"} %llu\n", name, label, value, count);
}
