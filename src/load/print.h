/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a load for people and for programs. */
#ifndef TAILOR_LOAD_PRINT_H
#define TAILOR_LOAD_PRINT_H

#include <stdio.h>

#include "load/load.h"

/* The two lines above the interval lines. */
void tailor_load_print_header(FILE *out);
/* One line of an interval that ended at wall_ns (CLOCK_REALTIME). */
void tailor_load_print_interval(FILE *out, uint64_t wall_ns, const struct tailor_load_result *interval);
/* Totals, percentiles, the generator's own account and the slowest requests. */
void tailor_load_print_total(FILE *out, const char *url, const struct tailor_load_options *options,
                             const struct tailor_load_result *total);
/* The same as one JSON object. Returns 0, -ENOMEM or -EIO. */
int tailor_load_print_json(FILE *out, const char *url, const struct tailor_load_options *options,
                           const struct tailor_load_result *total);

#endif /* TAILOR_LOAD_PRINT_H */
