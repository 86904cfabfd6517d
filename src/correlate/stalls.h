/* SPDX-License-Identifier: Apache-2.0 */
/* When CPUs stood still. */
#ifndef TAILOR_CORRELATE_STALLS_H
#define TAILOR_CORRELATE_STALLS_H

#include "correlate/spans.h"
#include <tailor/window.h>

struct stall {
	uint16_t cpu;
	uint64_t start_ns;
	uint64_t end_ns;
};

struct stalls {
	struct stall *list; /* ordered by cpu, then start; those of a cpu do not overlap */
	size_t count;
};

/* O(n log n). Returns 0 or -ENOMEM. Freed by stalls_free(), also after an error. */
int stalls_build(struct stalls *stalls, const struct tailor_window *window);
void stalls_free(struct stalls *stalls);

/* The spans from index `first` on ran on that CPU or waited for it, at least from since_ns on: what it stood still of them after that is
 * the machine's. */
void stalls_cut(const struct stalls *stalls, struct span_list *spans, size_t first, unsigned int cpu, uint64_t since_ns);

/*
 * The spans from index `first` on are a wait that this wake-up ended. If an interrupt did, right after its CPU had stood
 * still, then it came, or would have come, meanwhile: the wait's end from the stall's beginning on is the machine's.
 */
void stalls_cut_wait(const struct stalls *stalls, struct span_list *spans, size_t first, const struct tailor_event *wakeup);

#endif /* TAILOR_CORRELATE_STALLS_H */
