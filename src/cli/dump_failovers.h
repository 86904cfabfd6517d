/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor dump --failovers`. */
#ifndef TAILOR_CLI_DUMP_FAILOVERS_H
#define TAILOR_CLI_DUMP_FAILOVERS_H

#include "cli/dump_filter.h"

/* Prints the store's failovers that filter->since_ns lets through, by time. Returns the exit code; problems are told on stderr. */
int dump_failovers(const struct dump_filter *filter, const char *path, int json);

#endif /* TAILOR_CLI_DUMP_FAILOVERS_H */
