/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scheduling.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in linux/sched/types.h, which glibc has not. */
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

int tailor_scheduling_fair(uint64_t slice_ns)
{
	return schedule(&(struct scheduling){
	        .size = sizeof(struct scheduling), .policy = SCHED_OTHER, .nice = getpriority(PRIO_PROCESS, 0), .runtime = slice_ns});
}

int tailor_scheduling_fifo(unsigned int priority)
{
	return schedule(&(struct scheduling){.size = sizeof(struct scheduling), .policy = SCHED_FIFO, .priority = priority});
}
