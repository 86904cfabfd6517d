/* SPDX-License-Identifier: Apache-2.0 */
/* Why a thread left its CPU: the system call it waits in, a fault, or a cgroup whose CPU quota is used up. */
#include "tests/integration/kernel_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUNDS 20

static struct tailor_kernel *kernel;

/* How often a thread left its CPU in that state, within that call. */
static size_t count_leaving(const struct recording *recording, pid_t tid, uint8_t state, uint16_t call)
{
	const struct tailor_event *event;
	size_t index = 0, count = 0;

	while ((event = recording_next(recording, &index, TAILOR_EVENT_SWITCH_OUT, tid)))
		count += TAILOR_SWITCH_STATE(event->extra) == state && TAILOR_SWITCH_CALL(event->extra) == call;
	return count;
}

static size_t count_state(const struct recording *recording, pid_t tid, uint8_t state)
{
	const struct tailor_event *event;
	size_t index = 0, count = 0;

	while ((event = recording_next(recording, &index, TAILOR_EVENT_SWITCH_OUT, tid)))
		count += TAILOR_SWITCH_STATE(event->extra) == state;
	return count;
}

static void wait_in_call(int control, void *context)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	uint32_t word = 0;
	int epoll = epoll_create1(EPOLL_CLOEXEC), *ends = context;
	struct epoll_event ready;
	char byte;

	for (;;) {
		int64_t call = control_hear(control);

		for (int i = 0; i < ROUNDS; i++) {
			switch (call) {
			case SYS_futex: syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &nap, NULL, 0); break;
			case SYS_epoll_wait: syscall(SYS_epoll_wait, epoll, &ready, 1, 2); break;
			case SYS_nanosleep: syscall(SYS_nanosleep, &nap, NULL); break;
			case SYS_read:
				if (read(ends[0], &byte, 1) != 1)
					_exit(1);
				break;
			default: _exit(1);
			}
		}
		control_tell(control, call);
	}
}

static void a_thread_that_sleeps_shows_the_system_call_it_waits_in(void **state)
{
	static const int64_t calls[] = {SYS_futex, SYS_epoll_wait, SYS_nanosleep, SYS_read};
	struct recording recording;
	struct child child;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = child_start("waiter", wait_in_call, ends);
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		size_t expected, asked;

		recording_begin(&recording, kernel);
		child_tell(&child, calls[i]);
		for (int j = 0; j < ROUNDS && calls[i] == SYS_read; j++) {
			usleep(2000);
			assert_int_equal(write(ends[1], "", 1), 1);
		}
		assert_int_equal(child_hear(&child), calls[i]);
		recording_end(&recording);
		expected = count_leaving(&recording, child.pid, TAILOR_TASK_SLEEPING, (uint16_t)(calls[i] + 1));
		asked = count_leaving(&recording, child.pid, TAILOR_TASK_SLEEPING, SYS_recvfrom + 1);
		/* On a busy machine a nap may be over before it began. */
		assert_in_range(expected, ROUNDS / 2, ROUNDS);
		assert_int_equal(count_state(&recording, child.pid, TAILOR_TASK_SLEEPING), expected + asked);
		recording_free(&recording);
	}
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
	close(ends[0]);
	close(ends[1]);
}

#define COLD_PAGES 16
#define COLD_STEP (1 << 20) /* further apart than what is read ahead */

/* Touches pages of a file that the page cache does not have; tells how many had to be read. */
static void touch_cold_pages(int control, void *context)
{
	int fd = *(int *)context;
	struct rusage before, after;

	for (;;) {
		volatile char *memory = mmap(NULL, COLD_PAGES * COLD_STEP, PROT_READ, MAP_SHARED, fd, 0);

		control_hear(control);
		if (memory == MAP_FAILED)
			_exit(1);
		madvise((void *)memory, COLD_PAGES * COLD_STEP, MADV_RANDOM);
		getrusage(RUSAGE_SELF, &before);
		for (size_t i = 0; i < COLD_PAGES; i++)
			(void)memory[i * COLD_STEP];
		getrusage(RUSAGE_SELF, &after);
		munmap((void *)memory, COLD_PAGES * COLD_STEP);
		control_tell(control, after.ru_majflt - before.ru_majflt);
	}
}

static void a_fault_that_sleeps_shows_that_no_system_call_was_made(void **state)
{
	static const char content[COLD_STEP] = "cold";
	/* More often on a disk than /tmp, if it is there. */
	char path[32] = "/var/tmp/tailor-cold-XXXXXX", instead[] = "/tmp/tailor-cold-XXXXXX";
	int fd = mkstemp(path);
	struct recording recording;
	struct child child;
	int64_t major;

	(void)state;
	if (fd < 0) {
		fd = mkstemp(instead);
		strcpy(path, instead);
	}
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	for (int i = 0; i < COLD_PAGES; i++)
		assert_int_equal(write(fd, content, sizeof(content)), sizeof(content));
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	child = child_start("toucher", touch_cold_pages, &fd);
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	major = child_ask(&child, 1);
	recording_end(&recording);
	tailor_kernel_untrace(kernel, child.pid);
	if (major == 0)
		print_message("             cannot be tried here: temporary files are not on a disk\n");
	else
		assert_true(count_leaving(&recording, child.pid, TAILOR_TASK_UNINTERRUPTIBLE, TAILOR_CALL_NONE) >= 1);
	recording_free(&recording);
	child_stop(&child);
	close(fd);
}

