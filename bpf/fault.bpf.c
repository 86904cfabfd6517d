/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which memory was slow: page faults of traced tasks, and where fexit is allowed, how long each took. */
#include "emit.bpf.h"

#include <bpf/bpf_tracing.h>

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	uint64_t task = bpf_get_current_pid_tgid();
	struct tailor_event event = {.kind = TAILOR_EVENT_PAGE_FAULT};

	if (!role_of(TAILOR_TASK_PID(task)))
		return 0;
	event.time_ns = bpf_ktime_get_ns();
	event.pid = TAILOR_TASK_PID(task);
	event.tid = TAILOR_TASK_TID(task);
	event.request = request_of(bpf_get_current_task_btf());
	event.arg[0] = address;
	event.arg[1] = regs->ip;
	event.arg[2] = error_code;
	emit(&event);
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

	if (!role_of(TAILOR_TASK_PID(bpf_get_current_pid_tgid())))
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
	uint64_t task = bpf_get_current_pid_tgid();
	struct tailor_event event = {.kind = TAILOR_EVENT_PAGE_FAULT_END};
	uint64_t *begin_ns;

	if (!role_of(TAILOR_TASK_PID(task)))
		return 0;
	begin_ns = bpf_task_storage_get(&fault_begin, bpf_get_current_task_btf(), NULL, 0);
	if (!begin_ns || !*begin_ns)
		return 0;
	event.time_ns = bpf_ktime_get_ns();
	event.pid = TAILOR_TASK_PID(task);
	event.tid = TAILOR_TASK_TID(task);
	event.request = request_of(bpf_get_current_task_btf());
	event.extra = result & VM_FAULT_MAJOR ? 1 : 0;
	event.arg[0] = address;
	event.arg[1] = event.time_ns - *begin_ns;
	*begin_ns = 0;
	emit(&event);
	return 0;
}
