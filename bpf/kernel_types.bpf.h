/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The few kernel types the programs look into, with only the fields they read. Names must be the
 * kernel's: the loader finds each field by type and name in the running kernel's BTF (CO-RE), so order,
 * offsets and anonymous unions do not matter here. No generated vmlinux.h: the build then needs
 * neither BTF nor the headers of any particular kernel.
 */
#ifndef TAILOR_BPF_KERNEL_TYPES_H
#define TAILOR_BPF_KERNEL_TYPES_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#define TASK_COMM_BYTES 16
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define MSG_OOB 0x1
#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#define VM_FAULT_MAJOR 0x4
#define TCP_NAGLE_CORK 2
#define SK_PACING_NEEDED 1
/* Of task_struct.flags: threads that never were in user mode; those of io_uring and vhost belong to a process all the same. */
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define PF_KTHREAD 0x200000
#define MAX_RT_PRIO 100 /* task_struct.prio below it: not of the fair class */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct;
struct io_uring_task;

struct cfs_rq {
	int throttle_count; /* how many of its group and those above it are out of CPU quota, on this CPU */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* the queue that the task is in, or was in last */
	unsigned char sched_delayed; /* since 6.12: it sleeps, and is still in that queue */
};

struct task_struct {
	struct mm_struct *mm;
	struct io_uring_task *io_uring; /* not NULL once it has used a ring */
	unsigned int __state;
	unsigned int flags;
	int prio;
	int pid;  /* the thread, in the initial pid namespace */
	int tgid; /* the process */
	int on_cpu;
	int on_rq;
	char comm[TASK_COMM_BYTES];
	bool throttled; /* since 6.18: off its queue until its group gets quota again */
	struct sched_entity se;
};

struct pt_regs {
	unsigned long ip;
	unsigned long orig_ax; /* system call number, -1 after any other entry from user mode */
	unsigned long cs;
};

struct in6_addr {
	union {
		uint32_t u6_addr32[4];
	} in6_u;
};

struct sock_common {
	uint32_t skc_daddr;
	uint32_t skc_rcv_saddr;
	uint16_t skc_dport; /* network order */
	uint16_t skc_num;   /* local port, host order */
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct list_head {
	struct list_head *next;
};

struct wait_queue_entry {
	void *private;
	struct list_head entry;
};

struct wait_queue_head {
	struct list_head head;
};

struct socket_wq {
	struct wait_queue_head wait;
};

struct io_uring_task {
	struct task_struct *task;
};

/* An operation of io_uring. */
struct io_kiocb {
	struct io_uring_task *tctx;
};

struct io_kiocb___before_6_13 {
	struct task_struct *task;
};

struct sock {
	struct socket_wq *sk_wq;
	struct sock_common __sk_common;
	uint16_t sk_protocol;
	uint32_t sk_pacing_status;
};

struct tcp_sock {
	uint32_t copied_seq;
	uint32_t rcv_nxt;
	uint32_t write_seq;
	uint32_t snd_nxt;
	uint32_t snd_una;
	uint32_t snd_wnd;
	uint32_t snd_sml; /* end of the last segment sent that was less than a whole one */
	uint32_t snd_cwnd;
	uint32_t packets_out;
	uint32_t sacked_out;
	uint32_t lost_out;
	uint32_t retrans_out;
	uint32_t mss_cache;
	uint64_t tcp_wstamp_ns;   /* when pacing lets the next segment go */
	uint64_t tcp_clock_cache; /* the time when it last was asked */
	uint8_t nonagle : 4;
};

struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned char *head;
	unsigned char *data;
	uint16_t transport_header; /* offset from head */
	char cb[48];
};

/* What TCP keeps in sk_buff.cb while the segment is in its queues. */
struct tcp_skb_cb {
	uint32_t seq;
	uint32_t end_seq;
};

struct timerqueue_node {
	int64_t expires;
};

struct hrtimer_clock_base {
	int clockid;
};

struct hrtimer {
	struct timerqueue_node node;
	struct hrtimer_clock_base *base;
	uint8_t is_hard;
};

struct vm_area_struct;

#pragma clang attribute pop

/* RFC 9293, section 3.1; not relocated, it is the wire's format. */
struct tcp_header {
	uint16_t source;
	uint16_t destination;
	uint32_t sequence;
	uint32_t acknowledged;
	uint8_t offset; /* header length in 32-bit words, in the upper four bits */
	uint8_t flags;
};

#endif /* TAILOR_BPF_KERNEL_TYPES_H */
