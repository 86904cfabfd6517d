/* SPDX-License-Identifier: Apache-2.0 */
/* When a JVM's threads were stopped, and what for: collections, other safepoints, and the time that bringing them to a stop took. */
#ifndef TAILOR_CORRELATE_PAUSES_H
#define TAILOR_CORRELATE_PAUSES_H

#include <tailor/window.h>

/* A piece of a stop. */
struct pause {
	uint32_t pid;
	uint64_t start_ns;
	uint64_t end_ns;        /* as far as it is known */
	uint64_t sync_ns;       /* of a collection: what bringing the threads to a stop took as the JVM counted, 0 unknown */
	enum tailor_cause cause; /* GC, SAFEPOINT or TIME_TO_SAFEPOINT */
	uint8_t going_on;       /* it had not ended when the window did */
	uint8_t probed;         /* the JVM's own probes told it, or the safepoint around it */
	uint8_t beside;         /* an operation of the VM Thread beside running threads: only who waited for it was stopped */
	const char *text;       /* of GC_FINISH; NULL unknown */
	const char *operation;  /* HotSpot's name of what the VM Thread did; NULL unknown */
};

struct pauses {
	const struct tailor_window *window;
	struct pause *pauses; /* ordered by pid, then start; those of a pid do not overlap */
	size_t pause_count;
};

/* O(n log n). Returns 0 or -ENOMEM. Freed by pauses_free(), also after an error. */
int pauses_build(struct pauses *pauses, const struct tailor_window *window);
void pauses_free(struct pauses *pauses);

/* The first piece of the process that ends after time_ns; NULL when there is none. */
const struct pause *pauses_after(const struct pauses *pauses, uint32_t pid, uint64_t time_ns);

/* The next one of the same process; NULL when there is none. */
const struct pause *pauses_next(const struct pauses *pauses, const struct pause *pause);

/* "Serial young, Allocation Failure, pause 43.2 ms", "PrintThreads, a thread dump"; cut where too long. */
void pause_describe(const struct pause *pause, char *buffer, size_t size);

/* The collector as people call it: "Serial young"; returns buffer. */
const char *pause_collector(const struct pause *pause, char *buffer, size_t size);

#endif /* TAILOR_CORRELATE_PAUSES_H */
