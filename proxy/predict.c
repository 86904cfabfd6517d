/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/predict.h"

#include <string.h>

#define MS UINT64_C(1000000)
/* How far back the rates look. A burst counts at once, and what has been counts while it pauses. */
#define FAST_NS (50 * MS)
#define SLOW_NS (1000 * MS)
/* What was watched for less says nothing. */
#define LEARNED_NS_MIN (20 * MS)
/* Nobody writes readings any more: the JVM stands still, or is ending. */
#define STALE_NS (250 * MS)
/* Until collections have been seen, it is full when it is full; in parts of young_size. */
#define LEVEL_UNSEEN 1.0
#define SPREAD_UNSEEN 0.03
/* What threads have taken of it they use up after it is full. */
#define LEVEL_MAX 1.2
#define SPREAD_MIN 0.005
/* A level that has to be guessed from a reading so far below it is not learned. */
#define GUESS_MAX 0.2

static double greater(double one, double other)
{
	return one > other ? one : other;
}

double predict_rate(const struct predict *predict)
{
	return greater(predict->fast, predict->slow);
}

/* A mean that forgets; at first it is that of all there is. */
static double mean(double before, double value, uint64_t took_ns, uint64_t memory_ns, uint64_t learned_ns)
{
	double memory = (double)(learned_ns < memory_ns ? learned_ns : memory_ns);

	return before + (value - before) * (double)took_ns / (memory + (double)took_ns);
}

static void learn_rates(struct predict *predict, const struct tailor_jvm_heap *now)
{
	const struct tailor_jvm_heap *last = &predict->last;
	uint64_t took_ns = now->time_ns - last->time_ns;
	double rose = now->young_used > last->young_used ? (double)(now->young_used - last->young_used) : 0;
	double old = now->old_used > last->old_used ? (double)(now->old_used - last->old_used) : 0;
	double steady = predict->slow * (double)took_ns;

	predict->fast = mean(predict->fast, rose / (double)took_ns, took_ns, FAST_NS, predict->learned_ns);
	predict->slow = mean(predict->slow, rose / (double)took_ns, took_ns, SLOW_NS, predict->learned_ns);
	predict->old_rate = mean(predict->old_rate, old / (double)took_ns, took_ns, SLOW_NS, predict->learned_ns);
	/* Threads take their part of it at once, and use that up unseen. */
	predict->step = greater(mean(predict->step, 0, took_ns, SLOW_NS, SLOW_NS), rose > steady ? rose - steady : 0);
	predict->learned_ns += took_ns;
}

static bool is_among(const char *cause, const char *const *causes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(cause, causes[i]) == 0)
			return true;
	}
	return false;
}

static bool is_of_allocation(const char *cause)
{
	static const char *const causes[] = {"", "Allocation Failure", "G1 Evacuation Pause", "G1 Preventive Collection"};

	return is_among(cause, causes, sizeof(causes) / sizeof(*causes));
}

/* By the application or a tool, or for the sake of something else than the heap's room. */
static bool is_of_something_else(const char *cause)
{
	static const char *const causes[] = {
	        "System.gc()",
	        "Diagnostic Command",
	        "Heap Inspection Initiated GC",
	        "Heap Dump Initiated GC",
	        "JvmtiEnv ForceGarbageCollection",
	        "Metadata GC Threshold",
	        "Metadata GC Clear Soft References",
	        "CodeCache GC Threshold",
	        "G1 Periodic Collection",
	};

	return is_among(cause, causes, sizeof(causes) / sizeof(*causes));
}

/* How full it was when the collection began, if the last reading before it says that well enough. */
static void learn_level(struct predict *predict, const struct predict_collection *collection)
{
	const struct tailor_jvm_heap *last = &predict->last;
	double size = (double)last->young_size, guessed = 0, level;

	if (last->young_size == 0 || collection->wished != TAILOR_JVM_WISH_NONE || !is_of_allocation(collection->cause) ||
	    collection->began_ns == 0)
		return;
	if (collection->began_ns > last->time_ns)
		guessed = predict_rate(predict) * (double)(collection->began_ns - last->time_ns);
	if (guessed > GUESS_MAX * size)
		return;
	level = ((double)last->young_used + guessed) / size;
	predict->level[predict->levels++ % PREDICT_COLLECTIONS] = level < LEVEL_MAX ? level : LEVEL_MAX;
}

