/* SPDX-License-Identifier: Apache-2.0 */
/* Why the slowest requests of a load were slow, from the timelines of the proxy that they went through. */
#ifndef TAILOR_CLI_LOAD_TIMELINES_H
#define TAILOR_CLI_LOAD_TIMELINES_H

#include "load/print.h"

/* A timeline is written a moment after its response: how long one is waited for, all together. */
#define TAILOR_LOAD_TIMELINES_WAIT_MS 2000

/*
 * Looks the slowest requests of *total up in the store of timelines at `path` (a directory, or one of its files) and
 * writes the cause with the most time for each that is there: "garbage collection, 117 ms of 118 ms"; "" for the
 * others, which are those without an id of 16 hexadecimal digits and those that the proxy was done with within
 * slow.threshold. Takes up to TAILOR_LOAD_TIMELINES_WAIT_MS when some are missing. Memory does not grow with the store.
 * One thread at a time. Returns 0 with *ret_found of them found, or a negative errno with one line in error.
 */
int tailor_load_timelines_find(const char *path, const struct tailor_load_result *total,
                               struct tailor_load_causes *ret_causes, size_t *ret_found,
                               char error[TAILOR_LOAD_ERROR_BYTES]);

#endif /* TAILOR_CLI_LOAD_TIMELINES_H */
