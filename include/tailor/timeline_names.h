/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the enums in timeline.h. Switches without a default: a value without a name fails the build. */
#ifndef TAILOR_TIMELINE_NAMES_H
#define TAILOR_TIMELINE_NAMES_H

#include <tailor/timeline.h>

/* The cause as people read it. Never NULL. */
static inline const char *tailor_cause_name(enum tailor_cause cause)
{
	switch (cause) {
	case TAILOR_CAUSE_UNEXPLAINED: return "unexplained";
	case TAILOR_CAUSE_PROXY: return "proxy";
	case TAILOR_CAUSE_PROXY_RUN_QUEUE: return "proxy waiting for a CPU";
	case TAILOR_CAUSE_CONNECTION_WAIT: return "waiting for a connection";
	case TAILOR_CAUSE_REQUEST_TRANSIT: return "request in transit";
	case TAILOR_CAUSE_SERVER_QUEUE: return "waiting in the server's queue";
	case TAILOR_CAUSE_RUN_QUEUE: return "waiting for a CPU";
	case TAILOR_CAUSE_ON_CPU: return "on CPU";
	case TAILOR_CAUSE_PREEMPTED: return "preempted";
	case TAILOR_CAUSE_BLOCKED_LOCK: return "blocked on another thread";
	case TAILOR_CAUSE_BLOCKED_IO: return "blocked on I/O";
	case TAILOR_CAUSE_BLOCKED_SLEEP: return "sleeping";
	case TAILOR_CAUSE_STOPPED: return "stopped by a signal";
	case TAILOR_CAUSE_GC: return "garbage collection";
	case TAILOR_CAUSE_TIME_TO_SAFEPOINT: return "time to safepoint";
	case TAILOR_CAUSE_SAFEPOINT: return "safepoint";
	case TAILOR_CAUSE_CLASS_LOADING: return "class loading";
	case TAILOR_CAUSE_PAGE_FAULT_MINOR: return "minor page fault";
	case TAILOR_CAUSE_PAGE_FAULT_MAJOR: return "major page fault";
	case TAILOR_CAUSE_RESPONSE_BUFFERED: return "response buffered by TCP";
	case TAILOR_CAUSE_RETRANSMISSION: return "TCP retransmission";
	case TAILOR_CAUSE_RESPONSE_TRANSIT: return "response in transit";
	case TAILOR_CAUSE_FAILOVER_WAIT: return "failover wait";
	case TAILOR_CAUSE_SLOW_CLIENT: return "slow client";
	case TAILOR_CAUSE_SERVER: return "in the server";
	case TAILOR_CAUSE_LIMIT_WAIT: return "waiting for a place at the server";
	case TAILOR_CAUSE_BLOCKED_NETWORK: return "waiting for the network";
	case TAILOR_CAUSE_THROTTLED: return "out of CPU quota";
	case TAILOR_CAUSE_MACHINE_STOPPED: return "machine stood still";
	case TAILOR_CAUSE_INTERRUPTS: return "interrupts";
	case TAILOR_CAUSE_PROXY_STOPPED: return "proxy stopped";
	case TAILOR_CAUSES: break;
	}
	return "unknown";
}

