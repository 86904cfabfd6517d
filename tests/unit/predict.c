/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy/predict.h"

#define MS UINT64_C(1000000)
#define MB UINT64_C(1000000)
#define LOOK_NS (2 * MS)

/* A JVM: what it allocates, and at which part of eden it collects. */
struct jvm {
	struct tailor_jvm_heap heap;
	double used;
	double level;        /* of young_size, at which a collection comes */
	double step;         /* bytes that show at once */
	uint64_t began_ns;   /* its last collection */
	uint64_t promotes;
	bool full;           /* each is a full one */
	const char *cause;
};

static struct jvm jvm_new(uint64_t young_size)
{
	return (struct jvm){.heap = {.time_ns = 1000 * MS, .young_size = young_size, .old_used = 50 * MB, .old_size = 1000 * MB},
	                    .level = 1,
	                    .step = 1,
	                    .cause = "Allocation Failure"};
}

/* Runs for so long; collects when it is time to. Returns whether it did. */
static bool run(struct jvm *jvm, uint64_t ns, double bytes_a_ns)
{
	double before = jvm->used, limit = jvm->level * (double)jvm->heap.young_size;
	bool collects;

	jvm->used += bytes_a_ns * (double)ns;
	collects = jvm->used >= limit;
	if (collects) {
		jvm->began_ns = jvm->heap.time_ns + (uint64_t)((limit - before) / bytes_a_ns);
		jvm->used -= limit;
		jvm->heap.old_used += jvm->promotes;
		if (jvm->full)
			jvm->heap.collected_old++;
		else
			jvm->heap.collected_young++;
	}
	jvm->heap.time_ns += ns;
	jvm->heap.young_used = (uint64_t)(jvm->used / jvm->step) * (uint64_t)jvm->step;
	return collects;
}

static void tell(struct predict *predict, const struct jvm *jvm)
{
	predict_read(predict, &jvm->heap, &(struct predict_collection){.began_ns = jvm->began_ns, .cause = jvm->cause});
}

static void live(struct predict *predict, struct jvm *jvm, uint64_t ns, double bytes_a_ns)
{
	for (uint64_t lived_ns = 0; lived_ns < ns; lived_ns += LOOK_NS) {
		run(jvm, LOOK_NS, bytes_a_ns);
		tell(predict, jvm);
	}
}

static struct predict_next next_of(const struct predict *predict, const struct jvm *jvm)
{
	return predict_next(predict, jvm->heap.time_ns, 0);
}

static void assert_about(uint64_t ns, uint64_t expected_ns)
{
	if (ns < expected_ns * 9 / 10 || ns > expected_ns * 11 / 10)
		fail_msg("%llu us, not about %llu", (unsigned long long)ns / 1000, (unsigned long long)expected_ns / 1000);
}

static void who_has_seen_nothing_predicts_nothing(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	assert_false(next_of(&predict, &jvm).known);
	live(&predict, &jvm, 10 * MS, 0.1);
	assert_false(next_of(&predict, &jvm).known);
	live(&predict, &jvm, 50 * MS, 0.1);
	assert_true(next_of(&predict, &jvm).known);
}

static void a_steady_rate_says_when(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	/* 100 MB/s: full after a second. */
	live(&predict, &jvm, 400 * MS, 0.1);
	assert_about(next_of(&predict, &jvm).ns, 600 * MS);
	live(&predict, &jvm, 300 * MS, 0.1);
	assert_about(next_of(&predict, &jvm).ns, 300 * MS);
	/* With as much again. */
	assert_about(predict_next(&predict, jvm.heap.time_ns, 0.1).ns, 150 * MS);
	/* Time goes on without a reading, too. */
	assert_about(predict_next(&predict, jvm.heap.time_ns + 100 * MS, 0).ns, 200 * MS);
}

static void without_a_place_that_fills_nothing_is_predicted(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(0);

	(void)state;
	jvm.level = 1e18;
	for (unsigned int i = 0; i < 1000; i++) {
		jvm.heap.time_ns += LOOK_NS;
		jvm.heap.old_used += MB;
		jvm.heap.collected_old += i % 100 == 99;
		tell(&predict, &jvm);
		assert_false(next_of(&predict, &jvm).known);
	}
}

static void a_burst_counts_at_once(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(1000 * MB);

	(void)state;
	live(&predict, &jvm, 2000 * MS, 0.05);
	assert_true(next_of(&predict, &jvm).ns > 10000 * MS);
	live(&predict, &jvm, 100 * MS, 0.5);
	/* 850 MB left. */
	assert_in_range(next_of(&predict, &jvm).ns, 1500 * MS, 2800 * MS);
	/* And while it takes a breath: without it, there would be 17 s left. */
	live(&predict, &jvm, 100 * MS, 0);
	assert_in_range(next_of(&predict, &jvm).ns, 1500 * MS, 12000 * MS);
}

