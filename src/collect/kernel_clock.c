/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_clock.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct tailor_kernel_clock {
	int count;
	int events[];
};

static int open_event(int cpu, uint64_t period_ns)
{
	/* A fixed period, not a frequency, which the kernel would adjust. */
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int explain(int error, char *reason, size_t reason_size)
{
	const char *remedy = "needs a kernel with CONFIG_PERF_EVENTS";

	if (error == EPERM || error == EACCES)
		remedy = "needs root or CAP_PERFMON, and a seccomp filter that allows perf_event_open";
	else if (error == EMFILE)
		remedy = "raise the limit of open files: it takes one per CPU";
	snprintf(reason, reason_size, "the kernel gave no clock event (%s): %s", strerror(error), remedy);
	return -error;
}

int tailor_kernel_clock_open(uint64_t period_ns, struct tailor_kernel_clock **ret_clock, char *reason, size_t reason_size)
{
	int cpus = libbpf_num_possible_cpus(), result = 0;
	struct tailor_kernel_clock *clock;

	if (cpus <= 0)
		return explain(ENODEV, reason, reason_size);
	clock = calloc(1, sizeof(*clock) + (size_t)cpus * sizeof(clock->events[0]));
	if (!clock)
		return explain(ENOMEM, reason, reason_size);
	for (int cpu = 0; cpu < cpus; cpu++) {
		result = open_event(cpu, period_ns);
		if (result >= 0)
			clock->events[clock->count++] = result;
		else if (result != -ENODEV) /* offline */
			break;
	}
	if (result < 0 && (result != -ENODEV || clock->count == 0)) {
		tailor_kernel_clock_close(clock);
		return explain(-result, reason, reason_size);
	}
	*ret_clock = clock;
	return 0;
}

void tailor_kernel_clock_close(struct tailor_kernel_clock *clock)
{
	if (!clock)
		return;
	for (int i = 0; i < clock->count; i++)
		close(clock->events[i]);
	free(clock);
}
