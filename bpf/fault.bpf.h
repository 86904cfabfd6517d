/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Page faults where fexit is refused: told together, or a storm of them would fill the channel. A fault begins at its exception and
 * ends at the change of resident memory that it makes; one that changes none has no end that could be seen.
 *
 * What is not told yet belongs to the thread that runs on this CPU, since it is told when that thread leaves it. So it is kept
 * by CPU, and costs no look-up by thread.
 */
#ifndef TAILOR_BPF_FAULT_H
#define TAILOR_BPF_FAULT_H

#include "emit.bpf.h"

#define FAULTS_APART_NS 20000  /* further apart, they are not told together */
#define FAULTS_LONG_NS 1000000 /* nor for longer */

/* A fault that a thread is or was in. */
struct fault {
	uint64_t ip;
	uint64_t address;
	uint64_t error_code;
};

struct faults {
	uint32_t tid; /* whose they are */
	uint32_t count;
	uint64_t first_ns; /* the first one's start */
	uint64_t last_ns;  /* the last one's end, or its start where no end was seen */
	uint64_t ns;       /* in those that have an end */
	uint64_t lowest;   /* address */
	uint64_t mark_ns;  /* up to when the last one's ns are counted; 0: it is over */
	struct fault last;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct faults);
} faults __weak SEC(".maps");

/*
 * The fault in which a thread lost its CPU, for the case that it does so again in the same one; by thread id. Not a task's storage: making
 * one allocates memory, and before Linux 6.4 by kmalloc(), which may wake kswapd and so take the lock of the very run queue that the
 * scheduler holds around sched_switch.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, uint32_t);
	__type(value, struct fault);
} left_in_fault __weak SEC(".maps");

static __always_inline struct faults *faults_here(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&faults, &zero);
}

static __always_inline void faults_emit(struct faults *faults, struct task_struct *task, uint32_t pid, uint32_t role,
					enum emit_context context)
{
	uint64_t request = request_of(task, role);
	struct emission emission;
	struct tailor_event *event = emit_begin(TAILOR_EVENT_PAGE_FAULTS, context, &emission);

	if (event) {
		event->time_ns = faults->last_ns;
		event->extra = faults->count;
		event->request = request;
		event->pid = pid;
		event->tid = faults->tid;
		event->arg[0] = faults->first_ns;
		event->arg[1] = faults->ns;
		event->arg[2] = faults->lowest;
		emit_end(event, &emission);
	}
	faults->count = 0;
}

RARE int faults_tell_of(struct task_struct *task, uint32_t pid, enum emit_context context)
{
	struct faults *faults = faults_here();

	if (faults)
		faults_emit(faults, task, pid, role_of(pid), context);
	return 0;
}

/*
 * What the running thread of a traced process has not told yet, before it goes on to something that is told. task: as of
 * bpf_get_current_pid_tgid().
 */
static __always_inline void faults_tell(uint64_t task, enum emit_context context)
{
	struct faults *faults = faults_here();

	if (unlikely(faults && faults->count && faults->tid == TAILOR_TASK_TID(task)))
		faults_tell_of(bpf_get_current_task_btf(), TAILOR_TASK_PID(task), context);
}

/* The instruction at which an exception or an interrupt took the task out of user mode; 0: it is in a system call. */
static __always_inline uint64_t interrupted_at(struct task_struct *task)
{
	const struct pt_regs *entry = (const struct pt_regs *)bpf_task_pt_regs(task);

	return (long)entry->orig_ax == -1 ? entry->ip : 0;
}

static __always_inline void emit_sleeping_fault(const struct fault *fault, struct task_struct *task, uint32_t pid, uint32_t role,
						uint64_t time_ns)
{
	uint64_t request = request_of(task, role);
	struct emission emission;
	struct tailor_event *event = emit_begin(TAILOR_EVENT_PAGE_FAULT, EMIT_INTERRUPTS_OFF, &emission);

	if (!event)
		return;
	event->time_ns = time_ns;
	event->extra = 0;
	event->request = request;
	event->pid = pid;
	event->tid = task->pid;
	event->arg[0] = fault->address;
	event->arg[1] = fault->ip;
	event->arg[2] = fault->error_code;
	emit_end(event, &emission);
}

/* Tells what this CPU's faults are of the task that leaves it. */
RARE int faults_left(struct task_struct *task, uint32_t pid, uint32_t role, bool sleeps, uint64_t time_ns)
{
	struct faults *faults = faults_here();
	uint32_t tid = task->pid;
	struct fault last;
	bool in_fault;

	if (!faults || !faults->count || faults->tid != tid)
		return 0;
	in_fault = faults->mark_ns && interrupted_at(task) == faults->last.ip;
	last = faults->last;
	faults->mark_ns = 0;
	/* What of it has passed is not all: it would be told as less than it is. */
	if (in_fault && sleeps)
		faults->count--;
	if (faults->count)
		faults_emit(faults, task, pid, role, EMIT_INTERRUPTS_OFF);
	if (!in_fault)
		return 0;
	bpf_map_update_elem(&left_in_fault, &tid, &last, BPF_ANY);
	if (sleeps)
		emit_sleeping_fault(&last, task, pid, role, time_ns);
	return 0;
}

/* A task that did not come from user mode by a system call goes to sleep once more: in the fault in which it did before? */
RARE int fault_goes_on(struct task_struct *task, uint32_t pid, uint32_t role, uint64_t time_ns)
{
	uint32_t tid = task->pid;
	struct fault *left = bpf_map_lookup_elem(&left_in_fault, &tid);

	if (left && interrupted_at(task) == left->ip)
		emit_sleeping_fault(left, task, pid, role, time_ns);
	return 0;
}

/*
 * For sched_switch, before the SWITCH_OUT of a traced task: tells its faults, and of the one it is in if it is going to sleep. extra: that of
 * the SWITCH_OUT.
 */
static __always_inline void faults_switched_out(struct task_struct *task, uint32_t pid, uint32_t role, uint32_t extra, uint64_t time_ns)
{
	uint32_t state = TAILOR_SWITCH_STATE(extra);
	bool sleeps = state == TAILOR_TASK_UNINTERRUPTIBLE || state == TAILOR_TASK_SLEEPING;
	struct faults *faults = faults_here();

	if (!faults)
		return;
	if (unlikely(faults->count && faults->tid == (uint32_t)task->pid))
		faults_left(task, pid, role, sleeps, time_ns);
	else if (unlikely(sleeps && TAILOR_SWITCH_CALL(extra) == TAILOR_CALL_NONE))
		fault_goes_on(task, pid, role, time_ns);
}

#endif /* TAILOR_BPF_FAULT_H */
