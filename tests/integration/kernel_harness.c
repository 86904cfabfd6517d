/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/kernel_harness.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct tailor_kernel *harness_open(size_t slots_per_cpu)
{
	struct tailor_kernel *kernel;
	char error[512];
	int result = tailor_kernel_open(slots_per_cpu, &kernel, error, sizeof(error));

	if (result == 0)
		return kernel;
	fprintf(stderr, "%s: %s\n", result == -EPERM || result == -ENOENT ? "skipped" : "failed", error);
	exit(result == -EPERM || result == -ENOENT ? 77 : 1);
}

struct child child_start(const char *name, void (*body)(int control, void *context), void *context)
{
	struct child child;
	int sockets[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		close(sockets[0]);
		body(sockets[1], context);
		_exit(0);
	}
	close(sockets[1]);
	child.control = sockets[0];
	return child;
}

void control_tell(int control, int64_t number)
{
	if (send(control, &number, sizeof(number), MSG_NOSIGNAL) != sizeof(number))
		_exit(1);
}

int64_t control_hear(int control)
{
	int64_t number;

	if (recv(control, &number, sizeof(number), MSG_WAITALL) != sizeof(number))
		_exit(0);
	return number;
}

void child_tell(const struct child *child, int64_t number)
{
	assert_int_equal(send(child->control, &number, sizeof(number), MSG_NOSIGNAL), sizeof(number));
}

int64_t child_hear(const struct child *child)
{
	int64_t number;

	assert_int_equal(recv(child->control, &number, sizeof(number), MSG_WAITALL), sizeof(number));
	return number;
}

int64_t child_ask(const struct child *child, int64_t number)
{
	child_tell(child, number);
	return child_hear(child);
}

void child_stop(struct child *child)
{
	close(child->control);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(pid, sizeof(set), &set), 0);
}

static void pass_byte(int control, void *context)
{
	const int *ends = context; /* to read from, to write to, who begins, delay */
	char byte = 0;

	for (;;) {
		int64_t rounds = control_hear(control);

		for (int64_t i = 0; i < rounds; i++) {
			if (ends[2] && write(ends[1], &byte, 1) != 1)
				_exit(1);
			if (read(ends[0], &byte, 1) != 1)
				_exit(1);
			if (ends[3])
				usleep((useconds_t)ends[3]);
			if (!ends[2] && write(ends[1], &byte, 1) != 1)
				_exit(1);
		}
		control_tell(control, rounds);
	}
}

void ping_pong_start(struct ping_pong *pair, int delay_us)
{
	assert_int_equal(pipe(pair->pipes[0]), 0);
	assert_int_equal(pipe(pair->pipes[1]), 0);
	pair->ping = child_start("ping", pass_byte, (int[]){pair->pipes[1][0], pair->pipes[0][1], 1, 0});
	pair->pong = child_start("pong", pass_byte, (int[]){pair->pipes[0][0], pair->pipes[1][1], 0, delay_us});
}

void ping_pong_rounds(const struct ping_pong *pair, int64_t rounds)
{
	child_tell(&pair->pong, rounds);
	child_tell(&pair->ping, rounds);
	assert_int_equal(child_hear(&pair->ping), rounds);
	assert_int_equal(child_hear(&pair->pong), rounds);
}

void ping_pong_stop(struct ping_pong *pair)
{
	child_stop(&pair->ping);
	child_stop(&pair->pong);
	for (int i = 0; i < 4; i++)
		close(pair->pipes[i / 2][i % 2]);
}

void recording_begin(struct recording *recording, struct tailor_kernel *kernel)
{
	const struct tailor_channel *channels;
	size_t count = tailor_kernel_channels(kernel, &channels);

	*recording = (struct recording){.kernel = kernel, .begin = calloc(count, sizeof(uint64_t))};
	assert_non_null(recording->begin);
	for (size_t i = 0; i < count; i++)
		recording->begin[i] = tailor_channel_end(&channels[i]);
}

/* Equal times: a switch-out comes before the switch-in of the next task. */
static int by_time(const void *left, const void *right)
{
	const struct tailor_event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Waits until the traced processes are quiet, so that no channel is read earlier than the others. Returns the events
 * reserved. */
static size_t wait_quiet(const struct recording *recording, const struct tailor_channel *channels, size_t count)
{
	size_t total = 0, before;

	for (int i = 0; i < 100; i++) {
		before = total;
		total = 0;
		for (size_t j = 0; j < count; j++)
			total += tailor_channel_end(&channels[j]) - recording->begin[j];
		if (i > 0 && total == before)
			break;
		usleep(2000);
	}
	return total;
}

void recording_end(struct recording *recording)
{
	const struct tailor_channel *channels;
	size_t count = tailor_kernel_channels(recording->kernel, &channels);
	size_t total = wait_quiet(recording, channels, count);

	free(recording->events);
	recording->events = calloc(total + 1, sizeof(*recording->events));
	assert_non_null(recording->events);
	recording->count = 0;
	recording->lost = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t end = tailor_channel_end(&channels[i]);

		for (uint64_t position = recording->begin[i];
		     position < end && recording->count + recording->lost < total; position++) {
			struct tailor_event *event = &recording->events[recording->count];

			if (tailor_channel_read(&channels[i], position, event) != TAILOR_READ_OK)
				recording->lost++;
			else if (event->kind != TAILOR_EVENT_CPU_STALL || recording->stalls)
				recording->count++;
		}
	}
	qsort(recording->events, recording->count, sizeof(*recording->events), by_time);
}

void recording_free(struct recording *recording)
{
	free(recording->begin);
	free(recording->events);
}

const struct tailor_event *recording_next(const struct recording *recording, size_t *index, enum tailor_event_kind kind,
                                          pid_t tid)
{
	while (*index < recording->count) {
		const struct tailor_event *event = &recording->events[(*index)++];

		if (event->kind == kind && (tid == 0 || event->tid == (uint32_t)tid))
			return event;
	}
	return NULL;
}

size_t recording_count(const struct recording *recording, enum tailor_event_kind kind, pid_t pid)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->count; i++)
		count += recording->events[i].kind == kind && recording->events[i].pid == (uint32_t)pid;
	return count;
}
