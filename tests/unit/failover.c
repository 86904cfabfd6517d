/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "proxy/failover.h"

/* A GET in flight, first attempt, with a healthy backup. */
#define GOOD                                                                                       \
	.enabled = true, .lasts = true, .other_exists = true, .method_allowed = true, .request_complete = true, .request_kept = true, \
	.attempts = 1, .attempts_max = 2

#define GC GOOD, .reason = TAILOR_FAILOVER_GC
#define CONNECT GOOD, .reason = TAILOR_FAILOVER_CONNECT
#define CLOSED GOOD, .reason = TAILOR_FAILOVER_CLOSED

/* Later initializers override those of the macros on purpose. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
static const struct {
	const char *name;
	struct failover_case c;
	enum failover_action action;
	enum tailor_not_moved why;
} cases[] = {
	{"a replayable request moves", {GC}, FAILOVER_REPLAY, 0},
	{"failover off", {GC, .enabled = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_OFF},
	{"no second server", {GC, .other_exists = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_NO_BACKUP},
	{"the other is paused", {GC, .other_paused = true}, FAILOVER_WAIT, TAILOR_NOT_MOVED_BOTH_PAUSED},
	{"the other is down", {GC, .other_down = true}, FAILOVER_WAIT, TAILOR_NOT_MOVED_DOWN},
	{"a POST", {GC, .method_allowed = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_METHOD},
	{"the body is still coming", {GC, .request_complete = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_BODY},
	{"the body is too big to keep", {GC, .request_kept = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_BODY},
	{"the response has begun", {GC, .response_begun = true}, FAILOVER_WAIT, TAILOR_NOT_MOVED_BEGUN},
	{"attempts used up", {GC, .attempts = 2}, FAILOVER_WAIT, TAILOR_NOT_MOVED_ATTEMPTS},
	{"one attempt only", {GC, .attempts_max = 1}, FAILOVER_WAIT, TAILOR_NOT_MOVED_ATTEMPTS},
	{"begun matters more than the backup's state", {GC, .response_begun = true, .other_paused = true}, FAILOVER_WAIT,
	 TAILOR_NOT_MOVED_BEGUN},
	{"the stop is short", {GC, .lasts = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_SHORT},
	{"that it is short is not why a POST stays", {GC, .lasts = false, .method_allowed = false}, FAILOVER_WAIT, TAILOR_NOT_MOVED_METHOD},
	{"also when it is no collection", {GC, .reason = TAILOR_FAILOVER_SAFEPOINT}, FAILOVER_REPLAY, 0},
	{"also when the process stands still", {GC, .reason = TAILOR_FAILOVER_STALL}, FAILOVER_REPLAY, 0},
	{"a retry does not use up the pause's move", {GC, .retried = true}, FAILOVER_REPLAY, 0},

	{"a refused connection moves", {CONNECT}, FAILOVER_REPLAY, 0},
	{"also a POST: nothing was sent", {CONNECT, .method_allowed = false}, FAILOVER_REPLAY, 0},
	{"also with its body still coming", {CONNECT, .request_complete = false}, FAILOVER_REPLAY, 0},
	{"also with GC failover off", {CONNECT, .enabled = false}, FAILOVER_REPLAY, 0},
	{"also to a paused server", {CONNECT, .other_paused = true}, FAILOVER_REPLAY, 0},
	{"refused, no second server", {CONNECT, .other_exists = false}, FAILOVER_FAIL, TAILOR_NOT_MOVED_NO_BACKUP},
	{"refused, other down", {CONNECT, .other_down = true}, FAILOVER_FAIL, TAILOR_NOT_MOVED_DOWN},
	{"refused, attempts used up", {CONNECT, .attempts = 2}, FAILOVER_FAIL, TAILOR_NOT_MOVED_ATTEMPTS},

	{"a dead connection is retried elsewhere", {CLOSED}, FAILOVER_REPLAY, 0},
	{"once only", {CLOSED, .retried = true, .attempts_max = 4}, FAILOVER_FAIL, TAILOR_NOT_MOVED_ATTEMPTS},
	{"not a POST", {CLOSED, .method_allowed = false}, FAILOVER_FAIL, TAILOR_NOT_MOVED_METHOD},
	{"not a POST on a stale connection either", {CLOSED, .method_allowed = false, .stale_connection = true}, FAILOVER_FAIL,
	 TAILOR_NOT_MOVED_METHOD},
	{"not after the response began", {CLOSED, .response_begun = true}, FAILOVER_FAIL, TAILOR_NOT_MOVED_BEGUN},
	{"also with its body still coming, if what has come is kept", {CLOSED, .request_complete = false}, FAILOVER_REPLAY, 0},
	{"not with the body's beginning gone", {CLOSED, .request_kept = false}, FAILOVER_FAIL, TAILOR_NOT_MOVED_BODY},
	{"a stale connection needs no second server", {CLOSED, .stale_connection = true, .other_exists = false}, FAILOVER_REPLAY, 0},
	{"a fresh one does", {CLOSED, .other_exists = false}, FAILOVER_FAIL, TAILOR_NOT_MOVED_NO_BACKUP},
	{"a fresh one, other down", {CLOSED, .other_down = true}, FAILOVER_FAIL, TAILOR_NOT_MOVED_DOWN},
};
#pragma GCC diagnostic pop

static void every_case_gets_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failover_verdict verdict = failover_judge(&cases[i].c);

		if (verdict.action != cases[i].action || (verdict.action != FAILOVER_REPLAY && verdict.why != cases[i].why))
			fail_msg("%s: action %d, why %s", cases[i].name, verdict.action, tailor_not_moved_name(verdict.why));
	}
}

/* Whatever the case: never a second send of what must not be sent twice, never beyond the limit. */
static void no_verdict_breaks_the_rules(void **state)
{
	(void)state;
	for (unsigned int bits = 0; bits < 1u << 11; bits++) {
		for (unsigned int reason = TAILOR_FAILOVER_GC; reason <= TAILOR_FAILOVER_STALL; reason++) {
			struct failover_case c = {
				.reason = (enum tailor_failover_reason)reason,
				.enabled = bits & 1, .other_exists = bits & 2, .other_paused = bits & 4, .other_down = bits & 8,
				.stale_connection = bits & 16, .method_allowed = bits & 32, .request_complete = bits & 64,
				.request_kept = bits & 128, .response_begun = bits & 256, .retried = bits & 512, .lasts = bits & 1024,
				.attempts = 1 + bits % 3, .attempts_max = 2,
			};
			struct failover_verdict verdict = failover_judge(&c);

			if (reason != TAILOR_FAILOVER_CONNECT && reason != TAILOR_FAILOVER_CLOSED)
				assert_int_not_equal(verdict.action, FAILOVER_FAIL);
			else
				assert_int_not_equal(verdict.action, FAILOVER_WAIT);
			if (verdict.action != FAILOVER_REPLAY) {
				assert_true(verdict.why < TAILOR_NOT_MOVED_REASONS);
				continue;
			}
			assert_true(c.request_kept);
			assert_true(c.attempts < c.attempts_max);
			if (reason != TAILOR_FAILOVER_CONNECT)
				assert_true(c.method_allowed && !c.response_begun);
			if (reason != TAILOR_FAILOVER_CONNECT && reason != TAILOR_FAILOVER_CLOSED)
				assert_true(c.request_complete);
			if (!c.stale_connection || reason != TAILOR_FAILOVER_CLOSED)
				assert_true(c.other_exists && !c.other_down);
		}
	}
}

