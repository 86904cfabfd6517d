/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual threads: the kernel sees only the carriers, each of which passes from one virtual thread to the next without a trace there.
 * The agent's account of mounts tells which one it was.
 */
#ifndef TAILOR_CORRELATE_VTHREAD_H
#define TAILOR_CORRELATE_VTHREAD_H

#include <tailor/window.h>

/* A virtual thread on a carrier. */
struct mount {
	uint32_t tid;
	uint64_t vthread;
	uint64_t from_ns;
	uint64_t to_ns; /* UINT64_MAX: it was still there at the window's end */
};

/* Zero is none. Ordered by from_ns. */
struct mounts {
	struct mount *list;
	size_t count;
};

/* The mounts in one JVM, O(n) in the window's events. Returns 0 or -ENOMEM. Freed by mounts_free(), also after an error. */
int mounts_read(struct mounts *mounts, const struct tailor_window *window, uint32_t pid);
void mounts_free(struct mounts *mounts);

/* The virtual thread that the carrier ran at that time, 0 when it ran none or that is not known. */
uint64_t mounts_on(const struct mounts *mounts, uint32_t tid, uint64_t time_ns);

/* 1 when the thread has a carrier's name. So have those of any ForkJoinPool. */
int mounts_may_be_on(const struct tailor_window *window, uint32_t tid);

#endif /* TAILOR_CORRELATE_VTHREAD_H */
