/* SPDX-License-Identifier: Apache-2.0 */
/* A channel too small for what happens loses events and says so; and what an event costs, for information. */
#include "tests/integration/kernel_harness.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define SMALL 64
#define ROUNDS 5000

/* True for what a kernel program can have written about the one traced process. */
static int is_plausible(const struct tailor_event *event, pid_t pid, size_t cpu, uint64_t begin_ns)
{
	if (event->kind == TAILOR_EVENT_CPU_STALL) /* of the machine, not of a process */
		return event->pid == 0 && event->cpu == cpu && event->arg[1] < event->arg[0] && event->arg[0] < event->time_ns;
	if (event->kind == TAILOR_EVENT_PAGE_FAULTS && (event->arg[0] < begin_ns || event->arg[0] > event->time_ns))
		return 0;
	if ((event->kind < TAILOR_EVENT_WAKEUP || event->kind > TAILOR_EVENT_TCP_RETRANSMIT) && event->kind != TAILOR_EVENT_PAGE_FAULTS)
		return 0;
	if (event->texts != 0)
		return 0;
	if (event->pid != (uint32_t)pid || event->cpu != cpu || event->request != 0)
		return 0;
	if (CHILD_HAS_ONE_THREAD && event->tid != (uint32_t)pid)
		return 0;
	return event->time_ns >= begin_ns && event->time_ns <= tailor_clock_ns();
}

static void a_channel_smaller_than_the_events_reports_losses_and_never_garbage(void **state)
{
	struct tailor_kernel *kernel = harness_open(SMALL);
	const struct tailor_channel *channels;
	size_t count = tailor_kernel_channels(kernel, &channels);
	uint64_t *positions = calloc(count, sizeof(*positions));
	uint64_t accepted = 0, lost = 0, reserved = 0, begin_ns = tailor_clock_ns();
	struct ping_pong pair;
	int done = 0;

	(void)state;
	assert_non_null(positions);
	ping_pong_start(&pair, 0);
	assert_int_equal(tailor_kernel_trace(kernel, pair.ping.pid, TAILOR_TRACED_SERVER), 0);
	child_tell(&pair.pong, ROUNDS);
	child_tell(&pair.ping, ROUNDS);
	while (!done) {
		int64_t rounds;

		/* Read while they run: now and then, as an observer does. */
		usleep(10000);
		done = recv(pair.ping.control, &rounds, sizeof(rounds), MSG_DONTWAIT) == sizeof(rounds);
		if (done) {
			assert_int_equal(child_hear(&pair.pong), ROUNDS);
			tailor_kernel_untrace(kernel, pair.ping.pid);
			usleep(10000); /* a program that saw it traced is done */
		}
		for (size_t cpu = 0; cpu < count; cpu++) {
			while (positions[cpu] < tailor_channel_end(&channels[cpu])) {
				struct tailor_event event;
				enum tailor_read result = tailor_channel_read(&channels[cpu], positions[cpu], &event);

				if (result == TAILOR_READ_PENDING && !done)
					break;
				if (result == TAILOR_READ_OK) {
					assert_true(is_plausible(&event, pair.ping.pid, cpu, begin_ns));
					assert_int_equal(event.sequence, TAILOR_SEQUENCE_PUBLISHED(positions[cpu]));
					accepted++;
				} else {
					lost++;
				}
				positions[cpu]++;
			}
		}
	}
	for (size_t cpu = 0; cpu < count; cpu++)
		reserved += tailor_channel_end(&channels[cpu]);
	print_message("             %llu accepted, %llu lost\n", (unsigned long long)accepted,
	              (unsigned long long)lost);
	assert_int_equal(accepted + lost, reserved);
	assert_true(accepted >= SMALL / 2);
	assert_true(lost > SMALL); /* two events and more a round, and room for 64 */
	free(positions);
	ping_pong_stop(&pair);
	tailor_kernel_close(kernel);
}

static void sizes_that_are_no_power_of_two_are_refused(void **state)
{
	static const size_t sizes[] = {0, 3, 1000, ((size_t)1 << 32) + 1, (size_t)1 << 40};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tailor_kernel *kernel = NULL;
		char error[256] = "";

		assert_int_equal(tailor_kernel_open(sizes[i], &kernel, error, sizeof(error)), -EINVAL);
		assert_null(kernel);
		assert_non_null(strstr(error, "power of two"));
	}
}

#define GAVE_NOTHING_UP 255

/* How opening fails in a child that has first given something up. */
static int open_without(int (*give_up)(void), char *error, size_t error_size)
{
	int pipes[2], status = -1;
	ssize_t length;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct tailor_kernel *kernel;
		char text[256] = "";
		int result = give_up() == 0 ? -tailor_kernel_open(SMALL, &kernel, text, sizeof(text)) : GAVE_NOTHING_UP;

		_exit(write(pipes[1], text, sizeof(text)) == sizeof(text) ? result : 254);
	}
	close(pipes[1]);
	length = read(pipes[0], error, error_size);
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(length > 0 && WIFEXITED(status));
	error[error_size - 1] = '\0';
	print_message("             %s\n", error);
	return -WEXITSTATUS(status);
}

