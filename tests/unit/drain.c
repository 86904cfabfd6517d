/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/drain.h"

#define MS UINT64_C(1000000)
#define MB UINT64_C(1000000)
#define YOUNG (1u << TAILOR_JVM_WISH_YOUNG)
#define FULL (1u << TAILOR_JVM_WISH_FULL)
#define SERVERS 3

/* Servers as the proxy sees them, whose heaps this test fills. */
struct group {
	struct drain drain;
	struct predict predict[SERVERS];
	struct tailor_jvm_heap heap[SERVERS];
	struct drain_server server[SERVERS];
	unsigned int count;
	uint64_t now_ns;
};

static struct group *group_new(unsigned int count)
{
	static struct group group;

	group = (struct group){.count = count, .now_ns = 1000 * MS};
	for (unsigned int i = 0; i < count; i++) {
		group.heap[i] = (struct tailor_jvm_heap){.young_size = 100 * MB, .old_size = 1000 * MB};
		group.server[i] = (struct drain_server){.predict = &group.predict[i], .runs = true, .service_ns = 2 * MS, .stop_known = true, .stop_ns = 100 * MS};
	}
	return &group;
}

/* Fills each one by so many bytes a nanosecond, in looks of 2 ms. */
static void fill(struct group *group, uint64_t ns, const double rates[SERVERS])
{
	for (uint64_t end_ns = group->now_ns + ns; group->now_ns < end_ns;) {
		group->now_ns += DRAIN_LOOK_NS;
		for (unsigned int i = 0; i < group->count; i++) {
			group->heap[i].time_ns = group->now_ns;
			group->heap[i].young_used += (uint64_t)(rates[i] * (double)DRAIN_LOOK_NS);
			predict_read(&group->predict[i], &group->heap[i], &(struct predict_collection){.cause = ""});
		}
	}
}

static int choose(const struct group *group)
{
	return drain_choose(&group->drain, group->server, group->count, group->now_ns);
}

static enum drain_action step(struct group *group)
{
	return drain_step(&group->drain, group->server, group->count, group->now_ns);
}

static void collect(struct group *group, unsigned int server)
{
	group->server[server].pauses++;
	group->server[server].runs = false;
	group->server[server].collects = true;
}

static void go_on(struct group *group, unsigned int server)
{
	group->heap[server].collected_young++;
	group->heap[server].young_used = 0;
	group->server[server].runs = true;
	group->server[server].collects = false;
}

static void begin(struct group *group, unsigned int server)
{
	group->server[server].in_flight = 3;
	drain_begin(&group->drain, server, group->server, group->now_ns);
	assert_int_equal(group->drain.state, DRAIN_EMPTYING);
}

static const double first_only[] = {0.1, 0, 0};

static void a_server_whose_collection_is_near_is_drained(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	fill(group, 500 * MS, first_only);
	assert_int_equal(choose(group), -1);
	assert_true(drain_next_ns(&group->drain, group->server, 2, group->now_ns) > group->now_ns + 50 * MS);
	fill(group, 490 * MS, first_only);
	assert_int_equal(choose(group), 0);
}

static void none_is_drained_for_another_that_cannot_serve(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	fill(group, 990 * MS, first_only);
	group->server[1].runs = false;
	assert_int_equal(choose(group), -1);
	group->server[1].runs = true;
	/* One that would have to collect itself. */
	group->heap[1].young_used = 99 * MB;
	fill(group, 4 * MS, first_only);
	assert_int_equal(choose(group), -1);
	/* Of whom nothing is known, it is believed that it can. */
	group->server[1].predict = NULL;
	assert_int_equal(choose(group), 0);
	group->count = 1;
	assert_int_equal(choose(group), -1);
}

static void what_is_short_or_never_predicted_is_not_worth_it(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	fill(group, 990 * MS, first_only);
	group->server[0].stop_ns = 300000;
	assert_int_equal(choose(group), -1);
	group->server[0].stop_ns = 100 * MS;
	group->server[0].predict = NULL;
	assert_int_equal(choose(group), -1);
}

