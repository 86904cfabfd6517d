/* SPDX-License-Identifier: Apache-2.0 */
/* What lies over a thread's own doing: collections of its JVM, class loading, page faults; and holes in the record. */
#ifndef TAILOR_CORRELATE_PAUSES_H
#define TAILOR_CORRELATE_PAUSES_H

#include <tailor/window.h>

/* A stop-the-world pause of a collector. */
struct pause {
	uint32_t pid;
	uint64_t start_ns;
	uint64_t end_ns;  /* as far as it is known */
	uint8_t going_on; /* it had not ended when the window did */
	const char *text; /* of GC_FINISH; NULL unknown */
};

/* A stretch of a thread's time with a cause of its own. */
struct overlay {
	uint32_t tid;
	uint64_t start_ns;
	uint64_t end_ns;
	enum tailor_cause cause;
	uint32_t count;   /* how many classes, or faults */
	const char *name; /* of the first class; NULL unknown */
};

struct pauses {
	const struct tailor_window *window;
	struct pause *pauses; /* ordered by pid, then start; those of a pid do not overlap */
	size_t pause_count;
	struct overlay *classes; /* ordered by tid, then start; those of a tid do not overlap */
	size_t class_count;
	struct overlay *faults; /* likewise */
	size_t fault_count;
};

/* O(n log n). Returns 0 or -ENOMEM. Freed by pauses_free(), also after an error. */
int pauses_build(struct pauses *pauses, const struct tailor_window *window);
void pauses_free(struct pauses *pauses);

/* The first pause of the process that ends after time_ns; NULL when there is none. */
const struct pause *pauses_after(const struct pauses *pauses, uint32_t pid, uint64_t time_ns);

/* The next one of the same process; NULL when there is none. */
const struct pause *pauses_next(const struct pauses *pauses, const struct pause *pause);

/* "Serial young, Allocation Failure, pause 43.2 ms", cut where too long. */
void pause_describe(const struct pause *pause, char *buffer, size_t size);

/* The collector as people call it: "Serial young"; returns buffer. */
const char *pause_collector(const struct pause *pause, char *buffer, size_t size);

/* The first of `count` overlays that is of the thread and ends after time_ns; NULL when there is none. */
const struct overlay *overlay_after(const struct overlay *overlays, size_t count, uint32_t tid, uint64_t time_ns);

#endif /* TAILOR_CORRELATE_PAUSES_H */
