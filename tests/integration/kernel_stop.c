/* SPDX-License-Identifier: Apache-2.0 */
/* What the table says of servers that stand still, and whether it wakes a worker's ring. Real JVMs: kernel_stops.py. */
#include "tests/integration/kernel_harness.h"
#include "tests/integration/kernel_stop_jvm.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/ring.h"

#define PATIENCE_NS (5 * TAILOR_NS_PER_S)
#define TOKEN 7

static struct tailor_kernel *kernel;
static struct tailor_ring *ring;

static uint64_t word_of(unsigned int server)
{
	return __atomic_load_n(&tailor_kernel_stops(kernel)[server].word, __ATOMIC_RELAXED);
}

static uint64_t count_of(unsigned int server)
{
	return __atomic_load_n(&tailor_kernel_stops(kernel)[server].count, __ATOMIC_RELAXED);
}

static void wait_for_all(bool waits)
{
	for (unsigned int i = 0; i < TAILOR_STOP_SERVERS; i++)
		__atomic_store_n(&tailor_kernel_stops(kernel)[i].waits[TAILOR_STOP_WAITERS - 1], waits, __ATOMIC_SEQ_CST);
}

static int open_ring(void **state)
{
	static const struct tailor_ring_options options = {.entries = 8};
	struct tailor_completion completion;

	(void)state;
	if (tailor_ring_open(&options, &ring) != 0)
		return -1;
	wait_for_all(true);
	tailor_ring_poll(ring, tailor_kernel_stops_fd(kernel), TOKEN);
	/* What was told before it polls is told at once, if anything was. */
	tailor_ring_wait(ring, tailor_clock_ns() + 20 * TAILOR_NS_PER_MS);
	while (tailor_ring_next(ring, &completion))
		;
	return 0;
}

static int close_ring(void **state)
{
	(void)state;
	tailor_ring_close(ring);
	return 0;
}

/* Takes what the ring tells until that time; returns how often it told of a change. */
static unsigned int hear(uint64_t until_ns)
{
	struct tailor_completion completion;
	unsigned int heard = 0;

	while (tailor_clock_ns() < until_ns) {
		assert_true(tailor_ring_wait(ring, until_ns) >= 0);
		while (tailor_ring_next(ring, &completion)) {
			assert_int_equal(completion.token, TOKEN);
			assert_true(completion.result & POLLIN);
			assert_true(completion.flags & TAILOR_RING_MORE);
			heard++;
		}
	}
	return heard;
}

/* As a worker does it: sleeps until it is woken, looks at the table, and sleeps on. Returns when it saw that kind. */
static uint64_t hear_of(unsigned int server, enum tailor_stop_kind kind)
{
	uint64_t until_ns = tailor_clock_ns() + PATIENCE_NS;
	struct tailor_completion completion;

	while (TAILOR_STOP_KIND(word_of(server)) != kind) {
		assert_true(tailor_ring_wait(ring, until_ns) >= 0);
		assert_true(tailor_clock_ns() < until_ns);
		while (tailor_ring_next(ring, &completion))
			assert_true(completion.flags & TAILOR_RING_MORE);
	}
	return tailor_clock_ns();
}

static _Noreturn void doze(int sleep_us)
{
	for (;;)
		usleep((useconds_t)sleep_us);
}

static void *run_dozing(void *context)
{
	doze(*(const int *)context);
}

/* Threads that sleep now and then. */
static void many_threads(int control, void *context)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, run_dozing, context);
	control_tell(control, syscall(SYS_gettid));
	doze(*(const int *)context);
}

static void one_thread(int control, void *context)
{
	(void)context;
	for (;;)
		control_tell(control, control_hear(control) + 1);
}

static struct child start_server(unsigned int server, void (*body)(int control, void *context), void *context)
{
	struct child child = child_start("server", body, context);

	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	assert_int_equal(tailor_kernel_tell_stops(kernel, server, child.pid), 0);
	assert_int_equal(word_of(server), 0);
	return child;
}

static void end_server(unsigned int server, struct child *child)
{
	tailor_kernel_untrace(kernel, child->pid);
	assert_int_equal(tailor_kernel_tell_stops(kernel, server, 0), 0);
	child_stop(child);
	assert_int_equal(word_of(server), 0);
}

