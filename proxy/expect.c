/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/expect.h"

#include <string.h>

#define STEP_BITS 2
#define FIRST_BITS 10 /* the first step begins at 2^10 ns */
/* How many stops of a kind or cause matter; of what safepoints turn out to be, more, since most of them are short ones. */
#define MEMORY_STOPS 16
#define MEMORY_JVM 32
/* What is left of a length's weight when it is forgotten, as a part of a new one's. */
#define FORGOTTEN 0.05f
#define UNIT_MAX 1e12f
/* Sooner again than that is later by the time that waking up takes. */
#define AGAIN_NS_MIN UINT64_C(20000)

static unsigned int step_of(uint64_t ns)
{
	unsigned int bits, step;

	if (ns < UINT64_C(1) << FIRST_BITS)
		return 0;
	bits = 63u - (unsigned int)__builtin_clzll(ns);
	step = (bits - FIRST_BITS) << STEP_BITS | ((unsigned int)(ns >> (bits - STEP_BITS)) & ((1u << STEP_BITS) - 1));
	return step < EXPECT_STEPS ? step : EXPECT_STEPS - 1;
}

/* Where a step begins; the first one at 0. */
static uint64_t step_begin(unsigned int step)
{
	if (step == 0)
		return 0;
	return ((UINT64_C(1) << STEP_BITS) + (step & ((1u << STEP_BITS) - 1))) << ((step >> STEP_BITS) + FIRST_BITS - STEP_BITS);
}

void expect_lengths_learn(struct expect_lengths *lengths, uint64_t ns, unsigned int memory)
{
	float unit = lengths->unit > 0 ? lengths->unit * (1 + 1 / (float)memory) : 1;

	if (unit > UNIT_MAX) {
		for (unsigned int i = 0; i < EXPECT_STEPS; i++)
			lengths->weight[i] /= unit;
		unit = 1;
	}
	lengths->unit = unit;
	lengths->weight[step_of(ns)] += unit;
}

/* Of a step's weight, what belongs to lengths beyond that one. */
static float weight_beyond(const struct expect_lengths *lengths, unsigned int step, uint64_t ns)
{
	uint64_t begin = step_begin(step), end = step_begin(step + 1);

	if (ns <= begin)
		return lengths->weight[step];
	return ns >= end ? 0 : lengths->weight[step] * (float)(end - ns) / (float)(end - begin);
}

/* Rising parts of the weight beyond lasted_ns, and the lengths up to which they lie. */
struct quantiles {
	unsigned int count;
	float weight[3];
	uint64_t ns[3];
};

/* In one pass: it is done when a server has just stopped, and nothing of this is in a cache then. */
static void find_quantiles(const struct expect_lengths *lengths, uint64_t lasted_ns, struct quantiles *quantiles)
{
	uint64_t begin = lasted_ns, last_ns = lasted_ns;
	unsigned int found = 0;
	float before = 0;

	for (unsigned int i = step_of(lasted_ns); i < EXPECT_STEPS && found < quantiles->count; i++) {
		float here = lengths->weight[i];
		uint64_t end;

		if (!(here > 0))
			continue;
		here = weight_beyond(lengths, i, lasted_ns);
		end = step_begin(i + 1);
		if (step_begin(i) > begin)
			begin = step_begin(i);
		for (; found < quantiles->count && here > 0 && quantiles->weight[found] <= before + here; found++) {
			float part = (quantiles->weight[found] - before) / here;

			quantiles->ns[found] = begin + (uint64_t)((float)(end - begin) * (part < 1 ? part : 1));
		}
		if (here > 0)
			last_ns = end;
		before += here;
	}
	/* By the inexactness of sums. */
	for (; found < quantiles->count; found++)
		quantiles->ns[found] = last_ns;
}

struct expect_rest expect_lengths_rest(const struct expect_lengths *lengths, uint64_t lasted_ns)
{
	unsigned int first = step_of(lasted_ns);
	struct quantiles quarters = {.count = 3};
	float beyond;