static void learn_collection(struct predict *predict, const struct tailor_jvm_heap *now, const struct predict_collection *collection)
{
	const struct tailor_jvm_heap *last = &predict->last;
	unsigned int at;

	if (collection->wished == TAILOR_JVM_WISH_FULL) {
		predict->wished++;
		return;
	}
	if (is_of_something_else(collection->cause))
		return;
	/* Of several only the last one's beginning is known. */
	if (now->collected_young + now->collected_old == last->collected_young + last->collected_old + 1)
		learn_level(predict, collection);
	at = (unsigned int)(predict->collections++ % PREDICT_COLLECTIONS);
	predict->wished = 0;
	predict->full[at] = now->collected_old > last->collected_old;
	predict->promoted[at] = now->old_used > last->old_used ? (double)(now->old_used - last->old_used) : 0;
}

void predict_read(struct predict *predict, const struct tailor_jvm_heap *now, const struct predict_collection *collection)
{
	const struct tailor_jvm_heap *last = &predict->last;

	if (now->time_ns == 0 || (predict->seen && now->time_ns <= last->time_ns))
		return;
	if (predict->seen && (now->collected_young < last->collected_young || now->collected_old < last->collected_old))
		memset(predict, 0, sizeof(*predict));
	if (predict->seen) {
		if (now->collected_young == last->collected_young && now->collected_old == last->collected_old)
			learn_rates(predict, now);
		else
			learn_collection(predict, now, collection);
	}
	predict->last = *now;
	predict->seen = true;
	predict->fills |= now->young_size > 0;
}

/* The level at which collections come, and how far from it half of them did. */
static double level_of(const struct predict *predict, double *ret_spread)
{
	unsigned int count = predict->levels < PREDICT_COLLECTIONS ? (unsigned int)predict->levels : PREDICT_COLLECTIONS;
	double sorted[PREDICT_COLLECTIONS], value;

	*ret_spread = SPREAD_UNSEEN;
	if (count == 0)
		return LEVEL_UNSEEN;
	for (unsigned int i = 0; i < count; i++) {
		unsigned int at = i;

		for (value = predict->level[i]; at > 0 && sorted[at - 1] > value; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = value;
	}
	if (count > 2)
		*ret_spread = greater((sorted[count * 3 / 4] - sorted[count / 4]) / 2, SPREAD_MIN);
	return sorted[count / 2];
}

/* What is left of it may not hold what survives the next one; or all that came lately were full. */
static bool is_next_full(const struct predict *predict)
{
	unsigned int count = predict->collections < PREDICT_COLLECTIONS ? (unsigned int)predict->collections : PREDICT_COLLECTIONS;
	const struct tailor_jvm_heap *last = &predict->last;
	double left = last->old_size > last->old_used ? (double)(last->old_size - last->old_used) : 0, most = 0;

	for (unsigned int i = 0; i < count; i++)
		most = greater(most, predict->promoted[i]);
	if (last->old_size && count > 0 && most > left)
		return true;
	/* Whether they still would be, is to be found out now and then. */
	return count > 1 && predict->wished < PREDICT_COLLECTIONS && predict->full[(predict->collections - 1) % PREDICT_COLLECTIONS] &&
	       predict->full[(predict->collections - 2) % PREDICT_COLLECTIONS];
}

static uint64_t capped_ns(double ns)
{
	return ns <= 0 ? 0 : ns < (double)PREDICT_NS_MAX ? (uint64_t)ns : PREDICT_NS_MAX;
}

/* When the old generation is full by what goes there at once, without a collection. */
static double old_full_ns(const struct predict *predict)
{
	const struct tailor_jvm_heap *last = &predict->last;

	if (!(predict->old_rate > 0) || last->old_size == 0)
		return (double)PREDICT_NS_MAX;
	return (last->old_size > last->old_used ? (double)(last->old_size - last->old_used) : 0) / predict->old_rate;
}

struct predict_next predict_next(const struct predict *predict, uint64_t now_ns, double more)
{
	const struct tailor_jvm_heap *last = &predict->last;
	struct predict_next next = {.known = true};
	double rate = predict_rate(predict), slower, size = (double)last->young_size, left, age, spread, ns, old_ns;

	age = now_ns > last->time_ns ? (double)(now_ns - last->time_ns) : 0;
	if (!predict->seen || last->young_size == 0 || predict->learned_ns < LEARNED_NS_MIN || age > (double)STALE_NS)
		return (struct predict_next){.known = false};
	slower = (predict->fast < predict->slow ? predict->fast : predict->slow) + more;
	left = level_of(predict, &spread) * size - (double)last->young_used - rate * age;
	rate += more;
	next.full = is_next_full(predict);
	if (!(rate > 0)) {
		next.ns = PREDICT_NS_MAX;
		return next;
	}
	ns = left > 0 ? left / rate : 0;
	old_ns = old_full_ns(predict) - age;
	if (old_ns < ns) {
		ns = greater(old_ns, 0);
		next.full = true;
	}
	next.ns = capped_ns(ns);
	next.error_ns = capped_ns(ns * (rate - slower) / rate / 2 + (spread * size + predict->step) / rate);
	return next;
}
