/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cpu_group.h"
#include "base/scheduling.h"
#include "cli/proxy_run.h"

#define NICE_MAX 19
/* Before all that has none, behind whoever has been given one on purpose. */
#define URGENT_FIFO 1

/* A worker that spins takes a CPU from whoever else wants it. */
static void judge_busy_poll(const struct tailor_config *config)
{
	cpu_set_t set;
	unsigned int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned int)CPU_COUNT(&set) : 1;

	if (config->busy_poll_ns && config->workers >= cpus)
		proxy_say("priority.busy_poll: %u workers spin, and this process may use %u CPUs: servers and the rest of the host wait for them; "
		          "lower `workers`, or leave the key out",
		          config->workers, cpus);
}

/* --- groups of processes ---------------------------------------------------------------------------- */

static bool begins_with(const char *path, const char *text)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char start[16] = "";

	return fd >= 0 && read(fd, start, sizeof(start) - 1) > 0 && strncmp(start, text, strlen(text)) == 0;
}

/*
 * Where the kernel shares CPU time out by sessions first (sched(7), "The autogroup feature"; a service is a session), a nice value says
 * something only within one, and the session has one of its own. That is set here, if this process leads it: of a shell's, other
 * programs are part. Without it, a worker that has just run for its slice waits for a whole one of anybody else. But what a session gets
 * is for any of its threads: while the workers sleep, the observer, however nice it is, has all of it against a server on its CPU. So
 * this is only for who has asked.
 */
static int raise_group(int nice)
{
	cleanup_close int fd = -1;
	char text[32] = "";
	const char *own;
	int length;

	if (nice >= 0 || getsid(0) != getpid() || !begins_with("/proc/sys/kernel/sched_autogroup_enabled", "1") ||
	    tailor_cpu_group_has_weight("/proc/self/cgroup", "/sys/fs/cgroup"))
		return 0;
	fd = open("/proc/self/autogroup", O_RDWR | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	/* "/autogroup-25 nice 0"; anything else somebody has decided. */
	own = strstr(text, " nice ");
	if (!own || strcmp(own, " nice 0\n") != 0)
		return 0;
	length = snprintf(text, sizeof(text), "%d", nice);
	return write(fd, text, (size_t)length) == length ? nice : 0;
}

int proxy_priority_nice(const struct proxy_run *run, int nice)
{
	int within = nice - run->group_nice;

	return within < NICE_MAX ? within : NICE_MAX;
}

/* --- the workers' ----------------------------------------------------------------------------------- */

/*
 * What workers may take that had to wait for a CPU. Not where a cgroup has been given a part of the CPU's time, which says nothing about a
 * thread with a real-time priority; and who spins uses all of a CPU.
 */
static unsigned int urgent_fifo(const struct tailor_config *config)
{
	if (config->priority_given || config->busy_poll_ns || tailor_cpu_group_has_weight("/proc/self/cgroup", "/sys/fs/cgroup"))
		return 0;
	return URGENT_FIFO;
}

int proxy_priority_raise(struct proxy_run *run)
{
	const struct tailor_config *config = &run->config;
	const struct sched_param fifo = {.sched_priority = (int)config->fifo};
	int ret = 0;

	judge_busy_poll(config);
	run->own_nice = getpriority(PRIO_PROCESS, 0);
	if (config->fifo)
		ret = sched_setscheduler(0, SCHED_FIFO, &fifo);
	else if (config->priority_given || config->nice < run->own_nice)
		ret = setpriority(PRIO_PROCESS, 0, config->nice);
	if (ret != 0 && config->priority_given) {
		proxy_say("priority.%s: %s; start it as root or with CAP_SYS_NICE, or leave the key out", config->fifo ? "fifo" : "nice",
		          strerror(errno));
		return -errno;
	}
	if (!config->fifo) {
		/* Where it cannot be had, everything works the same, and later. */
		(void)tailor_scheduling_fair(TAILOR_SCHEDULING_SLICE_NS);
		run->urgent_fifo = urgent_fifo(config);
		run->keeps_nice = run->urgent_fifo && tailor_scheduling_allow_fifo(run->urgent_fifo) < 0;
		run->group_nice = ret == 0 && config->priority_given ? raise_group(config->nice) : 0;
	}
	return 0;
}

void proxy_priority_restore(const struct proxy_run *run)
{
	const struct sched_param normal = {0};

	if (run->config.fifo)
		(void)sched_setscheduler(0, SCHED_OTHER, &normal);
	else
		(void)tailor_scheduling_fair(0);
	(void)setpriority(PRIO_PROCESS, 0, proxy_priority_nice(run, run->own_nice));
}
