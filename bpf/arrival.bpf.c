/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What came for a worker of the proxy that is kept from running, and so will see it late. */
#include "late.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

/* Operations of io_uring that wait at one socket and are looked at. */
#define WAITERS_MAX 4
#define WAITER_FLAGS 3 /* of io_uring, in the lowest bits of wait_queue_entry.private */

/* The task that an operation of io_uring is for; 0 or anything else where the address is of something else. */
static __always_inline uint64_t task_of_operation(const struct io_kiocb *operation)
{
	if (bpf_core_field_exists(operation->tctx)) /* since 6.13 */
		return (uint64_t)BPF_CORE_READ(operation, tctx, task);
	return (uint64_t)BPF_CORE_READ((const struct io_kiocb___before_6_13 *)operation, task);
}

/*
 * Whether who waits at the socket is kept from running, by its own queue of waiters: a worker waits with an operation of io_uring. What
 * waits otherwise is something else behind that address, but then what is found there is not the task of a thread that is late.
 */
static __always_inline bool waits_for_late(const struct sock *sk, uint64_t now_ns)
{
	const struct list_head *head = &sk->sk_wq->wait.head, *place = head;

	for (int i = 0; i < WAITERS_MAX; i++) {
		const struct wait_queue_entry *entry;
		uint64_t task;
		uint32_t slot;

		place = BPF_CORE_READ(place, next);
		if (!place || place == head)
			return false;
		entry = (const void *)((const char *)place - bpf_core_field_offset(struct wait_queue_entry, entry));
		task = task_of_operation((const void *)((uint64_t)BPF_CORE_READ(entry, private) & ~(uint64_t)WAITER_FLAGS));
		slot = LATE_ENTRY(BPF_CORE_READ((const struct task_struct *)task, pid));
		if (task && late_threads[slot].task == task && is_late(slot, now_ns))
			return true;
	}
	return false;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(on_sk_data_ready, struct sock *sk)
{
	struct tailor_event *event;
	struct emission emission;
	uint64_t first_ns = late_first(), now_ns;
	struct tcp_sock *tcp;

	if (!first_ns || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (now_ns - first_ns < TAILOR_LATE_NS || !waits_for_late(sk, now_ns))
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return 0;
	event = emit_begin(TAILOR_EVENT_ARRIVAL, EMIT_TRACEPOINT, &emission);
	if (!event)
		return 0;
	event->time_ns = bpf_ktime_get_ns();
	event->extra = TAILOR_PORTS(sk->__sk_common.skc_num, bpf_ntohs(sk->__sk_common.skc_dport));
	event->request = 0;
	event->pid = 0;
	event->tid = 0;
	event->arg[0] = tcp->rcv_nxt;
	event->arg[1] = 0;
	event->arg[2] = 0;
	emit_end(event, &emission);
	return 0;
}