	if (!(lengths->unit > 0))
		return (struct expect_rest){.ns = UINT64_MAX, .error_ns = UINT64_MAX};
	beyond = weight_beyond(lengths, first, lasted_ns);
	for (unsigned int i = first + 1; i < EXPECT_STEPS; i++)
		beyond += lengths->weight[i];
	if (beyond < lengths->unit * FORGOTTEN)
		return (struct expect_rest){.ns = lasted_ns, .error_ns = lasted_ns, .known = true, .outlasted = true};
	for (unsigned int i = 0; i < 3; i++)
		quarters.weight[i] = beyond * (float)(i + 1) / 4;
	find_quantiles(lengths, lasted_ns, &quarters);
	return (struct expect_rest){
	        .ns = quarters.ns[1] - lasted_ns,
	        .error_ns = (quarters.ns[2] - quarters.ns[0]) / 2,
	        .known = true,
	};
}

uint64_t expect_lengths_most(const struct expect_lengths *lengths, float part)
{
	struct quantiles most = {.count = 1};
	float all = 0;

	for (unsigned int i = 0; i < EXPECT_STEPS; i++)
		all += lengths->weight[i];
	if (!(all > 0))
		return 0;
	most.weight[0] = all * part;
	find_quantiles(lengths, 0, &most);
	return most.ns[0];
}

static const struct expect_cause *find(const struct expect_stops *stops, const char *cause)
{
	for (unsigned int i = 0; cause[0] && i < EXPECT_CAUSES; i++) {
		if (strncmp(stops->cause[i].name, cause, sizeof(stops->cause[i].name)) == 0)
			return &stops->cause[i];
	}
	return NULL;
}

/* The cause's own, or the one that is given up for it. */
static struct expect_cause *make(struct expect_stops *stops, const char *cause)
{
	struct expect_cause *made = &stops->cause[0];

	for (unsigned int i = 0; i < EXPECT_CAUSES; i++) {
		struct expect_cause *this = &stops->cause[i];

		if (strncmp(this->name, cause, sizeof(this->name)) == 0)
			return this;
		if (this->used < made->used)
			made = this;
	}
	memset(made, 0, sizeof(*made));
	strncpy(made->name, cause, sizeof(made->name) - 1);
	return made;
}

void expect_learn(struct expect_stops *stops, enum tailor_stop_kind kind, const char *cause, uint64_t length_ns)
{
	stops->learned++;
	expect_lengths_learn(&stops->kind[kind], length_ns, MEMORY_STOPS);
	if (kind == TAILOR_STOP_SAFEPOINT || kind == TAILOR_STOP_GC)
		expect_lengths_learn(&stops->jvm, length_ns, MEMORY_JVM);
	if (kind == TAILOR_STOP_GC && cause[0]) {
		struct expect_cause *known = make(stops, cause);

		known->used = stops->learned;
		expect_lengths_learn(&known->lengths, length_ns, MEMORY_STOPS);
	}
}

struct expect_rest expect_stop_rest(const struct expect_stops *stops, enum tailor_stop_kind kind, const char *cause, uint64_t lasted_ns)
{
	const struct expect_cause *known = kind == TAILOR_STOP_GC ? find(stops, cause) : NULL;

	if (known)
		return expect_lengths_rest(&known->lengths, lasted_ns);
	return expect_lengths_rest(kind == TAILOR_STOP_SAFEPOINT ? &stops->jvm : &stops->kind[kind], lasted_ns);
}

uint64_t expect_again_ns(const struct expect_rest *rest, uint64_t lasted_ns)
{
	uint64_t again_ns = rest->ns > lasted_ns / 4 ? rest->ns : lasted_ns / 4;

	return again_ns > AGAIN_NS_MIN ? again_ns : AGAIN_NS_MIN;
}
