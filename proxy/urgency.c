/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/urgency.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scheduling.h"

/* How often it is seen whether it had to wait, and for how long the priority is then had. */
#define WAIT_LOOK_NS (20 * TAILOR_NS_PER_MS)
#define KEEP_NS (60 * TAILOR_NS_PER_S)
/* Being woken takes so long, also where nobody else is there; so much more is somebody else. */
#define WAKE_NS (50 * TAILOR_NS_PER_US)
#define LATE_NS (200 * TAILOR_NS_PER_US)
/* With the priority: a quarter of a CPU at most, which is seen to so often, and not again for so long after it was more. */
#define QUOTA_NS (5 * TAILOR_NS_PER_MS)
#define PERIOD_NS (20 * TAILOR_NS_PER_MS)
#define QUOTA_LOOK_NS (2 * TAILOR_NS_PER_MS)
#define CALM_NS (1 * TAILOR_NS_PER_S)

static uint64_t cpu_time_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * TAILOR_NS_PER_S + (uint64_t)time.tv_nsec;
}

bool urgency_is_late(uint64_t waited_ns, uint64_t times)
{
	return waited_ns > times * WAKE_NS + LATE_NS;
}

/* For how long the thread has waited for a CPU, and how often it has had one, since the last time: schedstat, see the kernel's sched-stats. */
static bool read_waits(struct urgency *urgency, uint64_t *ret_waited_ns, uint64_t *ret_times)
{
	unsigned long long waited_ns, times;
	char text[80];
	ssize_t length = pread(urgency->schedstat_fd, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	if (sscanf(text, "%*u %llu %llu", &waited_ns, &times) != 2)
		return false;
	*ret_waited_ns = waited_ns - urgency->waited_ns;
	*ret_times = times - urgency->times;
	urgency->waited_ns = waited_ns;
	urgency->times = times;
	return true;
}

static void take(struct worker *worker, uint64_t now_ns)
{
	struct urgency *urgency = &worker->urgency;

	if (tailor_scheduling_fifo(worker->options->urgent_fifo) < 0) {
		urgency->look_ns = UINT64_MAX;
		return;
	}
	urgency->until_ns = now_ns + KEEP_NS;
	urgency->period_ns = now_ns;
	urgency->cpu_ns = cpu_time_ns();
	urgency->look_ns = now_ns + QUOTA_LOOK_NS;
	urgency->has = true;
	__atomic_store_n(&worker->counters.urgent, 1, __ATOMIC_RELAXED);
}

static void give_up(struct worker *worker, uint64_t now_ns)
{
	struct urgency *urgency = &worker->urgency;
	uint64_t waited_ns, times;

	/* From there, everybody may. */
	(void)tailor_scheduling_fair_again(TAILOR_SCHEDULING_SLICE_NS);
	(void)read_waits(urgency, &waited_ns, &times);
	urgency->look_ns = now_ns + WAIT_LOOK_NS;
	urgency->has = false;
	__atomic_store_n(&worker->counters.urgent, 0, __ATOMIC_RELAXED);
}

void urgency_open(struct worker *worker)
{
	struct urgency *urgency = &worker->urgency;
	uint64_t waited_ns, times;

	*urgency = (struct urgency){.look_ns = UINT64_MAX, .schedstat_fd = -1};
	if (worker->options->urgent_fifo == 0)
		return;
	urgency->schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (urgency->schedstat_fd >= 0 && read_waits(urgency, &waited_ns, &times))
		urgency->look_ns = worker->now_ns + WAIT_LOOK_NS;
}

void urgency_close(struct worker *worker)
{
	if (worker->urgency.schedstat_fd >= 0)
		close(worker->urgency.schedstat_fd);
}

/* As long as it has the priority. */
static void look_at_use(struct worker *worker, uint64_t now_ns)
{
	struct urgency *urgency = &worker->urgency;
	uint64_t cpu_ns = cpu_time_ns();
	bool much = cpu_ns - urgency->cpu_ns > QUOTA_NS;

	if (much)
		urgency->calm_ns = now_ns + CALM_NS;
	if (much || now_ns >= urgency->until_ns) {
		give_up(worker, now_ns);
		return;
	}
	if (now_ns - urgency->period_ns >= PERIOD_NS) {
		urgency->period_ns = now_ns;
		urgency->cpu_ns = cpu_ns;
	}
	urgency->look_ns = now_ns + QUOTA_LOOK_NS;
}

void urgency_look(struct worker *worker, uint64_t now_ns)
{
	struct urgency *urgency = &worker->urgency;
	uint64_t waited_ns, times;

	if (urgency->has) {
		look_at_use(worker, now_ns);
		return;
	}
	urgency->look_ns = now_ns + WAIT_LOOK_NS;
	if (!read_waits(urgency, &waited_ns, &times))
		urgency->look_ns = UINT64_MAX;
	else if (urgency_is_late(waited_ns, times) && now_ns >= urgency->calm_ns)
		take(worker, now_ns);
}
