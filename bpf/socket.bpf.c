/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which request a thread serves, when it wrote the response, and when those bytes left. Everything here is about
 * connections whose tag (include/tailor/tag.h) names a request, and about a server's others at the same port: any other connection
 * costs one array look-up, always the same.
 */
#include "emit.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include <tailor/tag.h>

#include "compat.bpf.h"
#include "fault.bpf.h"
#include "late.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TAILOR_TAGS);
	__type(key, uint32_t);
	__type(value, struct tailor_tag);
} tags SEC(".maps");

/*
 * The ports at which tagged requests have come. What else comes and goes there is told without a request: a thread that
 * serves somebody else meanwhile does not work for the request that it received before.
 */
uint8_t serves[1 << 16] = {};

/* Which end of a tagged connection a socket is. */
enum end { END_SERVER, END_PROXY };

static __always_inline uint16_t local_port(const struct sock *sk)
{
	return sk->__sk_common.skc_num;
}

static __always_inline uint16_t remote_port(const struct sock *sk)
{
	return bpf_ntohs(sk->__sk_common.skc_dport);
}

/* Are the socket's addresses those of this tag: its own one the server's (at the server's end) or its peer's? */
static __always_inline bool has_addresses(const struct sock *sk, const struct tailor_tag *tag, enum end end)
{
	const uint32_t *address = (const uint32_t *)tag->address;
	uint16_t family = sk->__sk_common.skc_family;

	if (family == AF_INET) {
		uint32_t own = sk->__sk_common.skc_rcv_saddr, peer = sk->__sk_common.skc_daddr;
		uint32_t server = end == END_SERVER ? own : peer, proxy = end == END_SERVER ? peer : own;

		return address[3] == server && address[2] == bpf_htonl(0xffff) && !address[1] && !address[0] &&
		       tag->proxy == (proxy ^ bpf_htonl(0xffff));
	}
	if (family == AF_INET6 && has_ipv6(sk)) {
		const struct in6_addr *own = &sk->__sk_common.skc_v6_rcv_saddr, *peer = &sk->__sk_common.skc_v6_daddr;
		const uint32_t *server = (end == END_SERVER ? own : peer)->in6_u.u6_addr32;
		const uint32_t *proxy = (end == END_SERVER ? peer : own)->in6_u.u6_addr32;

		return address[3] == server[3] && address[2] == server[2] && address[1] == server[1] &&
		       address[0] == server[0] && tag->proxy == tailor_tag_fold(proxy);
	}
	return false;
}

/* The request that the connection carries now, if this socket is that end of a tagged connection; else 0. */
static __always_inline uint64_t tagged_request(const struct sock *sk, enum end end)
{
	uint16_t server_port = end == END_SERVER ? local_port(sk) : remote_port(sk);
	uint32_t index = end == END_SERVER ? remote_port(sk) : local_port(sk), zero = 0;
	const struct tailor_tag *first = bpf_map_lookup_elem(&tags, &zero);
	volatile const struct tailor_tag *tag;
	uint64_t request;

	if (!first || !tailor_tag_may_serve(first, server_port))
		return 0;
	tag = bpf_map_lookup_elem(&tags, &index);
	if (!tag)
		return 0;
	request = tag->request;
	if (!request || !server_port || tag->server_port != server_port)
		return 0;
	if (!has_addresses(sk, (const struct tailor_tag *)tag, end))
		return 0;
	/* The proxy may be giving the entry to another connection: what was compared then is a mix. */
	return tag->request == request ? request : 0;
}

/* For programs that run on whatever task sends. */
static __always_inline uint64_t tagged_request_either_end(const struct sock *sk)
{
	uint64_t request = tagged_request(sk, END_SERVER);

	return request ? request : tagged_request(sk, END_PROXY);
}