static void a_drain_waits_for_the_requests_then_for_the_collection(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	fill(group, 990 * MS, first_only);
	begin(group, 0);
	group->now_ns += MS;
	assert_int_equal(step(group), DRAIN_WAIT);
	assert_int_equal(group->drain.state, DRAIN_EMPTYING);
	group->server[0].in_flight = 0;
	assert_int_equal(step(group), DRAIN_WAIT);
	assert_int_equal(group->drain.state, DRAIN_EMPTY);
	collect(group, 0);
	group->now_ns += 2 * MS;
	assert_int_equal(step(group), DRAIN_WAIT);
	assert_int_equal(group->drain.state, DRAIN_COLLECTING);
	group->now_ns += 100 * MS;
	assert_int_equal(step(group), DRAIN_WAIT);
	go_on(group, 0);
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_MET);
	assert_int_equal(group->drain.state, DRAIN_NONE);
}

static void a_collection_that_is_over_before_the_next_look_counts(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	fill(group, 990 * MS, first_only);
	begin(group, 0);
	collect(group, 0);
	go_on(group, 0);
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_MET);
}

static void a_collection_that_does_not_come_is_not_waited_for_and_not_soon_again(void **state)
{
	struct group *group = group_new(2);
	uint64_t held_ns = 0;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		uint64_t since_ns;

		fill(group, group->now_ns < 1900 * MS ? 990 * MS : 20 * MS, first_only);
		group->heap[0].young_used = 99 * MB;
		assert_int_equal(drain_choose(&group->drain, group->server, 2, group->now_ns), i == 0 ? 0 : -1);
		begin(group, 0);
		since_ns = group->now_ns;
		group->server[0].in_flight = 0;
		while (step(group) == DRAIN_WAIT)
			group->now_ns += DRAIN_LOOK_NS;
		assert_true(group->now_ns - since_ns < 300 * MS);
		assert_int_equal(group->drain.end, DRAIN_FALSE);
		assert_true(group->drain.held[0].hold_until_ns - group->now_ns >= held_ns);
		assert_true(group->drain.held[0].hold_until_ns - group->now_ns <= 10000 * MS);
		held_ns = group->drain.held[0].hold_until_ns - group->now_ns;
	}
	assert_true(held_ns > 1000 * MS);
}

static void requests_that_do_not_end_end_the_drain(void **state)
{
	struct group *group = group_new(2);
	uint64_t since_ns;

	(void)state;
	fill(group, 990 * MS, first_only);
	begin(group, 0);
	since_ns = group->now_ns;
	while (step(group) == DRAIN_WAIT)
		group->now_ns += DRAIN_LOOK_NS;
	assert_int_equal(group->drain.end, DRAIN_LEFT);
	assert_true(group->now_ns - since_ns < 100 * MS);
}

static void a_server_that_is_needed_is_back_at_once(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	fill(group, 990 * MS, first_only);
	begin(group, 0);
	group->server[1].runs = false;
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_LEFT);
	group->server[1].runs = true;
	begin(group, 0);
	group->server[0].predict = NULL;
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_GONE);
}

static void an_empty_server_is_asked_to_collect(void **state)
{
	struct group *group = group_new(2);
	uint64_t wish;

	(void)state;
	group->server[0].can = YOUNG | FULL;
	fill(group, 990 * MS, first_only);
	begin(group, 0);
	assert_int_equal(step(group), DRAIN_WAIT);
	group->server[0].in_flight = 0;
	assert_int_equal(step(group), DRAIN_WISH);
	wish = group->drain.wish;
	assert_int_equal(TAILOR_JVM_WISH_OF(wish), TAILOR_JVM_WISH_YOUNG);
	assert_true(TAILOR_JVM_WISH_UNTIL_NS(wish) > group->now_ns);
	assert_int_equal(step(group), DRAIN_WAIT);
	collect(group, 0);
	assert_int_equal(step(group), DRAIN_WAIT);
	go_on(group, 0);
	/* There may be another one in the same stop until the agent says that it is done. */
	assert_int_equal(step(group), DRAIN_WAIT);
	group->server[0].granted = wish;
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_MET);
}

static void a_wish_that_is_not_granted_is_a_false_drain(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	group->server[0].can = FULL;
	fill(group, 990 * MS, first_only);
	begin(group, 0);
	group->server[0].in_flight = 0;
	assert_int_equal(step(group), DRAIN_WISH);
	assert_int_equal(TAILOR_JVM_WISH_OF(group->drain.wish), TAILOR_JVM_WISH_FULL);
	group->server[0].granted = group->drain.wish;
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_FALSE);
	/* Nor one that nobody deals with. */
	begin(group, 0);
	group->server[0].in_flight = 0;
	assert_int_equal(step(group), DRAIN_WISH);
	group->now_ns += 2000 * MS;
	assert_int_equal(step(group), DRAIN_OVER);
	assert_int_equal(group->drain.end, DRAIN_FALSE);
}

