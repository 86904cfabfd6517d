/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Loses every segment with data that comes from one port. PORT: in host byte order. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define LINK_BYTES 14
#define IPV4_BYTES 20 /* without options, as everything on this loopback */

SEC("tc")
int lose(struct __sk_buff *packet)
{
	__u16 port;
	__u8 words;

	if (packet->protocol != bpf_htons(0x0800) || bpf_skb_load_bytes(packet, LINK_BYTES + IPV4_BYTES, &port, sizeof(port)) < 0 ||
	    bpf_skb_load_bytes(packet, LINK_BYTES + IPV4_BYTES + 12, &words, sizeof(words)) < 0)
		return TC_ACT_OK;
	if (port != bpf_htons(PORT) || packet->len <= LINK_BYTES + IPV4_BYTES + (words >> 4) * 4U)
		return TC_ACT_OK;
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