static void who_allocates_nothing_collects_at_no_time_soon(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	live(&predict, &jvm, 500 * MS, 0.1);
	live(&predict, &jvm, 10000 * MS, 0);
	assert_true(next_of(&predict, &jvm).known);
	assert_true(next_of(&predict, &jvm).ns > 60000 * MS);
}

static void where_collections_come_earlier_is_learned(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	jvm.level = 0.6;
	live(&predict, &jvm, 4000 * MS, 0.1);
	jvm.used = 0;
	live(&predict, &jvm, 300 * MS, 0.1);
	assert_about(next_of(&predict, &jvm).ns, 300 * MS);
	/* And forgotten. */
	jvm.level = 1;
	live(&predict, &jvm, 15000 * MS, 0.1);
	jvm.used = 0;
	live(&predict, &jvm, 500 * MS, 0.1);
	assert_about(next_of(&predict, &jvm).ns, 500 * MS);
}

static void eden_may_change_its_size(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	live(&predict, &jvm, 3000 * MS, 0.1);
	jvm.heap.young_size = 40 * MB;
	jvm.used = 0;
	jvm.heap.collected_young++;
	live(&predict, &jvm, 200 * MS, 0.1);
	assert_about(next_of(&predict, &jvm).ns, 200 * MS);
}

static void what_somebody_asks_for_says_nothing_about_the_others(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		live(&predict, &jvm, 300 * MS, 0.1);
		jvm.used = 0;
		jvm.heap.young_used = 0;
		jvm.heap.collected_old++;
		jvm.began_ns = jvm.heap.time_ns;
		jvm.heap.time_ns += LOOK_NS;
		jvm.cause = "";
		predict_read(&predict, &jvm.heap,
		             &(struct predict_collection){.began_ns = jvm.began_ns,
		                                          .cause = i % 2 ? "System.gc()" : "",
		                                          .wished = i % 2 ? TAILOR_JVM_WISH_NONE : TAILOR_JVM_WISH_FULL});
	}
	live(&predict, &jvm, 300 * MS, 0.1);
	assert_about(next_of(&predict, &jvm).ns, 700 * MS);
}

static void a_full_one_is_expected_when_the_old_generation_is(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	jvm.promotes = 30 * MB;
	live(&predict, &jvm, 3500 * MS, 0.1);
	assert_false(next_of(&predict, &jvm).full);
	jvm.heap.old_used = jvm.heap.old_size - 20 * MB;
	live(&predict, &jvm, 100 * MS, 0.1);
	assert_true(next_of(&predict, &jvm).full);
	/* Where all have been, too. */
	predict = (struct predict){0};
	jvm = jvm_new(100 * MB);
	jvm.full = true;
	live(&predict, &jvm, 3500 * MS, 0.1);
	assert_true(next_of(&predict, &jvm).full);
}

static void that_somebody_asks_for_full_ones_says_not_that_others_are(void **state)
{
	static const char *const causes[] = {"System.gc()", "Metadata GC Threshold", "Diagnostic Command"};

	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++) {
		struct predict predict = {0};
		struct jvm jvm = jvm_new(100 * MB);

		live(&predict, &jvm, 500 * MS, 0.1);
		jvm.cause = causes[i];
		/* What it compacts goes to the old generation, as nothing does otherwise. */
		jvm.heap.old_size = 100 * MB;
		for (unsigned int j = 0; j < 2; j++) {
			jvm.heap.collected_old++;
			jvm.heap.old_used += j ? 0 : 40 * MB;
			jvm.began_ns = jvm.heap.time_ns;
			live(&predict, &jvm, 50 * MS, 0.1);
		}
		assert_true(next_of(&predict, &jvm).known);
		if (next_of(&predict, &jvm).full)
			fail_msg("%s", causes[i]);
	}
}

static void a_place_that_is_gone_for_now_is_remembered(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	jvm.heap.collected_young = 7;
	live(&predict, &jvm, 500 * MS, 0.1);
	jvm.heap.young_size = 0;
	jvm.heap.time_ns += LOOK_NS;
	tell(&predict, &jvm);
	assert_false(next_of(&predict, &jvm).known);
	assert_true(predict.fills);
	/* Another JVM may never have one. */
	jvm.heap.collected_young = 0;
	jvm.heap.time_ns += LOOK_NS;
	tell(&predict, &jvm);
	assert_true(predict.seen && !predict.fills);
}

