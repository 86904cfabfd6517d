/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor dump` of many requests at once. Each prints to stdout and returns enum tailor_exit. */
#ifndef TAILOR_CLI_DUMP_SUMS_H
#define TAILOR_CLI_DUMP_SUMS_H

#include "cli/dump_filter.h"

int dump_by_cause(const struct dump_filter *filter, const char *path, int json);
int dump_compare(const struct dump_filter *filter, const char *path_a, const char *path_b, int json);
int dump_what_if(const struct dump_filter *filter, const char *path, enum tailor_cause cause, int json);

/* Flushes stdout; `error` is what came before. Tells what went wrong. */
int dump_written(const struct dump_filter *filter, int error);

#endif /* TAILOR_CLI_DUMP_SUMS_H */
