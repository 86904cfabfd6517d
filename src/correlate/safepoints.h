/* SPDX-License-Identifier: Apache-2.0 */
/* Safepoints and operations of the VM Thread, as the JVM's own probes told them. */
#ifndef TAILOR_CORRELATE_SAFEPOINTS_H
#define TAILOR_CORRELATE_SAFEPOINTS_H

#include <tailor/window.h>

struct safepoint {
	uint32_t pid;
	uint64_t begin_ns;
	uint64_t stopped_ns; /* all threads had stopped: the operation, or the collection, began; 0 unknown */
	uint64_t end_ns;     /* as far as it is known */
	uint8_t going_on;
	uint8_t beside; /* an operation without a safepoint: running threads ran on */
	const char *operation; /* NULL unknown */
};

/* Returns 0 and a malloc'ed array ordered by pid, then begin, or -ENOMEM. Those of a pid do not overlap. */
int safepoints_read(const struct tailor_window *window, struct safepoint **ret_safepoints, size_t *ret_count);

/* What the operation is, for people: "a thread dump"; NULL where the name has to do. */
const char *operation_meaning(const char *operation);

/* 1 for a collector's operation. */
int operation_collects(const char *operation);

#endif /* TAILOR_CORRELATE_SAFEPOINTS_H */
