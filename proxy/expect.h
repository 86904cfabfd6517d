/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a server that stands still will go on doing so, learned from its stops before; and how long an answer takes. Pure: no clock,
 * no I/O; a structure of zeros has learned nothing.
 *
 * What is expected is the median, which one outlier does not move: a host that froze once for 100 ms must not make pauses of 50 us look long.
 */
#ifndef TAILOR_PROXY_EXPECT_H
#define TAILOR_PROXY_EXPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <tailor/jvm_page.h>
#include <tailor/stop.h>

/* Four steps to a power of two, from 1 us to 5 min; what is beyond counts as the last one. */
#define EXPECT_STEPS 112

/* Lengths by step. The newer one weighs more: its weight grows with each, which spares a change of all others. */
struct expect_lengths {
	float weight[EXPECT_STEPS];
	float unit; /* weight of the last one; 0: nothing has been learned */
};

/* How many kept causes a server has; JVMs have about ten that happen. The one that was learned longest ago is given up for a new one. */
#define EXPECT_CAUSES 8

struct expect_cause {
	char name[TAILOR_JVM_CAUSE_BYTES];
	uint64_t used; /* when: a count of what was learned */
	struct expect_lengths lengths;
};

/* The stops of one server. */
struct expect_stops {
	struct expect_lengths kind[TAILOR_STOP_KINDS];
	struct expect_lengths jvm; /* SAFEPOINT and GC: what a safepoint may turn out to be */
	struct expect_cause cause[EXPECT_CAUSES];
	uint64_t learned;
};

/* What remains, of which half of the stops that got so far had less, and half more. */
struct expect_rest {
	uint64_t ns;
	uint64_t error_ns; /* half of the stops lie in about ns - error_ns..ns + error_ns */
	bool known;   /* false: nothing like it has happened before; ns is then UINT64_MAX */
	bool outlasted; /* it has lasted longer than all that are remembered: then it is taken to last as long again */
};

/* Remembers a length; about the last `memory` of them matter. */
void expect_lengths_learn(struct expect_lengths *lengths, uint64_t ns, unsigned int memory);
/* What remains of one that has lasted so long. */
struct expect_rest expect_lengths_rest(const struct expect_lengths *lengths, uint64_t lasted_ns);

/* What `part` (0..1) of them take at most; 0: nothing has been learned. */
uint64_t expect_lengths_most(const struct expect_lengths *lengths, float part);

/* A stop is over that was of that kind, as far as was known at its end. `cause`: "" where it is not known. */
void expect_learn(struct expect_stops *stops, enum tailor_stop_kind kind, const char *cause, uint64_t length_ns);

/*
 * What remains of a stop that has lasted so long. A cause that has not been seen yet is taken for any collection; a safepoint for whatever
 * safepoints have turned out to be.
 */
struct expect_rest expect_stop_rest(const struct expect_stops *stops, enum tailor_stop_kind kind, const char *cause, uint64_t lasted_ns);

/* After how long a stop that has lasted so long, and was expected to be over after `rest`, is to be looked at anew. */
uint64_t expect_again_ns(const struct expect_rest *rest, uint64_t lasted_ns);

#endif /* TAILOR_PROXY_EXPECT_H */
