/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Who woke a traced thread, when did it get a CPU, who had it, who pushed it out, and in which state it left. */
#include "emit.bpf.h"

#include <bpf/bpf_tracing.h>

#include "compat.bpf.h"
#include "cpu.bpf.h"
#include "fault.bpf.h"
#include "late.bpf.h"
#include "stop.bpf.h"

/* include/linux/sched.h */
#define TASK_INTERRUPTIBLE_BIT 0x1
#define TASK_UNINTERRUPTIBLE_BIT 0x2
#define TASK_STOPPED_OR_TRACED_BITS 0xc
#define TASK_EXIT_BITS 0xb0 /* EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD */

static __always_inline uint32_t fold_state(unsigned int state)
{
	if (!state)
		return TAILOR_TASK_RUNNABLE;
	if (state & TASK_INTERRUPTIBLE_BIT)
		return TAILOR_TASK_SLEEPING;
	if (state & TASK_UNINTERRUPTIBLE_BIT)
		return TAILOR_TASK_UNINTERRUPTIBLE;
	if (state & TASK_STOPPED_OR_TRACED_BITS)
		return TAILOR_TASK_STOPPED;
	if (state & TASK_EXIT_BITS)
		return TAILOR_TASK_DEAD;
	return TAILOR_TASK_OTHER;
}

/* For sched_waking, which comes before the task's state is changed. */
static __always_inline uint32_t describe_waking(const struct task_struct *woken)
{
	return (wakes_without_quota(woken) ? TAILOR_WAKEUP_THROTTLED : 0) |
	       (fold_state(woken->__state) == TAILOR_TASK_STOPPED ? TAILOR_WAKEUP_STOPPED : 0);
}

/* Fills arg[0..2] with another task and its name. */
static __always_inline void describe_other(struct tailor_event *event, const struct task_struct *task)
{
	event->arg[0] = TAILOR_TASK(task->tgid, task->pid);
	/* Words of the task itself: its type is known to the verifier, and a helper's call costs more than the copy. */
	event->arg[1] = *(const uint64_t *)&task->comm[0];
	event->arg[2] = *(const uint64_t *)&task->comm[8];
}

static __always_inline void emit_wakeup(const void *context, struct task_struct *woken, uint32_t tgid, uint64_t time_ns)
{
	struct task_struct *running = bpf_get_current_task_btf(), *waker = in_interrupt(context, running) ? NULL : running;
	/* The woken task's lock keeps interrupts off. It is not taken for one that has not left this CPU yet. */
	enum emit_context emitting = woken == running ? EMIT_TRACEPOINT : EMIT_INTERRUPTS_OFF;
	uint64_t request = waker ? request_of(waker, role_of(waker->tgid)) : 0;
	struct emission emission;
	struct tailor_event *event = emit_begin(TAILOR_EVENT_WAKEUP, emitting, &emission);

	if (!event)
		return;
	event->time_ns = emitting == EMIT_INTERRUPTS_OFF ? time_ns : bpf_ktime_get_ns();
	event->extra = describe_waking(woken);
	event->request = request;
	event->pid = tgid;
	event->tid = woken->pid;
	if (waker) {
		describe_other(event, waker);
	} else {
		event->arg[0] = 0;
		event->arg[1] = 0;
		event->arg[2] = 0;
	}
	emit_end(event, &emission);
}

/* Runs in the waker's context, unlike sched_wakeup, which may run where the woken task will. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_sched_waking, struct task_struct *woken)
{
	uint32_t tgid = woken->tgid, role = role_of(tgid);
	uint64_t time_ns;

	if (!role)
		return 0;
	time_ns = bpf_ktime_get_ns();
	late_woken(woken, role, time_ns);
	stop_woken(tgid, role, fold_state(woken->__state));
	emit_wakeup(ctx, woken, tgid, time_ns);
	return 0;
}

/* A new thread's first wake-up has a tracepoint of its own; it runs in the parent's context. */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_sched_wakeup_new, struct task_struct *woken)
{
	uint32_t tgid = woken->tgid;

	if (role_of(tgid))
		emit_wakeup(ctx, woken, tgid, bpf_ktime_get_ns());
	return 0;
}

/* In which state a task of a traced process, the current one, loses its CPU, and what it was in the kernel for. */
static __always_inline uint32_t describe_leaving(struct task_struct *prev, bool preempt, unsigned int prev_state)
{
	uint32_t state = preempt ? TAILOR_TASK_RUNNABLE : fold_state(switched_out_state(prev, prev_state));

	if (state == TAILOR_TASK_RUNNABLE && must_wait_for_quota(prev))
		state = TAILOR_TASK_THROTTLED;
	return TAILOR_SWITCH(state, current_call(prev));
}

/* Fills arg[0..2] with whoever had the CPU, or for how long nobody had it. */
static __always_inline void describe_before(struct tailor_event *event, const struct task_struct *task)
{
	const struct cpu_memory *memory;

	describe_other(event, task);
	if (task->pid)
		return;
	memory = this_cpu();
	event->arg[1] = memory ? memory->idle_end_ns : 0;
	event->arg[2] = memory && memory->idle_end_ns ? memory->idle_state : 0;
}

static __always_inline void emit_switch(enum tailor_event_kind kind, uint64_t time_ns, struct task_struct *task,
					uint32_t tgid, uint32_t role, const struct task_struct *other, uint32_t extra)
{
	uint64_t request = request_of(task, role);
	struct emission emission;
	struct tailor_event *event = emit_begin(kind, EMIT_INTERRUPTS_OFF, &emission);

	if (!event)
		return;
	event->time_ns = time_ns; /* interrupts are off */
	event->extra = extra;
	event->request = request;
	event->pid = tgid;
	event->tid = task->pid;
	if (kind == TAILOR_EVENT_SWITCH_IN)
		describe_before(event, other);
	else
		describe_other(event, other);
	emit_end(event, &emission);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	uint32_t prev_tgid = prev->tgid, next_tgid = next->tgid;
	uint32_t out = role_of(prev_tgid), in = role_of(next_tgid);
	uint64_t time_ns;
	uint32_t extra;

	if (!out && !in)
		return 0;
	time_ns = bpf_ktime_get_ns();
	if (out) {
		extra = describe_leaving(prev, preempt, prev_state);
		faults_switched_out(prev, prev_tgid, out, extra, time_ns);
		late_switched_out(prev, out, TAILOR_SWITCH_STATE(extra), time_ns);
		stop_switched_out(prev_tgid, out, TAILOR_SWITCH_STATE(extra), time_ns);
		emit_switch(TAILOR_EVENT_SWITCH_OUT, time_ns, prev, prev_tgid, out, next, extra);
	}
	if (in) {
		late_switched_in(next, in, time_ns);
		emit_switch(TAILOR_EVENT_SWITCH_IN, time_ns, next, next_tgid, in, prev, 0);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
