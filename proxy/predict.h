/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a JVM will collect, learned from what it says of its heap (tailor/jvm_page.h). Pure: no clock, no I/O; a structure of zeros
 * has learned nothing.
 *
 * A young collection comes when the place for new objects is full: the rate at which it fills, and how full it was when collections
 * came before, say when. Collectors without such a place (ZGC, Shenandoah) collect when they think fit: that is never predicted.
 */
#ifndef TAILOR_PROXY_PREDICT_H
#define TAILOR_PROXY_PREDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <tailor/jvm_page.h>

/* As many collections are remembered: G1 and Parallel resize what they fill, and what was right a minute ago may not be now. */
#define PREDICT_COLLECTIONS 8

struct predict {
	struct tailor_jvm_heap last;
	bool seen;            /* there is a last reading */
	bool fills;           /* and there has been a place for new objects in one: one that is full of old ones may have none for now */
	uint64_t learned_ns;  /* for how long allocation has been watched */
	double fast, slow;    /* bytes a nanosecond: over the last tens of milliseconds, over the last second */
	double old_rate;      /* the same of the old generation, between collections */
	double step;          /* bytes by which a reading lately rose at once: it is no more exact than that */
	uint64_t collections; /* seen so far; of the last ones: */
	bool full[PREDICT_COLLECTIONS];
	double promoted[PREDICT_COLLECTIONS]; /* bytes that the old generation grew by in it */
	unsigned int wished;                  /* full ones that came because they were wished for, since there was another one */
	uint64_t levels;                      /* learned so far; the last ones: */
	double level[PREDICT_COLLECTIONS];    /* how full it was when a collection came, of young_size */
};

struct predict_next {
	bool known;        /* false: not enough is known, and the rest says nothing */
	bool full;         /* it will most likely be a full one */
	uint64_t ns;       /* until it begins; at most PREDICT_NS_MAX */
	uint64_t error_ns; /* it may be as much earlier or later, as far as is known */
};

/* Longer than that is not told apart. */
#define PREDICT_NS_MAX UINT64_C(3600000000000)

/* What is known of the last collection. One that somebody asked for says nothing about when others will come, nor whether they are full. */
struct predict_collection {
	uint64_t began_ns;  /* 0: not known */
	const char *cause;  /* as the JVM names it; "" not known */
	enum tailor_jvm_wish wished; /* the proxy asked for it */
};

/*
 * The heap, read once more, and the last collection, if there was one since the reading before. What is not newer than that is ignored;
 * a JVM whose counts went back is another one.
 */
void predict_read(struct predict *predict, const struct tailor_jvm_heap *now, const struct predict_collection *collection);

/* Its next collection, if `more` bytes a nanosecond are allocated beside what is now (the load of another server). */
struct predict_next predict_next(const struct predict *predict, uint64_t now_ns, double more);

/* What is allocated now, bytes a nanosecond: the most of what was lately. 0: nothing, or not known. */
double predict_rate(const struct predict *predict);

#endif /* TAILOR_PROXY_PREDICT_H */