static void a_stop_lasts_when_another_server_would_be_faster(void **state)
{
	static const struct {
		const char *name;
		struct failover_stop stop;
		bool lasts;
	} stops[] = {
		{"50 us, when an answer takes 1 ms", {.rest = {.ns = 50000, .known = true}, .service_ns = 1000000}, false},
		{"50 us, when an answer takes nothing", {.rest = {.ns = 50000, .known = true}}, false},
		{"100 ms", {.rest = {.ns = 100000000, .known = true}, .service_ns = 1000000}, true},
		{"100 ms, when an answer takes as long", {.rest = {.ns = 100000000, .known = true}, .service_ns = 100000000}, false},
		{"nothing like it was ever seen, and it is over soon perhaps", {.rest = {.ns = UINT64_MAX}, .lasted_ns = 50000}, false},
		{"nothing like it was ever seen, and it goes on", {.rest = {.ns = UINT64_MAX}, .lasted_ns = 200000, .service_ns = 1000000000}, true},
		{"whatever is expected", {.when = TAILOR_PROXY_REPLAY_ALWAYS, .rest = {.ns = 1, .known = true}, .service_ns = 1000000000}, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		if (failover_stop_lasts(&stops[i].stop) != stops[i].lasts)
			fail_msg("%s", stops[i].name);
	}
}

static void every_reason_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < TAILOR_NOT_MOVED_REASONS; i++) {
		assert_string_not_equal(tailor_not_moved_name((enum tailor_not_moved)i), "unknown");
		for (int j = 0; j < i; j++)
			assert_string_not_equal(tailor_not_moved_name((enum tailor_not_moved)i),
			                        tailor_not_moved_name((enum tailor_not_moved)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_gets_its_verdict),
		cmocka_unit_test(no_verdict_breaks_the_rules),
		cmocka_unit_test(a_stop_lasts_when_another_server_would_be_faster),
		cmocka_unit_test(every_reason_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
