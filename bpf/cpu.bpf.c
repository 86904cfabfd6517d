/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the CPU did meanwhile: when it left its idle state, whether it stood still, how long interrupts had it. */
#include "emit.bpf.h"

#include <bpf/bpf_tracing.h>

#include "compat.bpf.h"
#include "cpu.bpf.h"

#define IDLE_ENDS 0xffffffffu /* PWR_EVENT_EXIT in include/trace/events/power.h */

/* Writes nothing but the CPU's memory, for the SWITCH_IN that follows. */
SEC("tp_btf/cpu_idle")
int BPF_PROG(on_cpu_idle, unsigned int state, unsigned int cpu)
{
	struct cpu_memory *memory = this_cpu();

	if (!memory)
		return 0;
	if (state != IDLE_ENDS)
		memory->idle_state = state + 1;
	else
		memory->idle_end_ns = bpf_ktime_get_ns();
	return 0;
}

/* Set by the loader before load. */
const volatile uint64_t clock_period_ns __weak = 0; /* the clock event's */
const volatile uint64_t stall_min_ns __weak = 0;    /* how late a timer must be */

/*
 * A clock event per CPU sees to it that no CPU is without a timer interrupt for longer than a period, idle or not; a busy CPU
 * has its tick besides. Each timer that expires says that its CPU runs, and one that expires late since when it did not.
 * (The clock event's own program would not do: the kernel passes it over while another one works on a map, and, seen on
 * 6.18, on some CPUs whenever they are idle.) The kernel may hold the clock back while the CPU is idle for seconds: what
 * was before the end of an idle state counts for nothing.
 */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_expire_entry, struct hrtimer *timer)
{
	struct cpu_memory *memory = this_cpu();
	uint64_t now_ns = bpf_ktime_get_ns(), last_ns, due_ns;
	struct tailor_event *event;
	struct emission emission;

	if (!memory)
		return 0;
	last_ns = memory->clock_ns;
	memory->clock_ns = now_ns;
	if (!last_ns || now_ns - last_ns < stall_min_ns)
		return 0;
	due_ns = timer_due_ns(timer);
	if (due_ns < last_ns)
		due_ns = last_ns + clock_period_ns;
	if (memory->idle_end_ns > due_ns)
		due_ns = memory->idle_end_ns;
	if (now_ns < due_ns + stall_min_ns)
		return 0;
	event = emit_begin(TAILOR_EVENT_CPU_STALL, EMIT_TRACEPOINT, &emission);
	if (!event)
		return 0;
	event->time_ns = now_ns;
	event->extra = 0;
	event->request = 0;
	event->pid = 0;
	event->tid = 0;
	event->arg[0] = due_ns;
	event->arg[1] = last_ns;
	event->arg[2] = 0;
	emit_end(event, &emission);
	return 0;
}

/*
 * Interrupts. Only what begins while a traced task has the CPU is timed: all else costs a look-up each. What comes within
 * what is being timed is part of it.
 */
#define INTERRUPT_MIN_NS 20000

static __always_inline void interrupt_begins(uint32_t soft)
{
	struct cpu_memory *memory;

	if (!current_role())
		return;
	memory = this_cpu();
	if (!memory || memory->in_softirq)
		return;
	memory->in_softirq = soft;
	memory->interrupt_begin_ns = bpf_ktime_get_ns();
}

static __always_inline void interrupt_ends(uint32_t soft, uint32_t number)
{
	struct cpu_memory *memory = this_cpu();
	uint64_t task, begin_ns, request;
	struct tailor_event *event;
	struct emission emission;
	uint32_t role;

	if (!memory || !memory->interrupt_begin_ns || memory->in_softirq != soft)
		return;
	begin_ns = memory->interrupt_begin_ns;
	memory->interrupt_begin_ns = 0;
	memory->in_softirq = 0;
	if (bpf_ktime_get_ns() - begin_ns < INTERRUPT_MIN_NS)
		return;
	task = bpf_get_current_pid_tgid();
	role = role_of(TAILOR_TASK_PID(task));
	if (!role)
		return;
	request = request_of(bpf_get_current_task_btf(), role);
	event = emit_begin(TAILOR_EVENT_INTERRUPT, EMIT_TRACEPOINT, &emission);
	if (!event)
		return;
	event->time_ns = bpf_ktime_get_ns();
	event->extra = TAILOR_INTERRUPT(soft, number);
	event->request = request;
	event->pid = TAILOR_TASK_PID(task);
	event->tid = TAILOR_TASK_TID(task);
	event->arg[0] = event->time_ns - begin_ns;
	event->arg[1] = 0;
	event->arg[2] = 0;
	emit_end(event, &emission);
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_handler_entry, int number)
{
	interrupt_begins(0);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_handler_exit, int number)
{
	interrupt_ends(0, (uint32_t)number);
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int vector)
{
	interrupt_begins(1);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(on_softirq_exit, unsigned int vector)
{
	interrupt_ends(1, vector);
	return 0;
}
