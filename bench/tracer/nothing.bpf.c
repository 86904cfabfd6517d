/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Programs that do nothing at the tracepoints that Tailor is at: what the kernel's statistics say of these, they say of any. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NOTHING(tracepoint)                                                                        \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int nothing_##tracepoint(void *context)                                                    \
	{                                                                                          \
		return 0;                                                                          \
	}

NOTHING(sched_switch)
NOTHING(sched_waking)
NOTHING(sched_wakeup_new)
NOTHING(sock_recv_length)
NOTHING(sock_send_length)
NOTHING(net_dev_queue)
NOTHING(tcp_retransmit_skb)
NOTHING(page_fault_user)
NOTHING(rss_stat)
NOTHING(sk_data_ready)
NOTHING(cpu_idle)
NOTHING(hrtimer_expire_entry)

char LICENSE[] SEC("license") = "GPL";
