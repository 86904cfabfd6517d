/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/metric.h"

#include "base/clock.h"

void metric(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP tailor_%s %s\n# TYPE tailor_%s %s\n", name, help, name, type);
}

void metric_histogram(FILE *out, const char *name, const char *server, const uint64_t *bounds_ns, const uint64_t *counts, size_t bounds,
                      uint64_t sum_ns)
{
	char label[64] = "", labels[72] = "";
	unsigned long long count = 0;

	if (server) {
		snprintf(label, sizeof(label), "server=\"%s\"", server);
		snprintf(labels, sizeof(labels), "{%s}", label);
	}
	for (size_t i = 0; i <= bounds; i++) {
		count += counts[i];
		fprintf(out, "tailor_%s_bucket{%s%sle=\"", name, label, server ? "," : "");
		if (i < bounds)
			fprintf(out, "%g\"} %llu\n", (double)bounds_ns[i] / TAILOR_NS_PER_S, count);
		else
			fprintf(out, "+Inf\"} %llu\n", count);
	}
	fprintf(out, "tailor_%s_sum%s %.9f\n", name, labels, (double)sum_ns / TAILOR_NS_PER_S);
	fprintf(out, "tailor_%s_count%s %llu\n", name, labels, count);
}