static int give_up_rights(void)
{
	return setresuid(65534, 65534, 65534);
}

static int give_up_types(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -1;
	return mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL);
}

/* The child of the child is the first process of the namespace; its result becomes the child's. */
static int give_up_pids(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID) != 0)
		return -1;
	pid = fork();
	if (pid <= 0)
		return pid;
	waitpid(pid, &status, 0);
	_exit(WEXITSTATUS(status));
}

/* Where the thing cannot be given up (a chroot has no mount point for its root, for example), it is said and left out. */
static void assert_refused(int (*give_up)(void), int expected, const char *reason, const char *remedy)
{
	char error[256];
	int result = open_without(give_up, error, sizeof(error));

	if (result == -GAVE_NOTHING_UP) {
		print_message("             cannot be tried here: %s\n", remedy);
		return;
	}
	assert_int_equal(result, expected);
	assert_non_null(strstr(error, reason));
	assert_non_null(strstr(error, remedy));
}

static void a_kernel_that_cannot_be_opened_is_refused_with_the_reason_and_the_remedy(void **state)
{
	(void)state;
	assert_refused(give_up_rights, -EPERM, "refused", "needs root or CAP_BPF+CAP_PERFMON");
	assert_refused(give_up_types, -ENOENT, "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF");
	assert_refused(give_up_pids, -EOPNOTSUPP, "pid namespace", "pid namespace");
}

static uint32_t last_program_id(void)
{
	uint32_t id = 0;

	while (bpf_prog_get_next_id(id, &id) == 0)
		;
	return id;
}

/* Prints runs and ns per run of the programs loaded after `since`, and zeroes nothing: `before` holds the earlier
 * counts. */
static void print_costs(const char *what, uint32_t since)
{
	static struct {
		uint64_t ns;
		uint64_t runs;
	} before[4096];
	uint32_t id = since;

	print_message("             %s:\n", what);
	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strncmp(info.name, "on_", 3) == 0) {
			uint64_t runs = info.run_cnt - before[id % 4096].runs;

			if (runs > 1000)
				print_message("             %-16s %7llu runs, %3llu ns each, %llu not run because it "
				              "was running\n",
				              info.name, (unsigned long long)runs,
				              (unsigned long long)((info.run_time_ns - before[id % 4096].ns) / runs),
				              (unsigned long long)info.recursion_misses);
			before[id % 4096].ns = info.run_time_ns;
			before[id % 4096].runs = info.run_cnt;
		}
		close(fd);
	}
}

/* Information, not a judgement: the machine may be busy, and counting costs something too. */
static void what_an_event_costs_is_printed(void **state)
{
	uint32_t since = last_program_id();
	struct tailor_kernel *kernel = harness_open(16384);
	struct ping_pong pair;
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	(void)state;
	if (stats < 0)
		print_message("             no run statistics: %s\n", strerror(errno));
	ping_pong_start(&pair, 0);
	pin(pair.ping.pid, 0);
	pin(pair.pong.pid, 0);
	ping_pong_rounds(&pair, ROUNDS);
	print_costs("nothing traced", since);
	assert_int_equal(tailor_kernel_trace(kernel, pair.ping.pid, TAILOR_TRACED_SERVER), 0);
	ping_pong_rounds(&pair, ROUNDS);
	print_costs("one of the two tasks traced", since);
	if (stats >= 0)
		close(stats);
	ping_pong_stop(&pair);
	tailor_kernel_close(kernel);
}

static void a_survey_names_every_probe_and_why_it_is_missing(void **state)
{
	struct tailor_probe probes[TAILOR_PROBES_MAX];
	char error[256];
	int count = tailor_kernel_survey(probes, TAILOR_PROBES_MAX, error, sizeof(error));

	(void)state;
	assert_in_range(count, 5, TAILOR_PROBES_MAX);
	for (int i = 0; i < count; i++) {
		assert_true(probes[i].attached || !probes[i].required);
		assert_int_equal(probes[i].attached, probes[i].reason[0] == '\0');
		print_message("             %-20s %s\n", probes[i].name,
		              probes[i].attached ? "works" : probes[i].reason);
	}
	assert_int_equal(tailor_kernel_survey(probes, 2, error, sizeof(error)), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_channel_smaller_than_the_events_reports_losses_and_never_garbage),
		cmocka_unit_test(sizes_that_are_no_power_of_two_are_refused),
		cmocka_unit_test(a_kernel_that_cannot_be_opened_is_refused_with_the_reason_and_the_remedy),
		cmocka_unit_test(a_survey_names_every_probe_and_why_it_is_missing),
		cmocka_unit_test(what_an_event_costs_is_printed),
	};

	tailor_kernel_close(harness_open(SMALL)); /* or skip */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
