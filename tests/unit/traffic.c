/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/traffic.h"

#include "scene.h"

#define FIRST (PORT + 1) /* ports at the proxy's end of connections */

struct crossing {
	struct scene scene;
	struct thread_index index;
	struct traffic traffic;
};

static void crosses(struct crossing *crossing, uint64_t us, enum tailor_event_kind kind, uint64_t request)
{
	socket_event(&crossing->scene, us, kind, WORKER, 0, 1, 100, request)->extra = TAILOR_PORTS(8080, FIRST);
}

static void look(struct crossing *crossing)
{
	assert_int_equal(thread_index_build(&crossing->index, &crossing->scene.window), 0);
	assert_int_equal(traffic_build(&crossing->traffic, &crossing->index), 0);
}

static void leave(struct crossing *crossing)
{
	traffic_free(&crossing->traffic);
	thread_index_free(&crossing->index);
}

/* 1 when nobody else was at the server from 1000 to 2000 us. */
static int is_alone(struct crossing *crossing)
{
	uint64_t since_ns = 0;

	return traffic_alone(&crossing->traffic, SERVER, US(1000), US(2000), &since_ns) && since_ns == US(1000);
}

static void without_receives_and_writes_nobody_else_was_there(void **state)
{
	struct crossing crossing;

	(void)state;
	scene_open(&crossing.scene, 2000);
	look(&crossing);
	assert_true(is_alone(&crossing));
	leave(&crossing);
}

static void one_event_is_enough_to_have_been_there(void **state)
{
	static const enum tailor_event_kind kinds[] = {TAILOR_EVENT_RECEIVE, TAILOR_EVENT_SYSCALL_WRITE};
	struct crossing crossing;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		scene_open(&crossing.scene, 2000);
		crosses(&crossing, 1500, kinds[i], OTHER);
		look(&crossing);
		assert_false(is_alone(&crossing));
		leave(&crossing);
	}
}

/* The request's own response was not seen there, or there was none: who comes next on the connection is another one. */
static void a_connection_that_another_request_took_over_carries_that_one(void **state)
{
	struct crossing crossing;

	(void)state;
	scene_open(&crossing.scene, 2000);
	crosses(&crossing, 700, TAILOR_EVENT_RECEIVE, REQUEST);
	crosses(&crossing, 1200, TAILOR_EVENT_RECEIVE, OTHER);
	crosses(&crossing, 1500, TAILOR_EVENT_SYSCALL_WRITE, OTHER);
	look(&crossing);
	assert_false(is_alone(&crossing));
	leave(&crossing);
}

static void a_request_that_is_read_in_two_pieces_is_one(void **state)
{
	struct crossing crossing;

	(void)state;
	scene_open(&crossing.scene, 2000);
	crosses(&crossing, 100, TAILOR_EVENT_RECEIVE, OTHER);
	crosses(&crossing, 110, TAILOR_EVENT_RECEIVE, OTHER);
	crosses(&crossing, 120, TAILOR_EVENT_SYSCALL_WRITE, OTHER);
	sleeps(&crossing.scene, 130, WORKER);
	look(&crossing);
	assert_int_equal(crossing.traffic.count, 1);
	assert_true(is_alone(&crossing));
	leave(&crossing);
}

/* What is earlier than the window comes before what is in it, also at the same time. */
static void who_came_just_before_the_window_and_was_answered_in_it_is_gone(void **state)
{
	const struct tailor_window_point came = {US(120), OTHER, SERVER, TAILOR_PORTS(8080, FIRST), 1};
	struct crossing crossing;

	(void)state;
	scene_open(&crossing.scene, 2000);
	crosses(&crossing, 120, TAILOR_EVENT_SYSCALL_WRITE, OTHER);
	sleeps(&crossing.scene, 130, WORKER);
	crossing.scene.window.earlier = &came;
	crossing.scene.window.earlier_count = 1;
	look(&crossing);
	assert_true(is_alone(&crossing));
	leave(&crossing);
}

static void who_has_another_process_of_the_same_ports_is_elsewhere(void **state)
{
	struct crossing crossing;

	(void)state;
	scene_open(&crossing.scene, 2000);
	crosses(&crossing, 700, TAILOR_EVENT_RECEIVE, OTHER);
	crossing.scene.events[0].event.pid = SERVER + 100;
	look(&crossing);
	assert_true(is_alone(&crossing));
	leave(&crossing);
}

/* The same by looking at all of them. Returns 1 if it is as it was said. */
static int is_true(const struct traffic *traffic, uint32_t pid, uint64_t from_ns, uint64_t to_ns, int alone, uint64_t since_ns)
{
	uint64_t last_ns = from_ns;
	int there = 0, throughout = 0;

	for (size_t i = 0; i < traffic->count; i++) {
		const struct exchange *exchange = &traffic->list[i];

		if (exchange->pid != pid || exchange->from_ns >= to_ns)
			continue;
		there |= exchange->settled_ns >= to_ns;
		throughout |= exchange->settled_ns >= to_ns && exchange->from_ns <= since_ns;
		if (exchange->settled_ns < to_ns && exchange->settled_ns > last_ns)
			last_ns = exchange->settled_ns;
	}
	return alone ? !there && since_ns == last_ns : there && throughout && since_ns >= from_ns && since_ns < to_ns;
}

static void what_is_looked_up_is_what_looking_at_all_of_them_finds(void **state)
{
	static struct crossing crossing;
	int alone = 0, asked = 0;

	(void)state;
	srandom(7);
	for (int round = 0; round < 200; round++) {
		scene_open(&crossing.scene, 2000);
		for (int i = 0; i < 40; i++) {
			uint64_t came = 100 + (uint64_t)random() % 40000, went = came + (uint64_t)random() % (i % 8 ? 200 : 9000);
			struct tailor_event *event;

			for (int written = 0; written < 1 + (i % 20 != 0); written++) {
				event = socket_event(&crossing.scene, written ? went : came,
				                     written ? TAILOR_EVENT_SYSCALL_WRITE : TAILOR_EVENT_RECEIVE, WORKER, 0, 1, 100, OTHER + (uint64_t)i);
				event->extra = TAILOR_PORTS(8080, FIRST + i);
				event->pid = i % 3 ? SERVER : SERVER + 100;
				event->request = i % 10 ? event->request : REQUEST;
			}
		}
		look(&crossing);
		for (int i = 0; i < 50; i++, asked++) {
			uint64_t from_ns = US(100 + (uint64_t)random() % 40000), to_ns = from_ns + US(1 + (uint64_t)random() % 2000), since_ns = 0;
			int is = traffic_alone(&crossing.traffic, SERVER, from_ns, to_ns, &since_ns);

			assert_true(is_true(&crossing.traffic, SERVER, from_ns, to_ns, is, since_ns));
			alone += is;
		}
		leave(&crossing);
	}
	assert_in_range(alone, asked / 10, asked - asked / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_receives_and_writes_nobody_else_was_there),
	        cmocka_unit_test(one_event_is_enough_to_have_been_there),
	        cmocka_unit_test(a_connection_that_another_request_took_over_carries_that_one),
	        cmocka_unit_test(a_request_that_is_read_in_two_pieces_is_one),
	        cmocka_unit_test(who_came_just_before_the_window_and_was_answered_in_it_is_gone),
	        cmocka_unit_test(what_is_looked_up_is_what_looking_at_all_of_them_finds),
	        cmocka_unit_test(who_has_another_process_of_the_same_ports_is_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
