/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/urgency.h"

#include <time.h>

#include "base/clock.h"
#include "base/scheduling.h"

/* For so long it may use all of its CPU before that is noticed. */
#define LOOK_NS (20 * TAILOR_NS_PER_MS)
/* More than one in so many of the CPU's time is much. */
#define MUCH 4
/* It is no more once it has been less for so long. */
#define CALM_NS (1 * TAILOR_NS_PER_S)

/* In ns, of this thread. */
static uint64_t cpu_time_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * TAILOR_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void take(struct worker *worker)
{
	struct urgency *urgency = &worker->urgency;

	urgency->has = tailor_scheduling_fifo(worker->options->urgent_fifo) == 0;
	if (!urgency->has)
		urgency->look_ns = UINT64_MAX;
	__atomic_store_n(&worker->counters.urgent, urgency->has, __ATOMIC_RELAXED);
}

static void give_up(struct worker *worker)
{
	/* From the lowest of them everybody may. */
	worker->urgency.has = tailor_scheduling_fair(TAILOR_SCHEDULING_SLICE_NS) < 0;
	__atomic_store_n(&worker->counters.urgent, worker->urgency.has, __ATOMIC_RELAXED);
}

void urgency_open(struct worker *worker)
{
	worker->urgency = (struct urgency){.look_ns = UINT64_MAX};
	if (worker->options->urgent_fifo == 0)
		return;
	worker->urgency.looked_ns = worker->now_ns;
	worker->urgency.cpu_ns = cpu_time_ns();
	worker->urgency.look_ns = worker->now_ns + LOOK_NS;
	take(worker);
}

void urgency_look(struct worker *worker)
{
	struct urgency *urgency = &worker->urgency;
	uint64_t cpu_ns = cpu_time_ns();
	bool much = (cpu_ns - urgency->cpu_ns) * MUCH > worker->now_ns - urgency->looked_ns;

	urgency->cpu_ns = cpu_ns;
	urgency->looked_ns = worker->now_ns;
	urgency->look_ns = worker->now_ns + LOOK_NS;
	if (much)
		urgency->calm_ns = worker->now_ns + CALM_NS;
	if (much && urgency->has)
		give_up(worker);
	else if (!urgency->has && worker->now_ns >= urgency->calm_ns)
		take(worker);
}
