/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests were at a server when: from the receive of their first bytes to the write of the response's last. With
 * nobody else's request there, a thread that had been asleep cannot have been in the middle of one.
 */
#ifndef TAILOR_CORRELATE_TRAFFIC_H
#define TAILOR_CORRELATE_TRAFFIC_H

#include "correlate/index.h"

/* Instead of an index in the window: it was before that. */
#define TRAFFIC_EARLIER UINT32_MAX

/*
 * CPU time that a thread may need after it wrote a response until it has done with that request, a lock or a log that it comes back to
 * included: 230 us were seen, of a JVM that was not warm yet.
 */
#define TRAFFIC_AFTERWARDS_NS 1000000

struct exchange {
	uint32_t pid; /* the server's */
	uint64_t from_ns; /* 0: before what the window has */
	uint64_t to_ns;   /* UINT64_MAX: it was still there at the window's end */
	uint64_t settled_ns; /* until then the thread that wrote the response may still have been busy with what comes after */
	uint32_t write;   /* index in the window of the last write, or TRAFFIC_EARLIER; with to_ns */
	uint32_t outer;   /* index + 1 of the last one before it at that server that is settled later; 0: none is */
	uint64_t request; /* 0: it did not come through the proxy */
};

/* All but the window's own request. Zero is none. */
struct traffic {
	const struct thread_index *index;
	struct exchange *list; /* once somebody has asked, ordered by pid and from_ns */
	size_t count;
	uint8_t ordered; /* settled_ns and outer are set */
};

/* O(n log n) in the window's receives and writes. Returns 0 or -ENOMEM. The index must outlive it. Freed by traffic_free(), also after an error. */
int traffic_build(struct traffic *traffic, const struct thread_index *index);
void traffic_free(struct traffic *traffic);

/* 1 when one other request was at the server during all of [from_ns, to_ns]. O(n). */
int traffic_throughout(const struct traffic *traffic, uint32_t pid, uint64_t from_ns, uint64_t to_ns);

/*
 * How it was just before to_ns, and *ret_from_ns (from_ns or later) from when on it was so: returns 1 when no other request was at the
 * server, 0 when there was one. One that has been answered counts until it is settled. O(log n) after the first time, but for requests
 * that lie inside each other.
 */
int traffic_alone(struct traffic *traffic, uint32_t pid, uint64_t from_ns, uint64_t to_ns, uint64_t *ret_from_ns);

#endif /* TAILOR_CORRELATE_TRAFFIC_H */