static int by_value(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static void a_worker_hears_at_once_that_a_server_was_stopped_and_goes_on(void **state)
{
	enum { ROUNDS = 50, SERVER = TAILOR_STOP_SERVERS - 1 };
	struct child child = start_server(SERVER, one_thread, NULL);
	uint64_t took_ns[ROUNDS], count = count_of(SERVER);

	(void)state;
	assert_int_equal(child_ask(&child, 1), 2);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t before_ns = tailor_clock_ns(), heard_ns, since_ns;

		assert_int_equal(kill(child.pid, SIGSTOP), 0);
		heard_ns = hear_of(SERVER, TAILOR_STOP_SIGNAL);
		since_ns = TAILOR_STOP_SINCE_NS(word_of(SERVER));
		assert_true(since_ns >= before_ns && since_ns <= heard_ns);
		took_ns[i] = heard_ns - since_ns;
		usleep(1000);
		assert_int_equal(TAILOR_STOP_SINCE_NS(word_of(SERVER)), since_ns);
		assert_int_equal(kill(child.pid, SIGCONT), 0);
		hear_of(SERVER, TAILOR_STOP_NONE);
		assert_int_equal(child_ask(&child, 1), 2);
	}
	assert_int_equal(count_of(SERVER), count + ROUNDS);
	qsort(took_ns, ROUNDS, sizeof(took_ns[0]), by_value);
	print_message("from the stop to the worker: median %llu us, most %llu us\n", (unsigned long long)took_ns[ROUNDS / 2] / 1000,
	              (unsigned long long)took_ns[ROUNDS - 1] / 1000);
	end_server(SERVER, &child);
}

static void nobody_hears_of_a_server_whose_stops_are_not_to_be_told(void **state)
{
	struct child child = child_start("server", one_thread, NULL);

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	assert_int_equal(child_ask(&child, 1), 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kill(child.pid, SIGSTOP), 0);
		assert_int_equal(hear(tailor_clock_ns() + 20 * TAILOR_NS_PER_MS), 0);
		assert_int_equal(kill(child.pid, SIGCONT), 0);
		assert_int_equal(child_ask(&child, 1), 2);
	}
	for (unsigned int i = 0; i < TAILOR_STOP_SERVERS; i++)
		assert_int_equal(word_of(i), 0);
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
}

static void nobody_is_woken_who_does_not_wait_and_nothing_is_missed(void **state)
{
	enum { SERVER = 3, STOPPED_US = 5000 };
	struct child child = start_server(SERVER, one_thread, NULL);
	const struct tailor_stop *stop = &tailor_kernel_stops(kernel)[SERVER];
	uint64_t count = count_of(SERVER), before_ns;
	siginfo_t information;

	(void)state;
	assert_int_equal(child_ask(&child, 1), 2);
	wait_for_all(false);
	for (int i = 0; i < 5; i++) {
		before_ns = tailor_clock_ns();
		assert_int_equal(kill(child.pid, SIGSTOP), 0);
		assert_int_equal(waitid(P_PID, (id_t)child.pid, &information, WSTOPPED), 0);
		assert_int_equal(hear(tailor_clock_ns() + STOPPED_US * TAILOR_NS_PER_US), 0);
		assert_int_equal(TAILOR_STOP_KIND(word_of(SERVER)), TAILOR_STOP_SIGNAL);
		assert_int_equal(kill(child.pid, SIGCONT), 0);
		assert_int_equal(child_ask(&child, 1), 2);
		assert_int_equal(hear(tailor_clock_ns() + TAILOR_NS_PER_MS), 0);
		assert_int_equal(word_of(SERVER), 0);
		assert_int_equal(TAILOR_STOP_KIND(stop->last), TAILOR_STOP_SIGNAL);
		assert_in_range(TAILOR_STOP_SINCE_NS(stop->last), STOPPED_US * TAILOR_NS_PER_US, stop->end_ns - before_ns);
		assert_true(stop->end_ns <= tailor_clock_ns());
	}
	assert_int_equal(count_of(SERVER), count + 5);
	/* One that waits is enough, whichever it is. */
	__atomic_store_n(&tailor_kernel_stops(kernel)[SERVER].waits[0], 1, __ATOMIC_SEQ_CST);
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	hear_of(SERVER, TAILOR_STOP_SIGNAL);
	assert_int_equal(kill(child.pid, SIGCONT), 0);
	hear_of(SERVER, TAILOR_STOP_NONE);
	__atomic_store_n(&tailor_kernel_stops(kernel)[SERVER].waits[0], 0, __ATOMIC_SEQ_CST);
	end_server(SERVER, &child);
}

static void a_process_may_be_several_servers(void **state)
{
	struct child child = start_server(2, one_thread, NULL);

	(void)state;
	assert_int_equal(tailor_kernel_tell_stops(kernel, 5, child.pid), 0);
	assert_int_equal(child_ask(&child, 1), 2);
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	hear_of(2, TAILOR_STOP_SIGNAL);
	hear_of(5, TAILOR_STOP_SIGNAL);
	assert_int_equal(tailor_kernel_tell_stops(kernel, 5, 0), 0);
	assert_int_equal(word_of(5), 0);
	assert_int_equal(TAILOR_STOP_KIND(word_of(2)), TAILOR_STOP_SIGNAL);
	assert_int_equal(kill(child.pid, SIGCONT), 0);
	hear_of(2, TAILOR_STOP_NONE);
	end_server(2, &child);
}

