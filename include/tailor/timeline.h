/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timeline: the client-observed interval of one request, cut into spans that follow each other
 * without a gap or an overlap, each with its cause. What the correlator makes, the store keeps and the
 * reports show.
 *
 * Invariants (tailor_timeline_check in src/correlate asserts them):
 *   spans[0].start_ns == request.begin_ns, spans[i].end_ns == spans[i+1].start_ns,
 *   the last end_ns == request.end_ns; no span is empty unless it is the only one.
 */
#ifndef TAILOR_TIMELINE_H
#define TAILOR_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

/* Why time passed. Values are stored on disk: append, never renumber. */
enum tailor_cause {
	TAILOR_CAUSE_UNEXPLAINED = 0,
	TAILOR_CAUSE_PROXY = 1,            /* the proxy worked: parse, choose, copy */
	TAILOR_CAUSE_PROXY_RUN_QUEUE = 2,  /* the proxy's worker was ready and had no CPU */
	TAILOR_CAUSE_CONNECTION_WAIT = 3,  /* connecting to the server */
	TAILOR_CAUSE_REQUEST_TRANSIT = 4,  /* handed to the kernel by the proxy, not yet at the server */
	TAILOR_CAUSE_SERVER_QUEUE = 5,     /* at the server, which worked on other requests */
	TAILOR_CAUSE_RUN_QUEUE = 6,        /* the server's thread was woken and had no CPU */
	TAILOR_CAUSE_ON_CPU = 7,
	TAILOR_CAUSE_PREEMPTED = 8,        /* pushed off the CPU while ready */
	TAILOR_CAUSE_BLOCKED_LOCK = 9,     /* interruptible wait that another thread or process ended */
	TAILOR_CAUSE_BLOCKED_IO = 10,      /* uninterruptible wait */
	TAILOR_CAUSE_BLOCKED_SLEEP = 11,   /* wait that a timer ended: a sleep, a wait with a timeout */
	TAILOR_CAUSE_STOPPED = 12,         /* SIGSTOP */
	TAILOR_CAUSE_GC = 13,
	TAILOR_CAUSE_TIME_TO_SAFEPOINT = 14,
	TAILOR_CAUSE_SAFEPOINT = 15,       /* stopped by the JVM, outside the collector's part */
	TAILOR_CAUSE_CLASS_LOADING = 16,
	TAILOR_CAUSE_PAGE_FAULT_MINOR = 17,
	TAILOR_CAUSE_PAGE_FAULT_MAJOR = 18,
	TAILOR_CAUSE_RESPONSE_BUFFERED = 19, /* written by the server, not yet transmitted by TCP */
	TAILOR_CAUSE_RETRANSMISSION = 20,
	TAILOR_CAUSE_RESPONSE_TRANSIT = 21,
	TAILOR_CAUSE_FAILOVER_WAIT = 22,   /* lost on a server before the request was moved to the other */
	TAILOR_CAUSE_SLOW_CLIENT = 23,     /* the client's socket did not take the response */
	TAILOR_CAUSE_SERVER = 24,          /* at the server; no probe saw what it did there */
	TAILOR_CAUSE_LIMIT_WAIT = 25,      /* held back by the proxy, as the server had as many requests as it may */
	TAILOR_CAUSE_BLOCKED_NETWORK = 26, /* waiting for bytes from elsewhere: another node, a database */
	TAILOR_CAUSE_THROTTLED = 27,       /* ready, but its cgroup had used up its CPU quota */
	TAILOR_CAUSE_MACHINE_STOPPED = 28, /* the CPU answered no timer: its host had stopped it, or interrupts were off */
	TAILOR_CAUSE_INTERRUPTS = 29,      /* on its CPU, which worked for interrupts meanwhile */
	TAILOR_CAUSE_PROXY_STOPPED = 30,   /* the proxy itself was stopped (SIGSTOP, throttled) */
	TAILOR_CAUSES = 31,                /* how many there are */
};

/* How the server's thread was joined to the request. */
enum tailor_join {
	TAILOR_JOIN_NONE = 0,
	TAILOR_JOIN_INFERRED = 1,
	TAILOR_JOIN_CONFIRMED = 2, /* handed off by wake-ups, and the last thread wrote the response */
	TAILOR_JOIN_CERTAIN = 3,   /* the same thread (or virtual thread) received and wrote, or the application said who worked */
};

