/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent remembers of the calling kernel thread, for events so frequent that a system call each would show. */
#ifndef TAILOR_JVMAGENT_SELF_H
#define TAILOR_JVMAGENT_SELF_H

#include <stdint.h>

struct self {
	uint32_t tid;
	uint64_t vthread; /* number of the virtual thread that runs on it as far as mounts were seen, 0: none */
};

/* Before the first self(). Returns 0 or a negative errno; self() is then always NULL. */
int self_open(void);

/*
 * The calling thread's own, made at its first call and freed when it ends. NULL where there is no memory. Not from a GC
 * callback: it may allocate.
 */
struct self *self(void);

/* The same thread's tid, asked of the kernel where nothing is remembered. */
uint32_t self_tid(const struct self *self);

#endif /* TAILOR_JVMAGENT_SELF_H */
