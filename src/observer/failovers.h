/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers did about stops of servers -> failovers: pure. Each worker tells of each stop once, in its own time: those of one
 * server that overlap are one stop, if they are different workers'. Beside them are kept in mind, until it is known when the stops ended,
 * the requests that were moved for them, and the collections of the servers' JVMs, which say what the stops were for: a worker asks the
 * JVM when it notices, which may be before the JVM knows.
 */
#ifndef TAILOR_OBSERVER_FAILOVERS_H
#define TAILOR_OBSERVER_FAILOVERS_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/failover.h>
#include <tailor/window.h>

#include "base/clock.h"
#include "collect/requests.h"

/* A worker that the host keeps from running may tell of a stop so much later than the others. */
#define TAILOR_FAILOVER_SETTLE_NS (500 * TAILOR_NS_PER_MS)
/* Stops at a time; beyond, the oldest is said to be settled. */
#define TAILOR_FAILOVERS_OPEN 32
#define TAILOR_FAILOVERS_WORKERS 64 /* beyond, each is taken for another stop */
/* Moved requests that are kept in mind; beyond, the oldest is forgotten, and counts as nothing saved. */
#define TAILOR_FAILOVERS_MOVES 4096
#define TAILOR_FAILOVERS_REASONS 32
/* Collections of a server that are kept in mind. */
#define TAILOR_FAILOVERS_COLLECTIONS 32

struct tailor_failovers {
	struct joined {
		struct tailor_failover failover; /* without the server's name and what was saved */
		unsigned int server;
		uint64_t workers;      /* who told, as bits */
		uint64_t told_ns;      /* when the last one did */
		uint64_t not_moved[TAILOR_FAILOVERS_REASONS]; /* by each worker's most frequent reason; the last: any other one */
	} open[TAILOR_FAILOVERS_OPEN];
	size_t count;
	struct moved {
		uint64_t moved_ns;
		uint64_t end_ns;
		uint64_t servers;  /* that it was moved away from then, as bits; one at most, but where several stood still */
	} *moves;
	size_t move; /* the next place to be used */
	struct collected {
		struct {
			uint64_t start_ns;
			uint64_t end_ns; /* 0: none */
			char cause[TAILOR_JVM_CAUSE_BYTES];
		} list[TAILOR_FAILOVERS_COLLECTIONS];
		size_t next;
	} collected[TAILOR_STOP_SERVERS];
};

/* Returns 0 or -ENOMEM; and the opposite. */
int tailor_failovers_init(struct tailor_failovers *failovers);
void tailor_failovers_free(struct tailor_failovers *failovers);

/* Takes a worker's word on a stop in. */
void tailor_failovers_stopped(struct tailor_failovers *failovers, size_t worker, const struct tailor_stopped *stopped);

/* Takes a request in that has ended. Those count that were moved because a server stood still, and that another one answered. */
void tailor_failovers_ended(struct tailor_failovers *failovers, const struct tailor_record *record);

/* Takes a collection of a server's JVM in; `text` as of TAILOR_EVENT_GC_FINISH. */
void tailor_failovers_collected(struct tailor_failovers *failovers, unsigned int server, uint64_t start_ns, uint64_t end_ns, const char *text);

/*
 * Takes out the oldest stop of which every worker has told by now, with its server, and its most frequent reason for not moving a request
 * in *ret_why_not (enum tailor_not_moved, if failover.not_moved > 0). Names, wall_ns and `incomplete` are left to the caller. Returns 1, or
 * 0: there is none. now_ns must be a time until which all has been taken in; UINT64_MAX: whatever there is; 0: only what there is no room
 * for. tailor_failovers_stopped() may be called again when it has returned 0.
 */
int tailor_failovers_settled(struct tailor_failovers *failovers, uint64_t now_ns, struct tailor_failover *ret_failover,
                             unsigned int *ret_server, unsigned int *ret_why_not);

#endif /* TAILOR_OBSERVER_FAILOVERS_H */
