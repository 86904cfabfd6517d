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
uint64_t late_task[LATE_THREADS] __weak = {}; /* its task_struct's address: compared, never followed */
uint64_t late_since_ns[LATE_THREADS] __weak = {};
uint64_t late_mask __weak = 0; /* the entries that are in use: mostly none, and then nothing else is looked at */
uint64_t late_first_ns __weak = 0; /* since when any is: nobody is late who could not be by that */

/* Only workers have rings. The observer, which is nice, may wait for a CPU all the time: nobody waits for it. */
static __always_inline bool is_worker(const struct task_struct *task)
{
	return task->io_uring;
}

/* The task is to run from now on, or is stopped, and does not run. */
static __always_inline void late_begins(const struct task_struct *task, uint64_t time_ns)
{
	uint32_t entry = LATE_ENTRY(task->pid);

	if (late_task[entry] == (uint64_t)task && late_since_ns[entry])
		return;
	late_task[entry] = (uint64_t)task;
	late_since_ns[entry] = time_ns;
	if (!__sync_fetch_and_or(&late_mask, UINT64_C(1) << entry))
		late_first_ns = time_ns;
}

/*
 * What the thread reads when it goes on. If it has had a CPU for moments only since the last time, it may still have to read what came
 * before that.
 */
static __always_inline void late_note(const struct task_struct *task, uint64_t since_ns, uint64_t time_ns)
{
	uint32_t entry = LATE_ENTRY(task->pid);
	struct tailor_late *late = bpf_map_lookup_elem(&lates, &entry);

	if (!late)
		return;
	if (late->tid != (uint32_t)task->pid || since_ns > late->until_ns + TAILOR_LATE_NS)
		late->from_ns = since_ns;
	late->tid = task->pid;
	late->until_ns = time_ns;
}

/* It has a CPU. */
static __always_inline void late_ends(const struct task_struct *task, uint64_t time_ns)
{
	uint32_t entry = LATE_ENTRY(task->pid);
	uint64_t since_ns = late_since_ns[entry];

	if (late_task[entry] != (uint64_t)task)
		return;
	late_since_ns[entry] = 0;
	__sync_fetch_and_and(&late_mask, ~(UINT64_C(1) << entry));
	if (since_ns && time_ns > since_ns && time_ns - since_ns >= TAILOR_LATE_NS)
		late_note(task, since_ns, time_ns);
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
	if (role == ROLE_PROXY && is_worker(task) && (state == TAILOR_TASK_RUNNABLE || state == TAILOR_TASK_STOPPED || state == TAILOR_TASK_THROTTLED))
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
static __always_inline void late_is_over(void)
{
	const struct task_struct *task;

	if (!*(volatile uint64_t *)&late_mask)
		return;
	task = bpf_get_current_task_btf();
	if (late_since_ns[LATE_ENTRY(task->pid)])
		late_ends(task, bpf_ktime_get_ns());
}

static __always_inline bool is_late(uint32_t entry, uint64_t now_ns)
{
	uint64_t since_ns = *(volatile uint64_t *)&late_since_ns[entry];

	return since_ns && now_ns > since_ns && now_ns - since_ns >= TAILOR_LATE_NS;
}

/* Whether any of them has been kept from running for TAILOR_LATE_NS. */
static __always_inline bool is_any_late(uint64_t now_ns)
{
	uint64_t mask = *(volatile uint64_t *)&late_mask;

	if (now_ns - *(volatile uint64_t *)&late_first_ns < TAILOR_LATE_NS)
		return false;
	for (uint32_t i = 0; i < LATE_THREADS && mask; i++, mask >>= 1) {
		if (mask & 1 && is_late(i, now_ns))
			return true;
	}
	return false;
}

#endif /* TAILOR_BPF_LATE_H */
