/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "proxy/wheel.h"

#define TICK_NS (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define START_NS (1000 * TICK_NS + 12345)

static void an_alarm_rings_at_its_deadline_and_not_before(void **state)
{
	struct wheel wheel;
	struct alarm alarm = {0};
	uint64_t deadline_ns = START_NS + 10 * TICK_NS;

	(void)state;
	wheel_open(&wheel, START_NS);
	assert_true(wheel_next_ns(&wheel) == UINT64_MAX);
	wheel_set(&wheel, &alarm, deadline_ns);
	assert_null(wheel_run(&wheel, deadline_ns - 1));
	assert_true(wheel_next_ns(&wheel) >= deadline_ns && wheel_next_ns(&wheel) <= deadline_ns + TICK_NS);
	assert_ptr_equal(wheel_run(&wheel, wheel_next_ns(&wheel)), &alarm);
	assert_null(wheel_run(&wheel, deadline_ns + 10 * TICK_NS));
	assert_true(wheel_next_ns(&wheel) == UINT64_MAX);
}

static void a_deadline_moves_both_ways_and_can_be_taken_away(void **state)
{
	struct wheel wheel;
	struct alarm alarm = {0};

	(void)state;
	wheel_open(&wheel, START_NS);
	wheel_set(&wheel, &alarm, START_NS + 10 * TICK_NS);
	wheel_set(&wheel, &alarm, START_NS + 20 * TICK_NS);
	assert_null(wheel_run(&wheel, START_NS + 15 * TICK_NS));
	wheel_set(&wheel, &alarm, START_NS + 16 * TICK_NS);
	assert_ptr_equal(wheel_run(&wheel, START_NS + 18 * TICK_NS), &alarm);
	wheel_set(&wheel, &alarm, START_NS + 30 * TICK_NS);
	wheel_set(&wheel, &alarm, UINT64_MAX);
	assert_null(wheel_run(&wheel, START_NS + 1000 * TICK_NS));
	assert_null(alarm.link);
}

/* Against a plain array: nothing rings early, nothing is forgotten, whatever the order of calls. */
static void random_deadlines_are_all_kept(void **state)
{
	enum { ALARMS = 50, STEPS = 200000 };
	static struct alarm alarms[ALARMS];
	static uint64_t expected[ALARMS];
	struct wheel wheel;
	uint64_t now_ns = START_NS;

	(void)state;
	srandom(1);
	wheel_open(&wheel, now_ns);
	for (int i = 0; i < ALARMS; i++)
		expected[i] = UINT64_MAX;
	for (int step = 0; step < STEPS; step++) {
		int i = (int)(random() % ALARMS);
		struct alarm *rung;

		switch (random() % 8) {
		case 0:
			wheel_remove(&wheel, &alarms[i]);
			expected[i] = UINT64_MAX;
			break;
		case 1:
			wheel_set(&wheel, &alarms[i], UINT64_MAX);
			expected[i] = UINT64_MAX;
			break;
		default:
			/* Some lie farther ahead than the wheel reaches, some in the past. */
			expected[i] = now_ns - TICK_NS + (uint64_t)random() % (WHEEL_SLOTS * 3 * TICK_NS);
			wheel_set(&wheel, &alarms[i], expected[i]);
			break;
		}
		now_ns += (uint64_t)random() % (random() % 100 == 0 ? 400 * TICK_NS : TICK_NS);
		while ((rung = wheel_run(&wheel, now_ns)) != NULL) {
			assert_true(expected[rung - alarms] <= now_ns);
			expected[rung - alarms] = UINT64_MAX;
		}
		for (int j = 0; j < ALARMS; j++) {
			if (expected[j] == UINT64_MAX)
				continue;
			assert_true(now_ns < expected[j] + 2 * TICK_NS);
			assert_true(wheel_next_ns(&wheel) <= expected[j] + TICK_NS || expected[j] < now_ns);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_alarm_rings_at_its_deadline_and_not_before),
	        cmocka_unit_test(a_deadline_moves_both_ways_and_can_be_taken_away),
	        cmocka_unit_test(random_deadlines_are_all_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
