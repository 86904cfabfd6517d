/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as Prometheus reads them. Names without the `tailor_` that all have. */
#ifndef TAILOR_CLI_METRIC_H
#define TAILOR_CLI_METRIC_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What is to be known of a metric, before its first value. `type`: "counter", "gauge", "histogram". */
void metric(FILE *out, const char *name, const char *type, const char *help);

/*
 * A histogram of times: in counts[i] those up to bounds_ns[i] that are longer than the bound before, in the one behind the last all others.
 * `label` and its `value` tell it from the others of that name.
 */
void metric_histogram(FILE *out, const char *name, const char *label, const char *value, const uint64_t *bounds_ns, const uint64_t *counts,
                      size_t bounds, uint64_t sum_ns);

#endif /* TAILOR_CLI_METRIC_H */
