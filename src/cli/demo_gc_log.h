/* SPDX-License-Identifier: Apache-2.0 */
/* Collections as the JVM itself logged them (-Xlog:gc*:...:time,uptime,tn). */
#ifndef TAILOR_CLI_DEMO_GC_LOG_H
#define TAILOR_CLI_DEMO_GC_LOG_H

#include <stddef.h>
#include <stdint.h>

struct demo_collection {
	uint64_t begin_ns; /* CLOCK_MONOTONIC, to the microseconds that the log prints of its length */
	uint64_t end_ns;
};

/*
 * Reads the stops that began in [from_ns, to_ns), oldest first. Pauses that follow each other at once share a safepoint
 * (a young collection that gives up and the full one in its place) and are one stop. *ret_collections is the caller's
 * to free. Returns 0, -ENOMEM or the negative errno of opening the log.
 */
int demo_gc_log_read(const char *path, uint64_t from_ns, uint64_t to_ns, struct demo_collection **ret_collections,
                     size_t *ret_count);

#endif /* TAILOR_CLI_DEMO_GC_LOG_H */
