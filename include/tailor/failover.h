/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failover: one stop of a server in which requests were in flight there, and what all workers of the proxy did about it. What the
 * observer puts together of their TAILOR_EVENT_SERVER_STOPPED events, the store keeps and `tailor dump --failovers` shows.
 */
#ifndef TAILOR_FAILOVER_H
#define TAILOR_FAILOVER_H

#include <stdint.h>
#include <tailor/jvm_page.h>
#include <tailor/stop.h>
#include <tailor/timeline.h>

#define TAILOR_WHY_NOT_BYTES 24

/* Owned by value. Times are ns. */
struct tailor_failover {
	uint64_t begin_ns; /* CLOCK_MONOTONIC: when the server stopped, by whoever told the earliest */
	uint64_t end_ns;   /* when the first worker knew that it was over; never after the next one's begin */
	uint64_t wall_ns;  /* CLOCK_REALTIME at begin_ns, for people; 0 unknown */
	char server[TAILOR_SERVER_NAME_BYTES];
	char cause[TAILOR_JVM_CAUSE_BYTES]; /* of a collection, as the JVM says it; "" unknown */
	enum tailor_stop_kind kind;    /* what it was, as far as anybody told */
	enum tailor_stop_kind noticed; /* what was told first: a safepoint may turn out to be a collection */
	uint32_t workers;   /* that had requests in flight there */
	uint32_t in_flight; /* requests, when they noticed; of all workers, as all below */
	uint32_t moved;     /* also sent to another server */
	uint32_t not_moved;
	char why_not[TAILOR_WHY_NOT_BYTES]; /* the most frequent reason, as enum tailor_not_moved (proxy/proxy.h) has words; "" when all moved */
	uint64_t noticed_ns; /* from begin_ns until the first worker noticed */
	uint64_t reacted_ns; /* from begin_ns until the bytes of the last replay had been handed to the kernel; 0: there was none */
	/*
	 * An estimate, from below: how much sooner than the stop's end the moved requests had been answered, in sum. Had they stayed, they
	 * would have waited for that end and then for the rest of their work. One that was answered after the end counts as nothing saved.
	 */
	uint64_t saved_ns;
	uint32_t saved_requests; /* that saved_ns is the sum of: answered by another server before the end */
	uint8_t incomplete;      /* events of a worker were lost meanwhile: there may have been more */
};

#endif /* TAILOR_FAILOVER_H */
