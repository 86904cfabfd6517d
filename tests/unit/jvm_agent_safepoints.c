/* SPDX-License-Identifier: Apache-2.0 */
/* What may be said of a safepoint from the JVM's counters, whichever way pauses, other safepoints and beats interleave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <tailor/event.h>

#include "jvmagent/notify.h"
#include "jvmagent/perfdata.h"
#include "jvmagent/safepoints.h"

/* In place of perfdata.c and notify.c. */
static struct perfdata_safepoints counters;
static struct tailor_event last;
static int events;

int perfdata_safepoints(struct perfdata_safepoints *ret_now)
{
	*ret_now = counters;
	return 0;
}

void notify_event(struct tailor_event *event, uint32_t tid, uint64_t time_ns, const char *text, uint64_t text_length)
{
	(void)time_ns;
	(void)text;
	(void)text_length;
	last = *event;
	last.tid = tid;
	events++;
}

static void begin(void)
{
	counters.begun++;
}

static void stop(uint64_t ns)
{
	counters.stopping_ns += ns;
}

static void end(uint64_t ns)
{
	counters.stopped_ns += ns;
}

/* A safepoint that is not a collection's. */
static void other(uint64_t ns)
{
	begin();
	stop(ns);
	end(2 * ns);
}

/* A pause; returns what was said of its time to stop. */
static uint64_t collect(uint64_t ns)
{
	uint64_t told;

	begin();
	stop(ns);
	told = safepoints_time_to_stop_ns();
	safepoints_pause_ended();
	end(ns + 1000);
	return told;
}

static int open_counters(void **state)
{
	(void)state;
	counters = (struct perfdata_safepoints){.begun = 10, .stopping_ns = 500, .stopped_ns = 9000};
	events = 0;
	safepoints_open();
	safepoints_beat(1);
	assert_int_equal(events, 0);
	return 0;
}

static void a_pause_after_a_pause_is_certain(void **state)
{
	(void)state;
	collect(7);
	assert_int_equal(collect(11), 11);
	assert_int_equal(collect(13), 13);
}

static void a_pause_after_another_safepoint_is_certain_only_after_a_beat(void **state)
{
	(void)state;
	assert_int_equal(collect(7), 7);
	other(100);
	assert_int_equal(collect(11), 0);
	other(100);
	safepoints_beat(1);
	assert_int_equal(collect(13), 13);
	safepoints_beat(1);
	other(100);
	assert_int_equal(collect(17), 0);
}

static void a_beat_within_a_safepoint_proves_nothing(void **state)
{
	(void)state;
	collect(7);
	begin();
	safepoints_beat(1);
	stop(100);
	end(300);
	assert_int_equal(collect(11), 0);
	begin();
	stop(100);
	safepoints_beat(1);
	end(300);
	assert_int_equal(collect(13), 0);
}

static void a_beat_within_the_pause_itself_proves_nothing_and_does_no_harm(void **state)
{
	(void)state;
	other(5);
	begin();
	safepoints_beat(1);
	stop(11);
	safepoints_beat(1);
	assert_int_equal(safepoints_time_to_stop_ns(), 0);
	safepoints_pause_ended();
	end(50);
	assert_int_equal(collect(13), 13);
}

static void the_second_pause_of_a_stop_has_no_time_of_its_own(void **state)
{
	(void)state;
	begin();
	stop(11);
	assert_int_equal(safepoints_time_to_stop_ns(), 11);
	safepoints_pause_ended();
	assert_int_equal(safepoints_time_to_stop_ns(), 0);
	safepoints_pause_ended();
	end(50);
	assert_int_equal(collect(13), 13);
}

static void a_beat_tells_what_ended_since_the_last(void **state)
{
	(void)state;
	other(5);
	collect(7);
	safepoints_beat(42);
	assert_int_equal(events, 1);
	assert_int_equal(last.kind, TAILOR_EVENT_SAFEPOINTS);
	assert_int_equal(last.tid, 42);
	assert_int_equal(last.arg[0], 2);
	assert_int_equal(last.arg[1], 10 + 1007);
	assert_int_equal(last.arg[2], 12);
	safepoints_beat(42);
	assert_int_equal(events, 1);
}

static void one_that_has_only_begun_is_told_at_its_end(void **state)
{
	(void)state;
	begin();
	stop(5);
	safepoints_beat(42);
	assert_int_equal(events, 0);
	end(70);
	safepoints_beat(42);
	assert_int_equal(events, 1);
	assert_int_equal(last.arg[0], 1);
	assert_int_equal(last.arg[1], 70);
	assert_int_equal(last.arg[2], 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(a_pause_after_a_pause_is_certain, open_counters),
	        cmocka_unit_test_setup(a_pause_after_another_safepoint_is_certain_only_after_a_beat, open_counters),
	        cmocka_unit_test_setup(a_beat_within_a_safepoint_proves_nothing, open_counters),
	        cmocka_unit_test_setup(a_beat_within_the_pause_itself_proves_nothing_and_does_no_harm, open_counters),
	        cmocka_unit_test_setup(the_second_pause_of_a_stop_has_no_time_of_its_own, open_counters),
	        cmocka_unit_test_setup(a_beat_tells_what_ended_since_the_last, open_counters),
	        cmocka_unit_test_setup(one_that_has_only_begun_is_told_at_its_end, open_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
