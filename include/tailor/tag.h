/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tag table: which request a connection between proxy and server carries, or while it is idle, carried
 * last: a server's write often returns when the proxy has long had the bytes. A plain array
 * indexed by the proxy's local port of that connection, shared with the BPF programs (a
 * BPF_F_MMAPABLE array); the proxy stores, the kernel programs look.
 *
 * The worker that owns the connection fills `address` and `server_port` when it has connected, then
 * stores `request` before it sends each request. A BPF program that sees a TCP socket whose one port is
 * an index here compares the other port and both addresses with the entry before it believes the
 * tag: ports are reused, clients on other hosts that talk to the server directly may use the same one,
 * and a wrong join is worse than none.
 */
#ifndef TAILOR_TAG_H
#define TAILOR_TAG_H

#include <stdint.h>

struct tailor_tag {
	uint64_t request;     /* that the connection carries, or carried last; 0: none yet; stored with one store, last */
	uint16_t server_port; /* host order; 0: the entry is free */
	uint16_t server;      /* index of the server in the config */
	uint32_t proxy;       /* tailor_tag_fold() of the connection's address at the proxy's end */
	uint8_t address[16];  /* the server's, network order; IPv4 as ::ffff:a.b.c.d */
};
_Static_assert(sizeof(struct tailor_tag) == 32, "tag entries do not straddle cache lines");

/* One entry per port; a table is TAILOR_TAGS * sizeof(struct tailor_tag) = 2 MiB. */
#define TAILOR_TAGS 65536

/*
 * The servers' ports that any entry has had, as a set by the port modulo its size: for who asks whether a connection can have a tag at all. It
 * is kept in the entry of port 0, which no connection has.
 */
#define TAILOR_TAG_PORTS 128
static inline __attribute__((always_inline)) uint32_t tailor_tag_may_serve(const struct tailor_tag *first, uint16_t port)
{
	const uint8_t *ports = &first->address[port % TAILOR_TAG_PORTS / 8];

#ifdef __bpf__
	return *(const volatile uint8_t *)ports >> port % 8 & 1;
#else
	return __atomic_load_n(ports, __ATOMIC_RELAXED) >> port % 8 & 1;
#endif
}

#ifndef __bpf__
/* Adds a port to the set of the table: before an entry names it. Any thread. */
static inline void tailor_tag_serves(struct tailor_tag *tags, uint16_t port)
{
	__atomic_fetch_or(&tags[0].address[port % TAILOR_TAG_PORTS / 8], (uint8_t)(1 << port % 8), __ATOMIC_RELEASE);
}
#endif

/*
 * An address, in the form of tailor_tag.address and as its four words in memory, as one word. Two IPv4 addresses never
 * fold to the same one.
 */
static inline __attribute__((always_inline)) uint32_t tailor_tag_fold(const uint32_t words[4])
{
	return words[0] ^ words[1] ^ words[2] ^ words[3];
}

#endif /* TAILOR_TAG_H */