static void a_server_that_is_traced_no_more_stands_still_no_more(void **state)
{
	struct child child = start_server(0, one_thread, NULL);

	(void)state;
	assert_int_equal(child_ask(&child, 1), 2);
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	hear_of(0, TAILOR_STOP_SIGNAL);
	assert_int_equal(tailor_kernel_untrace(kernel, child.pid), 0);
	assert_int_equal(word_of(0), 0);
	end_server(0, &child);
}

static void a_server_that_is_killed_while_it_is_stopped_stands_still_no_more(void **state)
{
	struct child child = start_server(0, one_thread, NULL);

	(void)state;
	assert_int_equal(child_ask(&child, 1), 2);
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	hear_of(0, TAILOR_STOP_SIGNAL);
	assert_int_equal(kill(child.pid, SIGKILL), 0);
	hear_of(0, TAILOR_STOP_NONE);
	end_server(0, &child);
}

/* Waits, without being woken, until the table says so for some time: it may change its mind while threads are still to stop. */
static void wait_for(unsigned int server, enum tailor_stop_kind kind)
{
	uint64_t until_ns = tailor_clock_ns() + PATIENCE_NS;

	for (int agrees = 0; agrees < 3;) {
		if (tailor_clock_ns() >= until_ns)
			fail_msg("the word is %llx, of kind %d it was for %d looks; stopped since %llu, now %llu", (unsigned long long)word_of(server),
			         (int)kind, agrees, (unsigned long long)tailor_kernel_stops(kernel)[server].signal_ns,
			         (unsigned long long)tailor_clock_ns());
		agrees = TAILOR_STOP_KIND(word_of(server)) == kind ? agrees + 1 : 0;
		usleep(500);
	}
}

static void whatever_the_order_of_stops_the_table_is_right_in_the_end(void **state)
{
	int sleep_us = 30;
	struct child child = start_server(1, many_threads, &sleep_us);
	unsigned int seed = 4711;

	(void)state;
	(void)child_hear(&child);
	for (int i = 0; i < 150; i++) {
		for (int changes = rand_r(&seed) % 6; changes > 0; changes--) {
			assert_int_equal(kill(child.pid, changes % 2 ? SIGSTOP : SIGCONT), 0);
			if (rand_r(&seed) % 2)
				usleep((useconds_t)(rand_r(&seed) % 100));
		}
		assert_int_equal(kill(child.pid, SIGSTOP), 0);
		wait_for(1, TAILOR_STOP_SIGNAL);
		assert_int_equal(kill(child.pid, SIGCONT), 0);
		wait_for(1, TAILOR_STOP_NONE);
	}
	end_server(1, &child);
}

static void a_server_of_which_one_thread_is_traced_runs(void **state)
{
	int sleep_us = 300;
	struct child child = start_server(0, many_threads, &sleep_us);
	pid_t tid = (pid_t)child_hear(&child);

	(void)state;
	assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	assert_int_equal(waitpid(tid, NULL, __WALL), tid);
	wait_for(0, TAILOR_STOP_NONE);
	assert_true(count_of(0) > 0);
	assert_int_equal(ptrace(PTRACE_DETACH, tid, 0, 0), 0);
	end_server(0, &child);
}

static void however_many_changes_there_were_the_next_one_wakes(void **state)
{
	enum { ROUNDS = 5000 }; /* two changes each: the ring buffer takes 4096 */
	struct child child = start_server(0, one_thread, NULL);
	uint64_t count = count_of(0);
	siginfo_t information;

	(void)state;
	assert_int_equal(child_ask(&child, 1), 2);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(kill(child.pid, SIGSTOP), 0);
		assert_int_equal(waitid(P_PID, (id_t)child.pid, &information, WSTOPPED), 0);
		assert_int_equal(kill(child.pid, SIGCONT), 0);
		assert_int_equal(waitid(P_PID, (id_t)child.pid, &information, WCONTINUED), 0);
	}
	assert_true(count_of(0) - count >= ROUNDS * 9 / 10);
	sleep(2);
	hear(tailor_clock_ns() + TAILOR_NS_PER_MS);
	assert_int_equal(hear(tailor_clock_ns() + 20 * TAILOR_NS_PER_MS), 0);
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	assert_true(hear(tailor_clock_ns() + 100 * TAILOR_NS_PER_MS) > 0);
	assert_int_equal(TAILOR_STOP_KIND(word_of(0)), TAILOR_STOP_SIGNAL);
	assert_int_equal(kill(child.pid, SIGCONT), 0);
	end_server(0, &child);
}

/* Passes the probe that it is told to. */
static void be_jvm(int control, void *context)
{
	(void)context;
	for (;;) {
		int64_t what = control_hear(control);

		if (what == 1)
			stand_in_safepoint_begin();
		else if (what == 2)
			stand_in_safepoint_end();
		else
			stand_in_operation();
		control_tell(control, what);
	}
}

