/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_CLI_METRIC_H
#define TAILOR_CLI_METRIC_H

#include <stdio.h>

/* What Prometheus wants to know of a metric, before its first value. `type`: "counter", "gauge", "histogram". */
static inline void metric(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP tailor_%s %s\n# TYPE tailor_%s %s\n", name, help, name, type);
}

#endif /* TAILOR_CLI_METRIC_H */