static void a_backup_whose_heap_is_nearly_full_collects_first(void **state)
{
	struct group *group = group_new(2);

	(void)state;
	group->heap[1].young_used = 95 * MB;
	group->server[0].can = group->server[1].can = YOUNG;
	/* Long before, there is no hurry. */
	group->heap[0].young_size = 1000 * MB;
	fill(group, 400 * MS, first_only);
	assert_int_equal(choose(group), -1);
	group->heap[0].young_size = 100 * MB;
	fill(group, 4 * MS, first_only);
	assert_int_equal(choose(group), 1);
	/* Without wishes that is not to be had. */
	group->server[0].can = group->server[1].can = 0;
	assert_int_equal(choose(group), -1);
}

/*
 * Groups of two and three whose load goes to whoever is not drained, in both ways of sharing it, with heaps of all sizes: every drain
 * ends in time, none begins that leaves nobody, and with wishes most collections meet an idle server.
 */
struct life {
	unsigned int stops, idle, drains, vain;
};

static void share(struct group *group, bool balanced, unsigned int *active, double load, double rates[SERVERS])
{
	int drained = group->drain.state == DRAIN_NONE ? -1 : (int)group->drain.server;
	unsigned int takers = 0;

	for (unsigned int i = 0; i < group->count; i++) {
		if ((int)*active == drained || !group->server[*active].runs)
			*active = (*active + 1) % group->count;
		takers += (int)i != drained && group->server[i].runs;
		rates[i] = 0;
	}
	for (unsigned int i = 0; i < group->count; i++) {
		bool takes = group->server[i].runs && (takers == 0 || (int)i != drained) && (balanced || i == *active);

		rates[i] = takes ? load / (balanced && takers ? takers : 1) : 0;
	}
}

static void live(struct group *group, unsigned int *seed, bool balanced, uint32_t can, struct life *life)
{
	uint64_t until_ns[SERVERS] = {0}, end_ns = group->now_ns + 30000 * MS, wished_ns = 0;
	double rates[SERVERS], load = (double)(50 + rand_r(seed) % 100) / 1000;
	unsigned int active = 0;

	for (unsigned int i = 0; i < group->count; i++) {
		group->heap[i].young_size = (80 + (unsigned int)rand_r(seed) % 100) * MB;
		group->heap[i].young_used = group->heap[i].young_size / 100 * ((unsigned int)rand_r(seed) % 90);
		group->server[i].can = can;
		group->server[i].stop_ns = (20 + (unsigned int)rand_r(seed) % 60) * MS;
	}
	while (group->now_ns < end_ns) {
		unsigned int drained = group->drain.server;

		share(group, balanced, &active, load, rates);
		/* Also without requests there is some garbage. */
		for (unsigned int i = 0; i < group->count; i++) {
			rates[i] = group->server[i].runs ? rates[i] * (0.5 + (double)rand_r(seed) / RAND_MAX) + (can ? 0.0001 : 0.01) : 0;
			group->server[i].in_flight = rates[i] > 0.02;
		}
		fill(group, DRAIN_LOOK_NS, rates);
		for (unsigned int i = 0; i < group->count; i++) {
			bool wished = wished_ns && drained == i && group->now_ns >= wished_ns;

			if (group->server[i].collects && group->now_ns >= until_ns[i]) {
				go_on(group, i);
				if (drained == i)
					group->server[i].granted = group->drain.wish;
			} else if (!group->server[i].collects && (wished || group->heap[i].young_used >= group->heap[i].young_size)) {
				collect(group, i);
				until_ns[i] = group->now_ns + group->server[i].stop_ns;
				life->stops++;
				life->idle += group->server[i].in_flight == 0;
				wished_ns = wished ? 0 : wished_ns;
			}
		}
		if (group->drain.state == DRAIN_NONE) {
			int chosen = choose(group);

			if (chosen < 0)
				continue;
			assert_true(group->server[chosen].runs);
			assert_true(group->server[(chosen + 1) % (int)group->count].runs || group->count > 2);
			drain_begin(&group->drain, (unsigned int)chosen, group->server, group->now_ns);
			life->drains++;
			continue;
		}
		assert_true(group->now_ns - group->drain.began_ns < 2000 * MS);
		switch (step(group)) {
		case DRAIN_WAIT: break;
		case DRAIN_WISH: wished_ns = group->now_ns + 10 * MS; break;
		case DRAIN_OVER:
			life->vain += group->drain.end != DRAIN_MET;
			wished_ns = 0;
			break;
		}
	}
}

