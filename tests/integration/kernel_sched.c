/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/kernel_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tailor/timeline.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUNDS 200

/* Tests run on busy machines; what is tested here needs the CPU to go from one of two processes to the other. */
static void favour(pid_t pid)
{
	setpriority(PRIO_PROCESS, (id_t)pid, -15);
}

static struct tailor_kernel *kernel;

static int is_named(const struct tailor_event *event, const char *name)
{
	char comm[17] = "";

	memcpy(comm, &event->arg[1], 16);
	return strcmp(comm, name) == 0;
}

/*
 * Walks one thread's events and fails where they cannot have happened in this order. A wake-up may stand a moment
 * before the switch-out that it ends: another CPU can wake a thread that has said it will sleep but has not left its
 * CPU yet.
 */
static void assert_consistent(const struct recording *recording, pid_t tid)
{
	enum { UNKNOWN, RUNNING, READY, BLOCKED } was = UNKNOWN;
	int woken = 0; /* since it last got a CPU */

	for (size_t i = 0; i < recording->count; i++) {
		const struct tailor_event *event = &recording->events[i];

		if (event->tid != (uint32_t)tid)
			continue;
		switch (event->kind) {
		case TAILOR_EVENT_SWITCH_IN:
			assert_true(was == UNKNOWN || was == READY || (was == BLOCKED && woken));
			was = RUNNING;
			woken = 0;
			break;
		case TAILOR_EVENT_SWITCH_OUT:
			assert_true(was == UNKNOWN || was == RUNNING);
			was = TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_RUNNABLE ||
					      TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_THROTTLED
				      ? READY
				      : BLOCKED;
			break;
		case TAILOR_EVENT_WAKEUP: woken = 1; break;
		default: break;
		}
	}
}

static void a_traced_thread_shows_who_woke_it_and_when_it_ran_and_an_untraced_one_nothing(void **state)
{
	struct recording recording;
	struct ping_pong pair;
	size_t wakeups = 0, by_pong = 0, sleeps = 0, gave_way = 0, index = 0;
	const struct tailor_event *event;

	(void)state;
	ping_pong_start(&pair, 200); /* long enough for ping to sleep meanwhile */
	pin(pair.ping.pid, 0);       /* together on a CPU each round has to switch from one to the other */
	pin(pair.pong.pid, 0);
	favour(pair.ping.pid);
	favour(pair.pong.pid);
	assert_int_equal(tailor_kernel_trace(kernel, pair.ping.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	ping_pong_rounds(&pair, ROUNDS);
	recording_end(&recording);
	assert_int_equal(tailor_kernel_untrace(kernel, pair.ping.pid), 0);

	assert_int_equal(recording.lost, 0);
	for (size_t i = 0; i < recording.count; i++) {
		assert_int_equal(recording.events[i].pid, pair.ping.pid);
		if (CHILD_HAS_ONE_THREAD)
			assert_int_equal(recording.events[i].tid, pair.ping.pid);
		assert_int_equal(recording.events[i].request, 0);
	}
	assert_consistent(&recording, pair.ping.pid);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_WAKEUP, pair.ping.pid))) {
		wakeups++;
		if (event->arg[0] != TAILOR_TASK(pair.pong.pid, pair.pong.pid))
			continue;
		assert_true(is_named(event, "pong"));
		by_pong++;
	}
	index = 0;
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_SWITCH_OUT, pair.ping.pid))) {
		if (TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_SLEEPING)
			sleeps++;
		else
			assert_true(TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_RUNNABLE ||
			            TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_THROTTLED); /* it had not come to sleep yet */
		gave_way += event->arg[0] == TAILOR_TASK(pair.pong.pid, pair.pong.pid);
	}
	assert_in_range(wakeups, sleeps - 1, sleeps + 1); /* what sleeps is woken; the recording cuts at both ends */
	assert_true(by_pong >= ROUNDS / 2);
	assert_in_range(by_pong, wakeups - 4, wakeups);     /* and by pong, but for the start and the end */
	assert_true(gave_way >= ROUNDS / 10); /* other processes may come between */
	assert_true(recording_count(&recording, TAILOR_EVENT_SWITCH_IN, pair.ping.pid) >= ROUNDS);
	recording_free(&recording);
	ping_pong_stop(&pair);
}

static void sleep_often(int control, void *context)
{
	const struct timespec nap = {.tv_nsec = 2000000};

	(void)context;
	for (;;) {
		int64_t naps = control_hear(control);

		for (int64_t i = 0; i < naps; i++)
			nanosleep(&nap, NULL);
		control_tell(control, naps);
	}
}

