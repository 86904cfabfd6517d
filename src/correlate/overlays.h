/* SPDX-License-Identifier: Apache-2.0 */
/* What lies over a thread's own time on its CPU: class loading, page faults, interrupts. */
#ifndef TAILOR_CORRELATE_OVERLAYS_H
#define TAILOR_CORRELATE_OVERLAYS_H

#include <tailor/window.h>

/* A stretch of a thread's time with a cause of its own. */
struct overlay {
	uint32_t tid;
	uint64_t start_ns;
	uint64_t end_ns;
	enum tailor_cause cause; /* of a storm that faults do not fill by half: ON_CPU */
	uint32_t count;          /* how many classes, faults, interrupts */
	uint64_t ns;             /* of a storm: in faults */
	uint64_t address;        /* of faults: the lowest; of an interrupt: the event's extra */
	const char *name;        /* of the first class; NULL unknown */
};

/* Ordered by tid, then start; those of a tid do not overlap. */
struct layer {
	struct overlay *list;
	size_t count;
};

struct overlays {
	struct layer classes;
	struct layer faults; /* each with its duration */
	struct layer storms; /* of faults, told together */
	struct layer interrupts;
};

/* O(n log n). Returns 0 or -ENOMEM. Freed by overlays_free(), also after an error. */
int overlays_build(struct overlays *overlays, const struct tailor_window *window);
void overlays_free(struct overlays *overlays);

/* The first of the thread that ends after time_ns, and the next one of the same thread; NULL when there is none. */
const struct overlay *overlay_after(const struct layer *layer, uint32_t tid, uint64_t time_ns);
const struct overlay *overlay_next(const struct layer *layer, const struct overlay *overlay);

#endif /* TAILOR_CORRELATE_OVERLAYS_H */