static void drains_end_and_collections_meet_idle_servers(void **state)
{
	unsigned int seed = 7;

	(void)state;
	for (unsigned int kind = 0; kind < 8; kind++) {
		struct life life = {0};

		for (unsigned int i = 0; i < 10; i++)
			live(group_new(kind & 1 ? 3 : 2), &seed, kind & 2, kind & 4 ? YOUNG : 0, &life);
		print_message("%u servers, %s, %s: %u of %u collections met nobody; %u drains, %u in vain\n", kind & 1 ? 3 : 2,
		              kind & 2 ? "balanced" : "active-backup", kind & 4 ? "with wishes" : "without", life.idle, life.stops, life.drains,
		              life.vain);
		assert_true(life.stops > 100);
		if (kind & 4)
			assert_true(life.idle >= life.stops * 98 / 100);
	}
}

static void the_lease_is_one_servers_at_a_time(void **state)
{
	uint64_t lease = 0, word, longer;

	(void)state;
	word = drain_lease_take(&lease, 0, 100, 200);
	assert_true(word != 0);
	assert_int_equal(DRAIN_LEASE_SERVER(lease), 0);
	assert_int_equal(DRAIN_LEASE_UNTIL_NS(lease), 200);
	assert_int_equal(drain_lease_take(&lease, 1, 150, 300), 0);
	longer = drain_lease_renew(&lease, word, 150, 400);
	assert_true(longer != 0);
	/* By a word that is not the last one it cannot be given back. */
	drain_lease_release(&lease, word);
	assert_int_equal(lease, longer);
	/* It ends by itself, and whoever had it learns so. */
	word = drain_lease_take(&lease, 15, 400, 500);
	assert_int_equal(DRAIN_LEASE_SERVER(word), 15);
	assert_int_equal(drain_lease_renew(&lease, longer, 399, 600), 0);
	drain_lease_release(&lease, longer);
	assert_int_equal(lease, word);
	assert_int_equal(drain_lease_renew(&lease, word, 500, 600), 0);
	drain_lease_release(&lease, word);
	assert_int_equal(lease, 0);
	assert_int_equal(DRAIN_LEASE_SERVER(lease), -1);
}

static uint64_t the_lease;
static int holders, taken;

static void *take_and_give(void *argument)
{
	unsigned int server = (unsigned int)(uintptr_t)argument;

	for (unsigned int i = 0; i < 5000; i++) {
		uint64_t word;

		while (!(word = drain_lease_take(&the_lease, server, 100, 200 + i % 7)))
			sched_yield();
		if (__atomic_add_fetch(&holders, 1, __ATOMIC_SEQ_CST) != 1)
			abort();
		__atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
		if (i % 3 == 0)
			word = drain_lease_renew(&the_lease, word, 150, 250 + i % 7);
		__atomic_sub_fetch(&holders, 1, __ATOMIC_SEQ_CST);
		drain_lease_release(&the_lease, word);
	}
	return NULL;
}

static void threads_never_hold_it_together(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)i), 0);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(the_lease, 0);
	assert_int_equal(taken, 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_whose_collection_is_near_is_drained),
		cmocka_unit_test(none_is_drained_for_another_that_cannot_serve),
		cmocka_unit_test(what_is_short_or_never_predicted_is_not_worth_it),
		cmocka_unit_test(a_drain_waits_for_the_requests_then_for_the_collection),
		cmocka_unit_test(a_collection_that_is_over_before_the_next_look_counts),
		cmocka_unit_test(a_collection_that_does_not_come_is_not_waited_for_and_not_soon_again),
		cmocka_unit_test(requests_that_do_not_end_end_the_drain),
		cmocka_unit_test(a_server_that_is_needed_is_back_at_once),
		cmocka_unit_test(an_empty_server_is_asked_to_collect),
		cmocka_unit_test(a_wish_that_is_not_granted_is_a_false_drain),
		cmocka_unit_test(a_backup_whose_heap_is_nearly_full_collects_first),
		cmocka_unit_test(drains_end_and_collections_meet_idle_servers),
		cmocka_unit_test(the_lease_is_one_servers_at_a_time),
		cmocka_unit_test(threads_never_hold_it_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