static void spin(int control, void *context)
{
	static char zeros[1 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)control;
	for (;;) {
		if (*(int *)context && read(fd, zeros, sizeof(zeros)) <= 0)
			_exit(1);
	}
}

/* In user mode the interrupt runs on the interrupted task's stack, in the kernel on a stack of its own. */
static void assert_timer_is_no_waker(int in_kernel)
{
	struct child spinner = child_start("spinner", spin, &in_kernel);
	struct child sleeper = child_start("sleeper", sleep_often, NULL);
	const struct tailor_event *event;
	struct recording recording;
	size_t index = 0, ran_before = 0, woken = 0;

	pin(spinner.pid, 0);
	pin(sleeper.pid, 0);
	favour(spinner.pid);
	favour(sleeper.pid);
	child_ask(&sleeper, 1);
	assert_int_equal(tailor_kernel_trace(kernel, sleeper.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	/* Until it was the spinner that was interrupted often enough, and not somebody else on a busy machine. */
	for (int i = 0; i < 20 && ran_before < 20; i++) {
		child_ask(&sleeper, 50);
		recording_end(&recording);
		index = ran_before = 0;
		while ((event = recording_next(&recording, &index, TAILOR_EVENT_SWITCH_IN, sleeper.pid)))
			ran_before += event->arg[0] == TAILOR_TASK(spinner.pid, spinner.pid);
	}
	tailor_kernel_untrace(kernel, sleeper.pid);
	index = 0;
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_WAKEUP, sleeper.pid))) {
		assert_int_not_equal(event->arg[0], TAILOR_TASK(spinner.pid, spinner.pid));
		woken += event->arg[0] == 0;
	}
	assert_true(ran_before >= 20);
	assert_true(woken >= 40); /* a nap that is over before it begins needs no wake-up */
	recording_free(&recording);
	child_stop(&sleeper);
	child_stop(&spinner);
}

static void a_timer_that_wakes_a_thread_is_not_taken_for_the_task_it_interrupted(void **state)
{
	(void)state;
	assert_timer_is_no_waker(0);
	assert_timer_is_no_waker(1);
}

static void *tell_tid(void *context)
{
	*(int64_t *)context = syscall(SYS_gettid);
	return NULL;
}

static void start_threads(int control, void *context)
{
	(void)context;
	for (;;) {
		pthread_t thread;
		int64_t tid;

		control_hear(control);
		if (pthread_create(&thread, NULL, tell_tid, &tid) != 0)
			_exit(1);
		pthread_join(thread, NULL);
		control_tell(control, tid);
	}
}

static void a_new_thread_of_a_traced_process_is_traced_and_was_woken_by_its_creator(void **state)
{
	struct child child = child_start("creator", start_threads, NULL);
	const struct tailor_event *event;
	struct recording recording;
	size_t index = 0;
	int64_t tid;

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	tid = child_ask(&child, 1);
	recording_end(&recording);
	tailor_kernel_untrace(kernel, child.pid);
	assert_int_not_equal(tid, child.pid);
	event = recording_next(&recording, &index, TAILOR_EVENT_WAKEUP, (pid_t)tid);
	assert_non_null(event);
	assert_int_equal(event->pid, child.pid);
	assert_int_equal(event->arg[0], TAILOR_TASK(child.pid, child.pid));
	assert_non_null(recording_next(&recording, &index, TAILOR_EVENT_SWITCH_IN, (pid_t)tid));
	assert_consistent(&recording, (pid_t)tid);
	recording_free(&recording);
	child_stop(&child);
}

static void untracing_a_process_ends_its_events(void **state)
{
	struct recording recording;
	struct ping_pong pair;

	(void)state;
	ping_pong_start(&pair, 0);
	assert_int_equal(tailor_kernel_trace(kernel, pair.ping.pid, TAILOR_TRACED_SERVER), 0);
	assert_int_equal(tailor_kernel_trace(kernel, pair.ping.pid, TAILOR_TRACED_SERVER), 0);
	assert_int_equal(tailor_kernel_trace(kernel, pair.pong.pid, TAILOR_TRACED_PROXY), 0);
	recording_begin(&recording, kernel);
	ping_pong_rounds(&pair, 20);
	recording_end(&recording);
	assert_true(recording_count(&recording, TAILOR_EVENT_SWITCH_IN, pair.ping.pid) >= 10);
	assert_true(recording_count(&recording, TAILOR_EVENT_SWITCH_IN, pair.pong.pid) >= 10);
	recording_free(&recording);

	assert_int_equal(tailor_kernel_untrace(kernel, pair.ping.pid), 0);
	assert_int_equal(tailor_kernel_untrace(kernel, pair.ping.pid), 0);
	recording_begin(&recording, kernel);
	ping_pong_rounds(&pair, 20);
	recording_end(&recording);
	for (size_t i = 0; i < recording.count; i++)
		assert_int_equal(recording.events[i].pid, pair.pong.pid);
	assert_true(recording_count(&recording, TAILOR_EVENT_SWITCH_IN, pair.pong.pid) >= 10);
	recording_free(&recording);

	assert_int_equal(tailor_kernel_untrace(kernel, pair.pong.pid), 0);
	recording_begin(&recording, kernel);
	ping_pong_rounds(&pair, 20);
	recording_end(&recording);
	assert_int_equal(recording.count + recording.lost, 0);
	recording_free(&recording);
	ping_pong_stop(&pair);
}