/* Has a thread of the kernel's own read a pipe for this process, which waits elsewhere meanwhile. */
static void read_by_worker(int control, void *context)
{
	struct io_uring_params params = {0};
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params), *ends = context;
	char *queue, byte;
	struct io_uring_sqe *entry;

	if (ring < 0)
		control_tell(control, -errno);
	if (ring < 0)
		return;
	queue = mmap(NULL, params.sq_off.array + sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entry = mmap(NULL, sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if ((void *)queue == MAP_FAILED || (void *)entry == MAP_FAILED)
		_exit(1);
	*entry = (struct io_uring_sqe){.opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = ends[0], .addr = (uintptr_t)&byte, .len = 1,
	                               .off = UINT64_MAX};
	__atomic_store_n((uint32_t *)(void *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	control_tell(control, syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0));
	control_hear(control);
}

static void a_thread_that_the_kernel_runs_for_a_process_is_in_no_known_call(void **state)
{
	struct recording recording;
	struct child child;
	size_t index = 0, found = 0;
	const struct tailor_event *event;
	int64_t submitted;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = child_start("submitter", read_by_worker, ends);
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	submitted = child_hear(&child);
	usleep(20000);
	assert_int_equal(write(ends[1], "", 1), 1);
	recording_end(&recording);
	tailor_kernel_untrace(kernel, child.pid);
	if (submitted != 1)
		print_message("             cannot be tried here: no io_uring (%s)\n", strerror((int)-submitted));
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_SWITCH_OUT, 0))) {
		if (event->tid == event->pid)
			continue;
		assert_int_equal(TAILOR_SWITCH_CALL(event->extra), 0);
		found++;
	}
	if (submitted == 1 && CHILD_HAS_ONE_THREAD)
		assert_true(found >= 1);
	recording_free(&recording);
	child_stop(&child);
	close(ends[0]);
	close(ends[1]);
}

static void spin(int control, void *context)
{
	(void)control;
	(void)context;
	for (;;)
		;
}

static void a_thread_that_is_pushed_off_in_user_mode_made_no_system_call(void **state)
{
	struct child children[2] = {child_start("spinner", spin, NULL), child_start("rival", spin, NULL)};
	struct recording recording;
	size_t pushed;

	(void)state;
	pin(children[0].pid, 0);
	pin(children[1].pid, 0);
	/* Both are through with what a process begins with. */
	usleep(200000);
	assert_int_equal(tailor_kernel_trace(kernel, children[0].pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	usleep(300000);
	recording_end(&recording);
	tailor_kernel_untrace(kernel, children[0].pid);
	pushed = count_leaving(&recording, children[0].pid, TAILOR_TASK_RUNNABLE, TAILOR_CALL_NONE);
	assert_true(pushed >= 3);
	/* A rival is no quota. */
	assert_int_equal(count_state(&recording, children[0].pid, TAILOR_TASK_RUNNABLE), pushed);
	assert_int_equal(recording_count(&recording, TAILOR_EVENT_SWITCH_OUT, children[0].pid), pushed);
	recording_free(&recording);
	child_stop(&children[0]);
	child_stop(&children[1]);
}

#define PERIOD_US 50000
#define QUOTA_US 5000

/* A cgroup of this test's own, and who is in it. */
static char group[128];
static struct child members[2];

static int write_file(const char *name, const char *text)
{
	char path[192];
	int fd, result;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
	close(fd);
	return result;
}

/* How long the group has had no quota left, by the kernel's own account. */
static uint64_t out_of_quota_ns(void)
{
	unsigned long long value = 0;
	char path[192], line[128];
	uint64_t ns = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.stat", group);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "throttled_time %llu", &value) == 1)
			ns = value;
		else if (sscanf(line, "throttled_usec %llu", &value) == 1)
			ns = value * TAILOR_NS_PER_US;
	}
	fclose(file);
	return ns;
}

/* Version 1 of cgroups or 2, whichever has the CPU controller. */
static int make_group(void)
{
	char quota[32], period[32], both[64];

	snprintf(quota, sizeof(quota), "%d", QUOTA_US);
	snprintf(period, sizeof(period), "%d", PERIOD_US);
	snprintf(both, sizeof(both), "%d %d", QUOTA_US, PERIOD_US);
	snprintf(group, sizeof(group), "/sys/fs/cgroup/cpu/tailor-test-%d", getpid());
	if (mkdir(group, 0755) == 0)
		return write_file("cpu.cfs_period_us", period) == 0 && write_file("cpu.cfs_quota_us", quota) == 0 ? 0 : -1;
	snprintf(group, sizeof(group), "/sys/fs/cgroup/tailor-test-%d", getpid());
	if (mkdir(group, 0755) == 0)
		return write_file("cpu.max", both);
	group[0] = '\0';
	return -1;
}

/* Whatever the test came to. */
static int remove_group(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		if (members[i].pid)
			child_stop(&members[i]);
		members[i].pid = 0;
	}
	for (int i = 0; i < 100 && group[0] && rmdir(group) != 0 && errno == EBUSY; i++)
		usleep(10000);
	group[0] = '\0';
	return 0;
}

