/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "correlate/slow.h"

static void the_threshold_itself_is_slow(void **state)
{
	const struct tailor_slow_rule rule = {.threshold_ns = 5000};

	(void)state;
	assert_int_equal(tailor_slow_judge(&rule, 1, 4999), TAILOR_SLOW_SKIP);
	assert_int_equal(tailor_slow_judge(&rule, 1, 5000), TAILOR_SLOW_KEEP);
}

static void about_one_in_n_ordinary_requests_is_kept_and_always_the_same_ones(void **state)
{
	const struct tailor_slow_rule rule = {.threshold_ns = 5000, .baseline_one_in = 100};
	int kept = 0;

	(void)state;
	for (uint64_t id = 0; id < 100000; id++) {
		enum tailor_slow_verdict verdict = tailor_slow_judge(&rule, id, 10);

		assert_int_equal(verdict, tailor_slow_judge(&rule, id, 4000));
		kept += verdict == TAILOR_SLOW_KEEP_BASELINE;
	}
	assert_in_range(kept, 850, 1150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_threshold_itself_is_slow),
	        cmocka_unit_test(about_one_in_n_ordinary_requests_is_kept_and_always_the_same_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
