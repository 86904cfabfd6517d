/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which memory was slow: page faults of traced tasks, and where fexit is allowed, how long each took. */
#include "fault.bpf.h"

#include <bpf/bpf_tracing.h>

/* Set by the loader: the kernel takes fexit programs. */
const volatile bool faults_have_ends = false;

/* Begins an event of the running task. */
static __always_inline struct tailor_event *begin_of_current(enum tailor_event_kind kind, uint64_t task, uint64_t request,
							     enum emit_context context, struct emission *ret_emission)
{
	struct tailor_event *event = emit_begin(kind, context, ret_emission);

	if (!event)
		return NULL;
	event->time_ns = bpf_ktime_get_ns();
	event->request = request;
	event->pid = TAILOR_TASK_PID(task);
	event->tid = TAILOR_TASK_TID(task);
	return event;
}

/* Adds a fault that begins now to what is to be told of the thread. */
static __always_inline void begin_fault(uint64_t task, uint32_t role, uint64_t address, uint64_t ip, uint64_t error_code)
{
	struct faults *faults = faults_here();
	uint64_t now_ns = bpf_ktime_get_ns();

	if (!faults)
		return;
	if (faults->tid != TAILOR_TASK_TID(task))
		faults->count = 0; /* of a thread that is not traced any more */
	if (faults->count && (now_ns - faults->last_ns > FAULTS_APART_NS || now_ns - faults->first_ns > FAULTS_LONG_NS))
		faults_emit(faults, bpf_get_current_task_btf(), TAILOR_TASK_PID(task), role, EMIT_TRACEPOINT);
	if (!faults->count) {
		faults->tid = TAILOR_TASK_TID(task);
		faults->first_ns = now_ns;
		faults->ns = 0;
		faults->lowest = address;
	}
	faults->count++;
	faults->last_ns = now_ns;
	faults->mark_ns = now_ns;
	if (address < faults->lowest)
		faults->lowest = address;
	faults->last.address = address;
	faults->last.ip = ip;
	faults->last.error_code = error_code;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	uint64_t task = bpf_get_current_pid_tgid(), request;
	uint32_t role = role_of(TAILOR_TASK_PID(task));
	struct tailor_event *event;
	struct emission emission;

	if (!role)
		return 0;
	if (!faults_have_ends) {
		begin_fault(task, role, address, regs->ip, error_code);
		return 0;
	}
	request = request_of(bpf_get_current_task_btf(), role);
	event = begin_of_current(TAILOR_EVENT_PAGE_FAULT, task, request, EMIT_TRACEPOINT, &emission);
	if (!event)
		return 0;
	event->extra = 0;
	event->arg[0] = address;
	event->arg[1] = regs->ip;
	event->arg[2] = error_code;
	emit_end(event, &emission);
	return 0;
}

/* A change of the resident memory of a process, most often at the end of a fault, as soon as the page is there. Some faults make two. */
SEC("tp_btf/rss_stat")
int BPF_PROG(on_rss_stat, struct mm_struct *mm)
{
	struct faults *faults = faults_here();
	struct task_struct *task;
	uint64_t now_ns;

	if (!faults || !faults->mark_ns)
		return 0;
	task = bpf_get_current_task_btf();
	if (faults->tid != (uint32_t)task->pid || mm != task->mm || interrupted_at(task) != faults->last.ip)
		return 0;
	now_ns = bpf_ktime_get_ns();
	faults->ns += now_ns - faults->mark_ns;
	faults->mark_ns = now_ns;
	faults->last_ns = now_ns;
	return 0;
}

/* When the fault that a task is in began. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, uint64_t);
} fault_begin SEC(".maps");

SEC("fentry/handle_mm_fault")
int BPF_PROG(on_fault_begin, struct vm_area_struct *area, unsigned long address)
{
	uint64_t *begin_ns;

	if (!current_role())
		return 0;
	begin_ns = bpf_task_storage_get(&fault_begin, bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (begin_ns)
		*begin_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(on_fault_end, struct vm_area_struct *area, unsigned long address, unsigned int flags, struct pt_regs *regs,
             unsigned int result)
{
	uint64_t task = bpf_get_current_pid_tgid(), request;
	uint32_t role = role_of(TAILOR_TASK_PID(task));
	struct tailor_event *event;
	struct emission emission;
	uint64_t *begin_ns;

	if (!role)
		return 0;
	begin_ns = bpf_task_storage_get(&fault_begin, bpf_get_current_task_btf(), NULL, 0);
	if (!begin_ns || !*begin_ns)
		return 0;
	request = request_of(bpf_get_current_task_btf(), role);
	event = begin_of_current(TAILOR_EVENT_PAGE_FAULT_END, task, request, EMIT_PREEMPTIBLE, &emission);
	if (event) {
		event->extra = result & VM_FAULT_MAJOR ? 1 : 0;
		event->arg[0] = address;
		event->arg[1] = event->time_ns - *begin_ns;
		event->arg[2] = 0;
		emit_end(event, &emission);
	}
	*begin_ns = 0;
	return 0;
}