static int has_uprobes(void)
{
	const struct tailor_probe *probes;
	size_t count = tailor_kernel_probes(kernel, &probes);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(probes[i].name, "uprobe") != 0 || probes[i].attached)
			continue;
		print_message("skipped: %s\n", probes[i].reason);
		return 0;
	}
	return 1;
}

static struct child start_jvm(unsigned int server)
{
	struct child child = start_server(server, be_jvm, NULL);
	uint64_t until_ns = tailor_clock_ns() + PATIENCE_NS;

	while (tailor_kernel_process_missing(kernel, child.pid)) {
		assert_true(tailor_clock_ns() < until_ns);
		usleep(1000);
	}
	return child;
}

static void a_worker_hears_at_once_of_a_safepoint_and_of_its_end(void **state)
{
	enum { ROUNDS = 50 };
	uint64_t took_ns[ROUNDS], count = count_of(0), before_ns, heard_ns, since_ns;
	struct child child;

	(void)state;
	if (!has_uprobes())
		skip();
	child = start_jvm(0);
	assert_int_equal(child_ask(&child, 3), 3);
	assert_int_equal(child_ask(&child, 2), 2); /* the end of one whose begin nobody saw */
	assert_int_equal(count_of(0), count);
	for (int i = 0; i < ROUNDS; i++) {
		before_ns = tailor_clock_ns();
		child_tell(&child, 1);
		heard_ns = hear_of(0, TAILOR_STOP_SAFEPOINT);
		since_ns = TAILOR_STOP_SINCE_NS(word_of(0));
		assert_true(since_ns >= before_ns && since_ns <= heard_ns);
		took_ns[i] = heard_ns - since_ns;
		assert_int_equal(child_hear(&child), 1);
		child_tell(&child, 2);
		hear_of(0, TAILOR_STOP_NONE);
		assert_int_equal(child_hear(&child), 2);
	}
	assert_int_equal(count_of(0), count + ROUNDS);
	qsort(took_ns, ROUNDS, sizeof(took_ns[0]), by_value);
	print_message("from the safepoint to the worker: median %llu us, most %llu us\n", (unsigned long long)took_ns[ROUNDS / 2] / 1000,
	              (unsigned long long)took_ns[ROUNDS - 1] / 1000);
	end_server(0, &child);
}

static void a_safepoint_in_which_a_jvm_is_stopped_goes_on_when_it_is_continued(void **state)
{
	struct child child;
	uint64_t safepoint;

	(void)state;
	if (!has_uprobes())
		skip();
	child = start_jvm(0);
	assert_int_equal(child_ask(&child, 1), 1);
	hear_of(0, TAILOR_STOP_SAFEPOINT);
	/* One that only sleeps in its safepoint stays in it. */
	usleep(5000);
	safepoint = word_of(0);
	assert_int_equal(TAILOR_STOP_KIND(safepoint), TAILOR_STOP_SAFEPOINT);
	assert_int_equal(kill(child.pid, SIGSTOP), 0);
	hear_of(0, TAILOR_STOP_SIGNAL);
	assert_int_equal(kill(child.pid, SIGCONT), 0);
	hear_of(0, TAILOR_STOP_SAFEPOINT);
	assert_true(word_of(0) == safepoint);
	assert_int_equal(child_ask(&child, 2), 2);
	assert_int_equal(word_of(0), 0);
	/* A successor starts anew, whatever the one before was in. */
	assert_int_equal(child_ask(&child, 1), 1);
	assert_int_equal(TAILOR_STOP_KIND(word_of(0)), TAILOR_STOP_SAFEPOINT);
	end_server(0, &child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(a_worker_hears_at_once_that_a_server_was_stopped_and_goes_on, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(nobody_hears_of_a_server_whose_stops_are_not_to_be_told, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(nobody_is_woken_who_does_not_wait_and_nothing_is_missed, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_process_may_be_several_servers, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_server_that_is_traced_no_more_stands_still_no_more, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_server_that_is_killed_while_it_is_stopped_stands_still_no_more, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_worker_hears_at_once_of_a_safepoint_and_of_its_end, open_ring, close_ring),
	        cmocka_unit_test_setup_teardown(a_safepoint_in_which_a_jvm_is_stopped_goes_on_when_it_is_continued, open_ring, close_ring),
	        cmocka_unit_test(whatever_the_order_of_stops_the_table_is_right_in_the_end),
	        cmocka_unit_test(a_server_of_which_one_thread_is_traced_runs),
	        cmocka_unit_test_setup_teardown(however_many_changes_there_were_the_next_one_wakes, open_ring, close_ring),
	};
	int failed;

	kernel = harness_open(4096);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