/* The cause as a word for --cause, JSON and metrics: "gc", "response-buffered". Never NULL. */
static inline const char *tailor_cause_key(enum tailor_cause cause)
{
	switch (cause) {
	case TAILOR_CAUSE_UNEXPLAINED: return "unexplained";
	case TAILOR_CAUSE_PROXY: return "proxy";
	case TAILOR_CAUSE_PROXY_RUN_QUEUE: return "proxy-run-queue";
	case TAILOR_CAUSE_CONNECTION_WAIT: return "connection-wait";
	case TAILOR_CAUSE_REQUEST_TRANSIT: return "request-transit";
	case TAILOR_CAUSE_SERVER_QUEUE: return "server-queue";
	case TAILOR_CAUSE_RUN_QUEUE: return "run-queue";
	case TAILOR_CAUSE_ON_CPU: return "on-cpu";
	case TAILOR_CAUSE_PREEMPTED: return "preempted";
	case TAILOR_CAUSE_BLOCKED_LOCK: return "blocked-lock";
	case TAILOR_CAUSE_BLOCKED_IO: return "blocked-io";
	case TAILOR_CAUSE_BLOCKED_SLEEP: return "sleep";
	case TAILOR_CAUSE_STOPPED: return "stopped";
	case TAILOR_CAUSE_GC: return "gc";
	case TAILOR_CAUSE_TIME_TO_SAFEPOINT: return "time-to-safepoint";
	case TAILOR_CAUSE_SAFEPOINT: return "safepoint";
	case TAILOR_CAUSE_CLASS_LOADING: return "class-loading";
	case TAILOR_CAUSE_PAGE_FAULT_MINOR: return "page-fault-minor";
	case TAILOR_CAUSE_PAGE_FAULT_MAJOR: return "page-fault-major";
	case TAILOR_CAUSE_RESPONSE_BUFFERED: return "response-buffered";
	case TAILOR_CAUSE_RETRANSMISSION: return "retransmission";
	case TAILOR_CAUSE_RESPONSE_TRANSIT: return "response-transit";
	case TAILOR_CAUSE_FAILOVER_WAIT: return "failover-wait";
	case TAILOR_CAUSE_SLOW_CLIENT: return "slow-client";
	case TAILOR_CAUSE_SERVER: return "server";
	case TAILOR_CAUSE_LIMIT_WAIT: return "limit-wait";
	case TAILOR_CAUSE_BLOCKED_NETWORK: return "blocked-network";
	case TAILOR_CAUSE_THROTTLED: return "throttled";
	case TAILOR_CAUSE_MACHINE_STOPPED: return "machine-stopped";
	case TAILOR_CAUSE_INTERRUPTS: return "interrupts";
	case TAILOR_CAUSE_PROXY_STOPPED: return "proxy-stopped";
	case TAILOR_CAUSES: break;
	}
	return "unknown";
}

/* How sure the join of thread and request is. Never NULL. */
static inline const char *tailor_join_name(enum tailor_join join)
{
	switch (join) {
	case TAILOR_JOIN_NONE: return "none";
	case TAILOR_JOIN_INFERRED: return "inferred";
	case TAILOR_JOIN_CONFIRMED: return "confirmed";
	case TAILOR_JOIN_CERTAIN: return "certain";
	}
	return "unknown";
}

/* One missing bit as a phrase a person can act on. Never NULL. */
static inline const char *tailor_missing_name(enum tailor_missing bit)
{
	switch (bit) {
	case TAILOR_MISSING_KERNEL: return "kernel events (needs root or CAP_BPF+CAP_PERFMON, and kernel BTF)";
	case TAILOR_MISSING_AGENT: return "JVM events (no agent connected)";
	case TAILOR_MISSING_SERVER_PID: return "the server's process (not found on this host)";
	case TAILOR_MISSING_BACKUP: return "a backup server";
	case TAILOR_MISSING_WRITE: return "socket reads and writes (kernel lacks sock_send_length/sock_recv_length)";
	case TAILOR_MISSING_FAULT_TIME: return "page fault durations (kernel allows no fexit and lacks rss_stat)";
	case TAILOR_MISSING_EVENTS: return "some events (lost, see below)";
	case TAILOR_MISSING_SAFEPOINTS: return "safepoints (no probes in the server's JVM)";
	case TAILOR_MISSING_ARRIVAL: return "what came while the proxy was held up (kernel lacks sk_data_ready)";
	case TAILOR_MISSING_STALL: return "whether the machine stood still (no CPU clock events)";
	}
	return "unknown";
}

#endif /* TAILOR_TIMELINE_NAMES_H */
