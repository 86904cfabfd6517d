/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scheduling.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in linux/sched.h and linux/sched/types.h, which glibc has not. */
#define RESET_ON_FORK UINT64_C(1)

struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int schedule(const struct scheduling *wanted)
{
	return syscall(SYS_sched_setattr, 0, wanted, 0) == 0 ? 0 : -errno;
}

static int schedule_fair(uint64_t slice_ns, uint64_t flags)
{
	return schedule(&(struct scheduling){.size = sizeof(struct scheduling),
	                                     .policy = SCHED_OTHER,
	                                     .flags = flags,
	                                     .nice = getpriority(PRIO_PROCESS, 0),
	                                     .runtime = slice_ns});
}

int tailor_scheduling_fair(uint64_t slice_ns)
{
	return schedule_fair(slice_ns, 0);
}

int tailor_scheduling_fair_again(uint64_t slice_ns)
{
	return schedule_fair(slice_ns, RESET_ON_FORK);
}

int tailor_scheduling_fifo(unsigned int priority)
{
	return schedule(&(struct scheduling){
	        .size = sizeof(struct scheduling), .policy = SCHED_FIFO, .flags = RESET_ON_FORK, .priority = priority});
}

int tailor_scheduling_allow_fifo(unsigned int priority)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_RTPRIO, &limit) != 0)
		return -errno;
	if (limit.rlim_cur >= priority)
		return 0;
	limit.rlim_cur = priority;
	if (limit.rlim_max < priority)
		limit.rlim_max = priority;
	return setrlimit(RLIMIT_RTPRIO, &limit) == 0 ? 0 : -errno;
}
