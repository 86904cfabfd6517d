/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "observer/presence.h"

static void a_request_belongs_to_the_process_that_was_there_when_it_was_sent(void **state)
{
	struct tailor_presence presence = {0};

	(void)state;
	assert_int_equal(tailor_presence_at(&presence, 5), 0);
	tailor_presence_note(&presence, 100, 10);
	tailor_presence_note(&presence, 0, 20); /* it died, and for a while nobody knew who came next */
	tailor_presence_note(&presence, 200, 30);
	assert_int_equal(tailor_presence_at(&presence, 9), 0);
	assert_int_equal(tailor_presence_at(&presence, 10), 100);
	assert_int_equal(tailor_presence_at(&presence, 19), 100);
	assert_int_equal(tailor_presence_at(&presence, 25), 0);
	assert_int_equal(tailor_presence_at(&presence, 1000), 200);
	assert_int_equal(tailor_presence_now(&presence), 200);
}

static void what_is_too_long_ago_is_unknown(void **state)
{
	struct tailor_presence presence = {0};

	(void)state;
	for (pid_t pid = 1; pid <= TAILOR_PRESENCE_CHANGES + 2; pid++)
		tailor_presence_note(&presence, pid, (uint64_t)pid * 10);
	assert_int_equal(tailor_presence_at(&presence, 25), 0);
	assert_int_equal(tailor_presence_at(&presence, 30), 3);
	assert_int_equal(tailor_presence_now(&presence), TAILOR_PRESENCE_CHANGES + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_belongs_to_the_process_that_was_there_when_it_was_sent),
		cmocka_unit_test(what_is_too_long_ago_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
