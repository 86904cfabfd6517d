/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as having had to wait for a CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "proxy/urgency.h"

static void being_woken_is_no_waiting_however_often(void **state)
{
	(void)state;
	assert_false(urgency_is_late(0, 0));
	assert_false(urgency_is_late(30 * TAILOR_NS_PER_US, 1));
	for (uint64_t times = 1; times < 100000; times *= 10)
		assert_false(urgency_is_late(times * 30 * TAILOR_NS_PER_US, times));
}

static void one_long_wait_among_many_is_seen(void **state)
{
	(void)state;
	assert_true(urgency_is_late(1 * TAILOR_NS_PER_MS, 1));
	assert_true(urgency_is_late(15 * 10 * TAILOR_NS_PER_US + 1 * TAILOR_NS_PER_MS, 15));
	assert_false(urgency_is_late(15 * 10 * TAILOR_NS_PER_US + 100 * TAILOR_NS_PER_US, 15));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(being_woken_is_no_waiting_however_often),
		cmocka_unit_test(one_long_wait_among_many_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