/* task: as of bpf_get_current_pid_tgid(). */
static __always_inline void emit_bytes(enum tailor_event_kind kind, uint64_t task, const struct sock *sk, uint64_t request,
                                       uint32_t sequence, uint32_t bytes, uint64_t unsent, enum emit_context context)
{
	struct emission emission;
	struct tailor_event *event = emit_begin(kind, context, &emission);

	if (!event)
		return;
	event->time_ns = bpf_ktime_get_ns();
	event->extra = TAILOR_PORTS(local_port(sk), remote_port(sk));
	event->request = request;
	event->pid = TAILOR_TASK_PID(task);
	event->tid = TAILOR_TASK_TID(task);
	event->arg[0] = sequence;
	event->arg[1] = bytes;
	event->arg[2] = unsent;
	emit_end(event, &emission);
}

/* Binds the running thread to what it has just received on a server's connection; request 0 unbinds it. */
static __always_inline void bind_thread(uint64_t request, uint16_t server_port)
{
	struct bound *binding = bpf_task_storage_get(&bound, bpf_get_current_task_btf(), NULL,
	                                             request ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (!binding)
		return;
	/* A receive without a tag ends the binding only if it came in by the server's own port: as a client of
	 * another server, the thread still works for its request. */
	if (!request && binding->server_port != server_port)
		return;
	binding->request = request;
	binding->server_port = server_port;
}

static __always_inline void received(struct sock *sk, int bytes, int flags, enum emit_context context)
{
	uint64_t task = bpf_get_current_pid_tgid();
	uint32_t role = role_of(TAILOR_TASK_PID(task));
	struct tcp_sock *tcp;
	uint64_t request;

	if (role == ROLE_PROXY)
		late_is_over(TAILOR_TASK_TID(task));
	if (role != ROLE_SERVER || bytes <= 0 || (flags & (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE)))
		return;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (!tcp)
		return;
	faults_tell(task, context);
	request = tagged_request(sk, END_SERVER);
	bind_thread(request, local_port(sk));
	if (request && !serves[local_port(sk)])
		serves[local_port(sk)] = 1;
	if (serves[local_port(sk)])
		emit_bytes(TAILOR_EVENT_RECEIVE, task, sk, request, tcp->copied_seq - (uint32_t)bytes, bytes, 0, context);
}

static __always_inline bool is_after(uint32_t sequence, uint32_t other)
{
	return (int32_t)(other - sequence) < 0;
}

/*
 * Why TCP does not send the `unsent` bytes now that it has of its user; asks what tcp_write_xmit() asks of the first segment, in its
 * order.
 */
static __always_inline enum tailor_unsent why_unsent(const struct sock *sk, struct tcp_sock *tcp, uint32_t unsent)
{
	uint32_t packets = tcp->packets_out, una = tcp->snd_una, small = tcp->snd_sml, next = tcp->snd_nxt, segment = tcp->mss_cache;
	uint32_t nonagle = BPF_CORE_READ_BITFIELD(tcp, nonagle);

	if (sk->sk_pacing_status == SK_PACING_NEEDED && tcp->tcp_wstamp_ns > tcp->tcp_clock_cache)
		return TAILOR_UNSENT_OTHER;
	if (packets - (tcp->sacked_out + tcp->lost_out) + tcp->retrans_out >= tcp->snd_cwnd)
		return TAILOR_UNSENT_CONGESTION;
	if (is_after(next + (unsent < segment ? unsent : segment), una + tcp->snd_wnd))
		return TAILOR_UNSENT_WINDOW;
	if (unsent >= segment)
		return TAILOR_UNSENT_OTHER;
	if (nonagle & TCP_NAGLE_CORK)
		return TAILOR_UNSENT_CORK;
	/* Minshall's variant: only an earlier segment that was less than a whole one holds this one back. */
	if (!nonagle && packets && is_after(small, una) && !is_after(small, next))
		return TAILOR_UNSENT_NAGLE;
	/* MSG_MORE leaves no trace, but with nothing under way only that keeps bytes back. */
	return packets ? TAILOR_UNSENT_OTHER : TAILOR_UNSENT_CORK;
}

/* As arg[2] of a write that has just ended; the socket is not locked any more. */
static __always_inline uint64_t unsent_of(const struct sock *sk, struct tcp_sock *tcp)
{
	uint32_t next = *(volatile uint32_t *)&tcp->snd_nxt, unsent = tcp->write_seq - next;
	enum tailor_unsent why;

	if (!unsent)
		return 0;
	why = why_unsent(sk, tcp, unsent);
	/* An acknowledgement has come and let bytes go: what was asked is a mix. */
	if (*(volatile uint32_t *)&tcp->snd_nxt != next) {
		unsent = tcp->write_seq - *(volatile uint32_t *)&tcp->snd_nxt;
		why = TAILOR_UNSENT_OTHER;
	}
	return unsent ? TAILOR_UNSENT(why, unsent) : 0;
}

static __always_inline void written(struct sock *sk, int bytes, enum emit_context context)
{
	uint64_t task = bpf_get_current_pid_tgid(), request;
	struct tcp_sock *tcp;

	/* The proxy says itself when it sends, and net_dev_queue says when the bytes left. */
	if (bytes <= 0 || role_of(TAILOR_TASK_PID(task)) != ROLE_SERVER)
		return;
	request = tagged_request(sk, END_SERVER);
	if (!request && !serves[local_port(sk)])
		return;
	faults_tell(task, context);
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		emit_bytes(TAILOR_EVENT_SYSCALL_WRITE, task, sk, request, tcp->write_seq - (uint32_t)bytes, bytes, unsent_of(sk, tcp),
			   context);
}

/* These two (since 6.3) see every way to receive and send, io_uring and sendfile too, and cost other calls nothing. */
SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_sock_recv_length, struct sock *sk, int bytes, int flags)
{
	received(sk, bytes, flags, EMIT_TRACEPOINT);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_sock_send_length, struct sock *sk, int bytes)
{
	written(sk, bytes, EMIT_TRACEPOINT);
	return 0;
}