static void nap_and_work(int control, void *context)
{
	const struct timespec nap = {.tv_nsec = 3000000};

	(void)control;
	(void)context;
	for (;;) {
		uint64_t end_ns;

		nanosleep(&nap, NULL);
		end_ns = tailor_clock_ns() + TAILOR_NS_PER_MS / 2;
		while (tailor_clock_ns() < end_ns)
			;
	}
}

/* Time from each throttling to the next turn on a CPU; and how often. */
static uint64_t throttled_ns(const struct recording *recording, pid_t tid, size_t *ret_times)
{
	uint64_t since_ns = 0, sum_ns = 0;

	*ret_times = 0;
	for (size_t i = 0; i < recording->count; i++) {
		const struct tailor_event *event = &recording->events[i];

		if (event->tid != (uint32_t)tid)
			continue;
		if (event->kind == TAILOR_EVENT_SWITCH_IN && since_ns)
			sum_ns += event->time_ns - since_ns;
		if (event->kind == TAILOR_EVENT_SWITCH_IN)
			since_ns = 0;
		if (event->kind == TAILOR_EVENT_SWITCH_OUT && TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_THROTTLED) {
			since_ns = event->time_ns;
			(*ret_times)++;
		}
	}
	return sum_ns;
}

static void a_thread_whose_cgroup_is_out_of_quota_is_told_from_one_that_was_pushed_off(void **state)
{
	struct recording recording;
	uint64_t begin_ns, took_ns, sum_ns, out_ns;
	const struct tailor_event *event;
	size_t spinner_times, times, periods, woken = 0, index = 0;
	char pid[16];

	(void)state;
	if (make_group() != 0) {
		print_message("             cannot be tried here: no CPU controller for cgroups, or no right to it\n");
		return;
	}
	members[0] = child_start("spinner", spin, NULL);
	members[1] = child_start("napper", nap_and_work, NULL);
	for (int i = 0; i < 2; i++) {
		pin(members[i].pid, 0);
		snprintf(pid, sizeof(pid), "%d", members[i].pid);
		assert_int_equal(write_file("cgroup.procs", pid), 0);
		assert_int_equal(tailor_kernel_trace(kernel, members[i].pid, TAILOR_TRACED_SERVER), 0);
	}
	recording_begin(&recording, kernel);
	begin_ns = tailor_clock_ns();
	out_ns = out_of_quota_ns();
	usleep(800000);
	out_ns = out_of_quota_ns() - out_ns;
	took_ns = tailor_clock_ns() - begin_ns;
	recording_end(&recording);
	tailor_kernel_untrace(kernel, members[0].pid);
	tailor_kernel_untrace(kernel, members[1].pid);

	sum_ns = throttled_ns(&recording, members[0].pid, &spinner_times);
	sum_ns += throttled_ns(&recording, members[1].pid, &times);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_WAKEUP, members[1].pid)))
		woken += event->extra == TAILOR_WAKEUP_THROTTLED;
	print_message("             throttled for %llu of %llu ms (by the kernel's account %llu); the spinner %zu times, the sleeper %zu when running, %zu when woken\n",
	              (unsigned long long)(sum_ns / TAILOR_NS_PER_MS), (unsigned long long)(took_ns / TAILOR_NS_PER_MS),
	              (unsigned long long)(out_ns / TAILOR_NS_PER_MS), spinner_times, times, woken);
	/*
	 * Once a period, unless others have the CPU meanwhile: then it takes longer to use the quota up. Before 6.18 the one who runs then says so, or
	 * who is woken later; not who had been pushed off by the one that now goes to sleep.
	 */
	periods = took_ns / (PERIOD_US * TAILOR_NS_PER_US);
	assert_in_range(spinner_times, 1, 2 * periods + 2);
	assert_true(spinner_times + times + woken >= periods / 2);
	/* Each time for as long as the kernel's own account says. */
	assert_true(out_ns > 0 && sum_ns >= (spinner_times + times) * (out_ns / periods) / 2);
	/* When it is woken, or at its return to user mode, by the kernel's version; how often depends on who used the quota up. */
	assert_true(times + woken >= 1);
	recording_free(&recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_sleeps_shows_the_system_call_it_waits_in),
		cmocka_unit_test(a_fault_that_sleeps_shows_that_no_system_call_was_made),
		cmocka_unit_test(a_thread_that_the_kernel_runs_for_a_process_is_in_no_known_call),
		cmocka_unit_test(a_thread_that_is_pushed_off_in_user_mode_made_no_system_call),
		cmocka_unit_test_teardown(a_thread_whose_cgroup_is_out_of_quota_is_told_from_one_that_was_pushed_off, remove_group),
	};
	int failed;

	kernel = harness_open(16384);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
