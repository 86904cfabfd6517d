/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which threads of a traced proxy are kept from running, and since when: they were woken, pushed off their CPU or stopped, and have not
 * had one since. Shared by the scheduler's programs, which keep it, and the sockets', which ask.
 */
#ifndef TAILOR_BPF_LATE_H
#define TAILOR_BPF_LATE_H

#include "compat.bpf.h"
#include "emit.bpf.h"

#include <tailor/late.h>

/* What a thread finds when it runs again; mapped by the proxy. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TAILOR_LATE_THREADS);
	__type(key, uint32_t);
	__type(value, struct tailor_late);
} lates __weak SEC(".maps");

/* By thread id modulo the size. Of two threads that share an entry the last one has it, and of the other nothing is known. */
#define LATE_THREADS TAILOR_LATE_THREADS
#define LATE_ENTRY(tid) TAILOR_LATE_ENTRY(tid)
struct {
	uint64_t task;     /* its task_struct's address: compared, never followed */
	uint64_t since_ns; /* 0: it is not kept from running */
	uint64_t padding[6]; /* it is written at each of its wake-ups, on another CPU than the next one's */
} late_threads[LATE_THREADS] __weak __attribute__((aligned(64))) = {};

/* Which entries have ever been used, in a line that is hardly ever written: who only asks whether anybody is late looks at those of the
 * first few workers. */
#define LATE_FEW 4
struct {
	uint64_t used; /* by entry, a bit each */
	uint32_t count;
	uint32_t few[LATE_FEW]; /* entries */
} late_workers __weak __attribute__((aligned(64))) = {};

/* Only workers have rings. The observer, which is nice, may wait for a CPU all the time: nobody waits for it. */
static __always_inline bool is_worker(const struct task_struct *task)
{
	return task->io_uring;
}

RARE int late_introduce(uint32_t entry)
{
	uint64_t bit = UINT64_C(1) << entry;
	uint32_t place;

	if (__sync_fetch_and_or(&late_workers.used, bit) & bit)
		return 0;
	place = __sync_fetch_and_add(&late_workers.count, 1);
	if (place < LATE_FEW)
		late_workers.few[place] = entry;
	return 0;
}

/* The task is to run from now on, or is stopped, and does not run. */
static __always_inline void late_begins(const struct task_struct *task, uint64_t time_ns)
{
	uint32_t entry = LATE_ENTRY(task->pid);

	if (late_threads[entry].task == (uint64_t)task && late_threads[entry].since_ns)
		return;
	late_threads[entry].task = (uint64_t)task;
	late_threads[entry].since_ns = time_ns;
	if (unlikely(!(late_workers.used >> entry & 1)))
		late_introduce(entry);
}

/*
 * What the thread reads when it goes on. If it has had a CPU for moments only since the last time, it may still have to read what came
 * before that.
 */
RARE int late_note(uint32_t tid, uint64_t since_ns, uint64_t time_ns)
{
	uint32_t entry = LATE_ENTRY(tid);
	struct tailor_late *late = bpf_map_lookup_elem(&lates, &entry);

	if (!late)
		return 0;
	if (late->tid != tid || since_ns > late->until_ns + TAILOR_LATE_NS)
		late->from_ns = since_ns;
	late->tid = tid;
	late->until_ns = time_ns;
	return 0;
}

/* It has a CPU. */
static __always_inline void late_ends(const struct task_struct *task, uint64_t time_ns)
{
	uint32_t entry = LATE_ENTRY(task->pid);
	uint64_t since_ns = late_threads[entry].since_ns;

	if (!since_ns || late_threads[entry].task != (uint64_t)task)
		return;
	late_threads[entry].since_ns = 0;
	if (unlikely(time_ns > since_ns && time_ns - since_ns >= TAILOR_LATE_NS))
		late_note(task->pid, since_ns, time_ns);
}

/* For sched_waking. */
static __always_inline void late_woken(const struct task_struct *task, uint32_t role, uint64_t time_ns)
{
	if (role == ROLE_PROXY && is_worker(task) && must_get_a_cpu(task))
		late_begins(task, time_ns);
}

/* For sched_switch. */
static __always_inline void late_switched_out(const struct task_struct *task, uint32_t role, enum tailor_task_state state, uint64_t time_ns)
{
	if (role == ROLE_PROXY && (state == TAILOR_TASK_RUNNABLE || state == TAILOR_TASK_STOPPED || state == TAILOR_TASK_THROTTLED) &&
	    is_worker(task))
		late_begins(task, time_ns);
}

static __always_inline void late_switched_in(const struct task_struct *task, uint32_t role, uint64_t time_ns)
{
	if (role == ROLE_PROXY)
		late_ends(task, time_ns);
}

/*
 * For what the running task of a proxy does: then it has a CPU, even if nobody saw how it got it. (A kernel was seen whose tracepoint says
 * nothing of some switches, those away from the threads of PID 1.)
 */
static __always_inline void late_is_over(uint32_t tid)
{
	if (late_threads[LATE_ENTRY(tid)].since_ns)
		late_ends(bpf_get_current_task_btf(), bpf_ktime_get_ns());
}

static __always_inline uint64_t late_since(uint32_t entry)
{
	return *(volatile uint64_t *)&late_threads[entry & (LATE_THREADS - 1)].since_ns;
}

static __always_inline bool is_late(uint32_t entry, uint64_t now_ns)
{
	uint64_t since_ns = late_since(entry);

	return since_ns && now_ns > since_ns && now_ns - since_ns >= TAILOR_LATE_NS;
}

/* Since when the one is kept from running that has been for longest, 0: nobody is; 1: there are too many workers to ask each. */
static __always_inline uint64_t late_first(void)
{
	uint32_t count = *(volatile uint32_t *)&late_workers.count;
	uint64_t first_ns = 0;

	if (count > LATE_FEW)
		return 1;
	for (uint32_t i = 0; i < LATE_FEW && i < count; i++) {
		uint64_t since_ns = late_since(late_workers.few[i]);

		if (since_ns && (!first_ns || since_ns < first_ns))
			first_ns = since_ns;
	}
	return first_ns;
}

#endif /* TAILOR_BPF_LATE_H */