static void an_old_generation_that_fills_by_itself_is_seen(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(1000 * MB);

	(void)state;
	for (unsigned int i = 0; i < 500; i++) {
		run(&jvm, LOOK_NS, 0.001);
		jvm.heap.old_used += MB / 2;
		tell(&predict, &jvm);
	}
	/* 700 MB left at 250 MB/s. */
	assert_true(next_of(&predict, &jvm).full);
	assert_about(next_of(&predict, &jvm).ns, 2800 * MS);
}

static void another_jvm_begins_anew(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	live(&predict, &jvm, 3000 * MS, 0.1);
	jvm.heap.collected_young = 0;
	jvm.heap.time_ns += LOOK_NS;
	tell(&predict, &jvm);
	assert_false(next_of(&predict, &jvm).known);
	/* A reading that is older than the last one is none. */
	jvm.heap.time_ns -= MS;
	jvm.heap.collected_young = 7;
	tell(&predict, &jvm);
	assert_int_equal(predict.last.collected_young, 0);
}

static void readings_that_are_old_say_nothing(void **state)
{
	struct predict predict = {0};
	struct jvm jvm = jvm_new(100 * MB);

	(void)state;
	live(&predict, &jvm, 500 * MS, 0.1);
	assert_false(predict_next(&predict, jvm.heap.time_ns + 1000 * MS, 0).known);
}

static double random_part(unsigned int *seed)
{
	return (double)rand_r(seed) / RAND_MAX;
}

/*
 * Servers of all kinds, with rates that change by half now and then, levels that differ, and steps: at a moment before each collection,
 * its time must lie within what was said for most of them.
 */
static void most_collections_come_when_they_are_expected(void **state)
{
	unsigned int within = 0, all = 0, seed = 20, early = 0;

	(void)state;
	for (unsigned int life = 0; life < 200; life++) {
		uint64_t size = (20 + (uint64_t)rand_r(&seed) % 400) * MB;
		struct jvm jvm = jvm_new(size);
		struct predict predict = {0};
		double rate = (double)size / (double)(300 * MS + (uint64_t)rand_r(&seed) % (2000 * MS)), level = 0.7 + 0.3 * random_part(&seed);
		uint64_t ask_ns = 0, low_ns = 0, high_ns = 0, end_ns = jvm.heap.time_ns + 20000 * MS;

		jvm.step = 1 + random_part(&seed) * (double)size / 50;
		while (jvm.heap.time_ns < end_ns) {
			struct predict_next next;

			jvm.level = level - 0.02 * random_part(&seed);
			if (rand_r(&seed) % 200 == 0)
				rate *= 0.75 + random_part(&seed) / 2;
			if (run(&jvm, LOOK_NS, rate * (0.5 + random_part(&seed)))) {
				all += high_ns != 0;
				within += high_ns && jvm.began_ns >= low_ns && jvm.began_ns <= high_ns;
				early += high_ns && jvm.began_ns < low_ns;
				ask_ns = low_ns = high_ns = 0;
			}
			tell(&predict, &jvm);
			next = next_of(&predict, &jvm);
			assert_true(!next.known || next.ns <= PREDICT_NS_MAX);
			if (ask_ns == 0 && predict.collections > 3 && next.known && next.ns < 60 * MS) {
				ask_ns = jvm.heap.time_ns;
				low_ns = next.ns > 2 * next.error_ns + LOOK_NS ? ask_ns + next.ns - 2 * next.error_ns - LOOK_NS : 0;
				high_ns = ask_ns + next.ns + 2 * next.error_ns + LOOK_NS;
			}
		}
	}
	print_message("%u of %u within twice the error, %u earlier\n", within, all, early);
	assert_true(all > 1000);
	assert_true(within >= all * 90 / 100);
	assert_true(early <= all * 5 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_seen_nothing_predicts_nothing),
		cmocka_unit_test(a_steady_rate_says_when),
		cmocka_unit_test(without_a_place_that_fills_nothing_is_predicted),
		cmocka_unit_test(a_burst_counts_at_once),
		cmocka_unit_test(who_allocates_nothing_collects_at_no_time_soon),
		cmocka_unit_test(where_collections_come_earlier_is_learned),
		cmocka_unit_test(eden_may_change_its_size),
		cmocka_unit_test(what_somebody_asks_for_says_nothing_about_the_others),
		cmocka_unit_test(a_full_one_is_expected_when_the_old_generation_is),
		cmocka_unit_test(that_somebody_asks_for_full_ones_says_not_that_others_are),
		cmocka_unit_test(a_place_that_is_gone_for_now_is_remembered),
		cmocka_unit_test(an_old_generation_that_fills_by_itself_is_seen),
		cmocka_unit_test(another_jvm_begins_anew),
		cmocka_unit_test(readings_that_are_old_say_nothing),
		cmocka_unit_test(most_collections_come_when_they_are_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