/* What can be missing from a timeline, as bits. Each is named in every timeline it is missing from. */
enum tailor_missing {
	TAILOR_MISSING_KERNEL = 1 << 0,     /* no kernel events at all */
	TAILOR_MISSING_AGENT = 1 << 1,      /* no agent in the server's JVM */
	TAILOR_MISSING_SERVER_PID = 1 << 2, /* server process unknown (remote, or not found): not traced */
	TAILOR_MISSING_BACKUP = 1 << 3,     /* no second server */
	TAILOR_MISSING_WRITE = 1 << 4,      /* socket write/receive tracepoints absent */
	TAILOR_MISSING_FAULT_TIME = 1 << 5, /* page faults are seen, their duration is not */
	TAILOR_MISSING_EVENTS = 1 << 6,     /* events of this window were lost; see losses */
	TAILOR_MISSING_SAFEPOINTS = 1 << 7, /* no probe in the server's JVM: time to safepoint and operations' names are not seen */
	TAILOR_MISSING_ARRIVAL = 1 << 8,    /* when bytes came while the proxy itself was held up is not seen */
	TAILOR_MISSING_STALL = 1 << 9,      /* a machine that stood still is not seen */
};
#define TAILOR_MISSING_BITS 10

#define TAILOR_DETAIL_BYTES 96
#define TAILOR_THREAD_NAME_BYTES 48

struct tailor_span {
	uint64_t start_ns;
	uint64_t end_ns;
	enum tailor_cause cause;
	uint32_t pid; /* of the thread that the response waited for; 0 where none is known */
	uint32_t tid;
	char thread[TAILOR_THREAD_NAME_BYTES]; /* Java name, else comm; "" where unknown */
	char detail[TAILOR_DETAIL_BYTES];      /* what a person needs to act, "" where there is nothing to say */
};

/* Events of a channel that were lost within the window. */
struct tailor_loss {
	char channel[24]; /* "cpu0", "jvm:a", "worker1" */
	uint64_t from_ns; /* time of the last event before and the first after the gap; 0/UINT64_MAX where there is none */
	uint64_t to_ns;
	uint64_t events;
};

#define TAILOR_TARGET_BYTES 208
#define TAILOR_SERVER_NAME_BYTES 32

/* One request as the proxy saw it. Owned by value. */
struct tailor_request {
	uint64_t id;
	uint64_t begin_ns; /* first byte read from the client; in a timeline when it came, where the proxy was held up and that is known */
	uint64_t end_ns;   /* last byte of the response accepted by the client's socket */
	uint64_t wall_ns;  /* CLOCK_REALTIME at begin_ns, for people; 0 unknown */
	uint16_t status;
	uint8_t end;       /* enum tailor_request_end */
	uint8_t attempts;
	uint16_t failover; /* enum tailor_failover_reason of the attempt that answered */
	uint64_t response_bytes;
	char target[TAILOR_TARGET_BYTES];      /* "GET /search?q=..." */
	char server[TAILOR_SERVER_NAME_BYTES]; /* that answered; "" when none */
};

enum tailor_why_kept {
	TAILOR_KEPT_SLOW = 0,
	TAILOR_KEPT_BASELINE = 1, /* one in N, to compare with */
};

struct tailor_timeline {
	struct tailor_request request;
	enum tailor_why_kept kept;
	enum tailor_cause dominant; /* the cause with the most time; unexplained only if nothing else has as much */
	uint64_t dominant_ns;
	enum tailor_join join;
	uint64_t server_ns; /* server-observed latency: receive to last write; 0 unknown */
	uint32_t missing;   /* enum tailor_missing bits */
	uint16_t complete;  /* parts of 1000 of the interval in which no channel that it needs had a loss */
	uint64_t omitted;   /* slow requests that were counted but got no timeline since the one stored before this */
	struct tailor_span *spans;
	size_t span_count;
	struct tailor_loss *losses;
	size_t loss_count;
};

#endif /* TAILOR_TIMELINE_H */
