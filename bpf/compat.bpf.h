/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Every difference between kernel versions that the programs must know, each with the versions that made it so. */
#ifndef TAILOR_BPF_COMPAT_H
#define TAILOR_BPF_COMPAT_H

#include "kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <tailor/event.h>

/*
 * True when the current task did not ask for what happens now: it only was on the CPU when an interrupt came. The
 * preemption counter would say it, but programs can read it only on kernels with CONFIG_KALLSYMS_ALL and under a name
 * that changed in 6.2 and 6.15. Where the kernel runs says it too, on x86-64:
 * an interrupt of kernel mode, and a softirq at the end of one or of a system call, runs on the CPU's interrupt stack;
 * an interrupt of user mode runs on the task's stack, and the entry code has put -1 where a system call's number would
 * be.
 *
 * Exceptions do the latter too: a wake-up inside a page fault of user mode counts as an interrupt's. That loses a
 * waker, which is better than naming a wrong one. `context` is a tracepoint program's argument: the kernel keeps it on
 * the stack that it runs on.
 */
#define TASK_STACK_BYTES_MAX 32768 /* 16 KiB, 32 KiB with CONFIG_KASAN */

static __always_inline bool in_interrupt(const void *context, struct task_struct *current_task)
{
	struct pt_regs *entry = (struct pt_regs *)bpf_task_pt_regs(current_task);
	uint64_t depth = (uint64_t)entry - (uint64_t)context; /* the entry's registers are at the stack's top */

	return depth >= TASK_STACK_BYTES_MAX || (long)entry->orig_ax == -1;
}

/*
 * sched_switch's fourth argument (since 5.18) is the state prev was in when it called the scheduler. When a pending
 * signal keeps it runnable, kernels before 6.14 set __state back to running but still pass the old state.
 */
static __always_inline unsigned int switched_out_state(const struct task_struct *prev, unsigned int prev_state)
{
	return prev->__state ? prev_state : 0;
}

/*
 * What the current task entered the kernel for, as in SWITCH_OUT: the registers at its stack's top say it, see in_interrupt().
 * Threads that the kernel runs for a process have there what their creator had. The numbers of 32-bit code are of another
 * table.
 */
#define USER32_CS 0x23

static __always_inline uint16_t current_call(struct task_struct *task)
{
	struct pt_regs *entry;
	long number;

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return 0;
	entry = (struct pt_regs *)bpf_task_pt_regs(task);
	number = (long)entry->orig_ax;
	if (number == -1)
		return TAILOR_CALL_NONE;
	return (uint64_t)number < TAILOR_CALL_NONE - 1 && (uint16_t)entry->cs != USER32_CS ? (uint16_t)(number + 1) : 0;
}

/*
 * Has a runnable task that is losing its CPU to wait until its cgroup gets CPU quota again? Since 6.18 a task is taken off
 * its queue one by one, when it is about to return to user mode; before, the group's queue on this CPU went as a whole, and
 * with it whoever stood there, in the kernel or not.
 */
static __always_inline bool must_wait_for_quota(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (!bpf_core_field_exists(((struct cfs_rq *)0)->throttle_count) || task->prio < MAX_RT_PRIO)
		return false;
	return task->se.cfs_rq->throttle_count > 0;
}

/*
 * The same of a task that is being woken, as far as it is known yet: another CPU may still be chosen for it, where the
 * group may have some quota left. Since 6.18 no task waits before it has run: it gets its CPU, and is stopped at its
 * return to user mode.
 */
static __always_inline bool wakes_without_quota(const struct task_struct *task)
{
	return !bpf_core_field_exists(task->throttled) && must_wait_for_quota(task);
}

/*
 * Whether a task that is being woken must get a CPU first, as it sleeps or is just going to sleep: then it is off its queue, which it leaves
 * before its CPU. A sleeping one may still be in it since 6.12. Who has only said that it will sleep simply goes on.
 */
static __always_inline bool must_get_a_cpu(const struct task_struct *woken)
{
	return !woken->on_cpu || !woken->on_rq || (bpf_core_field_exists(woken->se.sched_delayed) && woken->se.sched_delayed);
}

/*
 * When an hrtimer of the kernel's own (the scheduler's tick, a clock event) was due, 0: cannot be said. Others, those of
 * sleeping tasks, may be set for a time that has passed already.
 */
#define CLOCK_MONOTONIC_ID 1

static __always_inline uint64_t timer_due_ns(const struct hrtimer *timer)
{
	if (!bpf_core_field_exists(timer->node.expires) || !bpf_core_field_exists(timer->is_hard) ||
	    !bpf_core_field_exists(timer->base->clockid))
		return 0;
	return timer->is_hard && timer->base->clockid == CLOCK_MONOTONIC_ID ? (uint64_t)timer->node.expires : 0;
}

/*
 * Whether another task's programs may come between one tracepoint's program's instructions: since 7.0 a tracepoint keeps who runs there on its
 * CPU, but leaves preemption on. The loader looks at the kernel's name. (Those of sched_switch and sched_waking run under locks that keep
 * interrupts off, on any.)
 */
const volatile bool tracepoints_preemptible __weak = false;

/* Whether tcp_retransmit_skb has a third argument, the error of an attempt that failed (since 6.16; before, only
 * successes were traced). The loader counts the arguments in the kernel's BTF. */
const volatile bool retransmit_has_error __weak = false;

/* IPv6 may be configured out, and its fields with it. */
#define has_ipv6(sk) bpf_core_field_exists((sk)->__sk_common.skc_v6_rcv_saddr)

#endif /* TAILOR_BPF_COMPAT_H */
