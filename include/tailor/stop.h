/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel knows of servers that stand still, for the proxy's workers: a table in a BPF array that they have mapped. It is
 * earlier than the agent, which is told when all threads have stopped, and it knows of JVMs without one.
 *
 * Self-contained, also when compiled for BPF.
 */
#ifndef TAILOR_STOP_H
#define TAILOR_STOP_H

#include <stdint.h>

/* As many servers as a proxy may have; the index is the server's in its configuration. */
#define TAILOR_STOP_SERVERS 16
/* And as many workers. */
#define TAILOR_STOP_WAITERS 16

enum tailor_stop_kind {
	TAILOR_STOP_NONE = 0,      /* it runs */
	TAILOR_STOP_SAFEPOINT = 1, /* its JVM is bringing its threads to a stop, or has: USDT safepoint__begin to safepoint__end */
	TAILOR_STOP_SIGNAL = 2,    /* SIGSTOP or a tracer: one of its threads left its CPU stopped, and none has been woken since */
	/* Never in the table; the same words are used for what the proxy has from elsewhere. */
	TAILOR_STOP_GC = 3,        /* the agent: a collection */
	TAILOR_STOP_STALL = 4,     /* the agent's heartbeat is missing: stopped, frozen, or without a CPU */
	TAILOR_STOP_GONE = 5,      /* the process has ended */
	TAILOR_STOP_KINDS = 6,     /* how many there are */
};

/* A kind and since when, in one word, so that both are read together: ns << 3 | kind. */
#define TAILOR_STOP(kind, since_ns) (((uint64_t)(since_ns) << 3) | (uint64_t)(kind))
#define TAILOR_STOP_KIND(word) ((enum tailor_stop_kind)((word) & 7))
#define TAILOR_STOP_SINCE_NS(word) ((uint64_t)(word) >> 3)

/*
 * Two cache lines for each. The first one only the kernel writes, and whoever tells it the process. The second one is the workers': each
 * sets its `waits` before it sleeps where it wants to be woken by the next change of the word, looks at the word once more after a full fence,
 * and then sleeps; the kernel stores the word first and then, after a full fence, looks who waits. What somebody has missed who did not wait is
 * in `count`, `last` and `end_ns`.
 */
struct tailor_stop {
	uint64_t word;
	uint64_t count; /* stops begun so far: it only grows, whichever process it is */
	/* For the kernel's programs and their loader. */
	uint64_t pid;          /* 0: nobody's stops are told here */
	uint64_t safepoint_ns; /* since when it is in a safepoint, 0: it is in none */
	uint64_t signal_ns;    /* since when one of its threads is stopped */
	/* Written before the word says that it is over. */
	uint64_t last;   /* TAILOR_STOP(kind, its length in ns) of the last one that is over; 0: none is */
	uint64_t end_ns; /* when it was */
	uint64_t reserved;

	uint8_t waits[TAILOR_STOP_WAITERS]; /* by worker; not 0: it is to be woken */
	uint64_t reserved2[6];
};
_Static_assert(sizeof(struct tailor_stop) == 128, "servers share no cache line");
_Static_assert(__builtin_offsetof(struct tailor_stop, waits) == 64, "what the workers write starts a cache line");

/* Of the BPF ring buffer that wakes whoever polls it: its size, and what a change takes of it, once with the kernel's header. */
#define TAILOR_STOP_CHANGES_BYTES 65536
#define TAILOR_STOP_CHANGE_BYTES 8
#define TAILOR_STOP_CHANGE_BYTES_ALL 16

#endif /* TAILOR_STOP_H */