/* The same for 6.1 and 6.2, where fexit is allowed; without sendfile, which has a path of its own there. */
SEC("fexit/tcp_recvmsg")
int BPF_PROG(on_tcp_recvmsg, struct sock *sk, void *message, unsigned long size, int flags, int *address_length,
             int bytes)
{
	received(sk, bytes, flags, EMIT_PREEMPTIBLE);
	return 0;
}

SEC("fexit/tcp_sendmsg")
int BPF_PROG(on_tcp_sendmsg, struct sock *sk, void *message, unsigned long size, int bytes)
{
	written(sk, bytes, EMIT_PREEMPTIBLE);
	return 0;
}

/*
 * Hand-over to the device's queue. A stacked device (bond, VLAN, bridge) passes it more than once; the TCP header
 * must be the socket's own one, which it is not after encapsulation.
 */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(on_net_dev_queue, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	struct tcp_header header;
	uint64_t request;
	unsigned char *transport;
	uint32_t headers_length;

	if (!sk)
		return 0;
	request = tagged_request_either_end(sk);
	if (!request)
		return 0;
	transport = skb->head + skb->transport_header;
	if (bpf_probe_read_kernel(&header, sizeof(header), transport))
		return 0;
	if (bpf_ntohs(header.source) != local_port(sk) || bpf_ntohs(header.destination) != remote_port(sk))
		return 0;
	headers_length = (uint32_t)(transport - skb->data) + (header.offset >> 4) * 4;
	if (skb->len <= headers_length) /* a pure acknowledgement */
		return 0;
	emit_bytes(TAILOR_EVENT_TCP_TRANSMIT, bpf_get_current_pid_tgid(), sk, request, bpf_ntohl(header.sequence),
	           skb->len - headers_length, 0, EMIT_TRACEPOINT);
	return 0;
}

/* Follows the TCP_TRANSMIT of the same bytes. */
SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_tcp_retransmit_skb, const struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_skb_cb *segment = (const struct tcp_skb_cb *)skb->cb;
	uint32_t sequence, end;
	uint64_t request;

	if (retransmit_has_error && (int)ctx[2] != 0)
		return 0;
	request = tagged_request_either_end(sk);
	if (!request)
		return 0;
	sequence = BPF_CORE_READ(segment, seq);
	end = BPF_CORE_READ(segment, end_seq);
	emit_bytes(TAILOR_EVENT_TCP_RETRANSMIT, bpf_get_current_pid_tgid(), sk, request, sequence, end - sequence, 0,
	           EMIT_TRACEPOINT);
	return 0;
}