/* Events of a process in a few rounds. */
static size_t events_of(const struct ping_pong *pair, pid_t pid)
{
	struct recording recording;
	size_t count = 0;

	recording_begin(&recording, kernel);
	ping_pong_rounds(pair, 20);
	recording_end(&recording);
	for (size_t i = 0; i < recording.count; i++)
		count += recording.events[i].pid == (uint32_t)pid;
	recording_free(&recording);
	return count;
}

/* The programs' short cut has 1024 entries: ids that differ by that share one. */
static void processes_whose_ids_share_a_hint_are_told_apart(void **state)
{
	struct ping_pong pair;
	pid_t pid, neighbours[2];

	(void)state;
	ping_pong_start(&pair, 0);
	pid = pair.ping.pid;
	neighbours[0] = pid + (1 << 22);
	neighbours[1] = pid + (1 << 22) + 1024;
	assert_int_equal(tailor_kernel_trace(kernel, neighbours[0], TAILOR_TRACED_PROXY), 0);
	assert_int_equal(events_of(&pair, pid), 0); /* a neighbour alone is no reason */
	assert_int_equal(tailor_kernel_trace(kernel, neighbours[1], TAILOR_TRACED_SERVER), 0);
	assert_int_equal(events_of(&pair, pid), 0); /* nor are two */
	assert_int_equal(tailor_kernel_trace(kernel, pid, TAILOR_TRACED_SERVER), 0);
	assert_true(events_of(&pair, pid) > 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tailor_kernel_untrace(kernel, neighbours[i]), 0);
		assert_true(events_of(&pair, pid) > 0);
	}
	assert_int_equal(tailor_kernel_trace(kernel, neighbours[0], TAILOR_TRACED_PROXY), 0);
	assert_int_equal(tailor_kernel_untrace(kernel, pid), 0);
	assert_int_equal(events_of(&pair, pid), 0);
	assert_int_equal(tailor_kernel_untrace(kernel, neighbours[0]), 0);
	ping_pong_stop(&pair);
}

/* 256 fit; ids that no process has are as good as any. */
static void more_processes_than_fit_are_refused_and_leave_room_again(void **state)
{
	pid_t first = 1 << 24;

	(void)state;
	for (pid_t i = 0; i < 256; i++)
		assert_int_equal(tailor_kernel_trace(kernel, first + i, TAILOR_TRACED_SERVER), 0);
	assert_int_equal(tailor_kernel_trace(kernel, first + 256, TAILOR_TRACED_SERVER), -E2BIG);
	assert_int_equal(tailor_kernel_untrace(kernel, first), 0);
	assert_int_equal(tailor_kernel_trace(kernel, first + 256, TAILOR_TRACED_SERVER), 0);
	for (pid_t i = 0; i <= 256; i++)
		assert_int_equal(tailor_kernel_untrace(kernel, first + i), 0);
	assert_int_equal(tailor_kernel_trace(kernel, 0, TAILOR_TRACED_SERVER), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_traced_thread_shows_who_woke_it_and_when_it_ran_and_an_untraced_one_nothing),
		cmocka_unit_test(a_timer_that_wakes_a_thread_is_not_taken_for_the_task_it_interrupted),
		cmocka_unit_test(a_new_thread_of_a_traced_process_is_traced_and_was_woken_by_its_creator),
		cmocka_unit_test(untracing_a_process_ends_its_events),
		cmocka_unit_test(processes_whose_ids_share_a_hint_are_told_apart),
		cmocka_unit_test(more_processes_than_fit_are_refused_and_leave_room_again),
	};
	int failed;

	kernel = harness_open(16384);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
