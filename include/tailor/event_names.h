/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the enums in event.h, for people. Each function is a switch without a default, so the
 * build (-Werror=switch) fails when a value gets no name. User space only.
 */
#ifndef TAILOR_EVENT_NAMES_H
#define TAILOR_EVENT_NAMES_H

#include <tailor/event.h>

/* The kind's name in lower case with dashes ("gc-start"); "unknown" for a value outside the enum. Never NULL. */
static inline const char *tailor_event_kind_name(enum tailor_event_kind kind)
{
	switch (kind) {
	case TAILOR_EVENT_NONE: return "none";
	case TAILOR_EVENT_WAKEUP: return "wakeup";
	case TAILOR_EVENT_SWITCH_IN: return "switch-in";
	case TAILOR_EVENT_SWITCH_OUT: return "switch-out";
	case TAILOR_EVENT_PAGE_FAULT: return "page-fault";
	case TAILOR_EVENT_PAGE_FAULT_END: return "page-fault-end";
	case TAILOR_EVENT_RECEIVE: return "receive";
	case TAILOR_EVENT_SYSCALL_WRITE: return "syscall-write";
	case TAILOR_EVENT_TCP_TRANSMIT: return "tcp-transmit";
	case TAILOR_EVENT_TCP_RETRANSMIT: return "tcp-retransmit";
	case TAILOR_EVENT_SAFEPOINT_BEGIN: return "safepoint-begin";
	case TAILOR_EVENT_SAFEPOINT_END: return "safepoint-end";
	case TAILOR_EVENT_VM_OPERATION_BEGIN: return "vm-operation-begin";
	case TAILOR_EVENT_VM_OPERATION_END: return "vm-operation-end";
	case TAILOR_EVENT_CPU_STALL: return "cpu-stall";
	case TAILOR_EVENT_INTERRUPT: return "interrupt";
	case TAILOR_EVENT_PAGE_FAULTS: return "page-faults";
	case TAILOR_EVENT_ARRIVAL: return "arrival";
	case TAILOR_EVENT_GC_START: return "gc-start";
	case TAILOR_EVENT_GC_FINISH: return "gc-finish";
	case TAILOR_EVENT_CLASS_LOAD: return "class-load";
	case TAILOR_EVENT_CLASS_PREPARE: return "class-prepare";
	case TAILOR_EVENT_THREAD_START: return "thread-start";
	case TAILOR_EVENT_THREAD_END: return "thread-end";
	case TAILOR_EVENT_VTHREAD_MOUNT: return "vthread-mount";
	case TAILOR_EVENT_VTHREAD_UNMOUNT: return "vthread-unmount";
	case TAILOR_EVENT_APP_BEGIN: return "app-begin";
	case TAILOR_EVENT_APP_END: return "app-end";
	case TAILOR_EVENT_SAFEPOINTS: return "safepoints";
	case TAILOR_EVENT_REQUEST_BEGIN: return "request-begin";
	case TAILOR_EVENT_REQUEST_PARSED: return "request-parsed";
	case TAILOR_EVENT_ATTEMPT_BEGIN: return "attempt-begin";
	case TAILOR_EVENT_ATTEMPT_SEND: return "attempt-send";
	case TAILOR_EVENT_ATTEMPT_SENT: return "attempt-sent";
	case TAILOR_EVENT_RESPONSE_BEGIN: return "response-begin";
	case TAILOR_EVENT_RESPONSE_END: return "response-end";
	case TAILOR_EVENT_ATTEMPT_END: return "attempt-end";
	case TAILOR_EVENT_REPLY_BEGIN: return "reply-begin";
	case TAILOR_EVENT_REQUEST_END: return "request-end";
	case TAILOR_EVENT_REQUEST_QUEUED: return "request-queued";
	case TAILOR_EVENT_CLIENT_WAIT: return "client-wait";
	case TAILOR_EVENT_REQUEST_LATE: return "request-late";
	case TAILOR_EVENT_SERVER_STOPPED: return "server-stopped";
	case TAILOR_EVENT_TEXT: return "text";
	}
	return "unknown";
}

/* Why an attempt was begun: "gc", "safepoint", "stall", "connect", "closed"; "none" for the first attempt. Never NULL. */
static inline const char *tailor_failover_reason_name(enum tailor_failover_reason reason)
{
	switch (reason) {
	case TAILOR_FAILOVER_NONE: return "none";
	case TAILOR_FAILOVER_GC: return "gc";
	case TAILOR_FAILOVER_CONNECT: return "connect";
	case TAILOR_FAILOVER_CLOSED: return "closed";
	case TAILOR_FAILOVER_SAFEPOINT: return "safepoint";
	case TAILOR_FAILOVER_STALL: return "stall";
	}
	return "unknown";
}

/* How an attempt that did not answer ended. Never NULL. */
static inline const char *tailor_attempt_end_name(enum tailor_attempt_end end)
{
	switch (end) {
	case TAILOR_ATTEMPT_END_LOST: return "lost";
	case TAILOR_ATTEMPT_END_CONNECT: return "connect";
	case TAILOR_ATTEMPT_END_CLOSED: return "closed";
	case TAILOR_ATTEMPT_END_BAD: return "bad-response";
	case TAILOR_ATTEMPT_END_CLIENT: return "client-gone";
	case TAILOR_ATTEMPT_END_TIMEOUT: return "timeout";
	}
	return "unknown";
}

/* How a request ended. Never NULL. */
static inline const char *tailor_request_end_name(enum tailor_request_end end)
{
	switch (end) {
	case TAILOR_REQUEST_END_DONE: return "done";
	case TAILOR_REQUEST_END_REFUSED: return "refused";
	case TAILOR_REQUEST_END_CLIENT: return "client-gone";
	case TAILOR_REQUEST_END_CUT: return "cut";
	}
	return "unknown";
}

/* Why the proxy answered a request itself, as a word for metrics and logs ("client-late"); "none" when it did not. Never NULL. */
static inline const char *tailor_refusal_name(enum tailor_refusal refusal)
{
	switch (refusal) {
	case TAILOR_REFUSED_NONE: return "none";
	case TAILOR_REFUSED_MALFORMED: return "malformed";
	case TAILOR_REFUSED_HEAD: return "head";
	case TAILOR_REFUSED_BODY: return "body";
	case TAILOR_REFUSED_CLIENT_LATE: return "client-late";
	case TAILOR_REFUSED_DEADLINE: return "deadline";
	case TAILOR_REFUSED_CONNECTIONS: return "connections";
	case TAILOR_REFUSED_PER_ADDRESS: return "per-address";
	case TAILOR_REFUSED_QUEUE_FULL: return "queue-full";
	case TAILOR_REFUSED_QUEUE_LATE: return "queue-late";
	case TAILOR_REFUSED_NO_SERVER: return "no-server";
	case TAILOR_REFUSED_SERVER_FAILED: return "server-failed";
	case TAILOR_REFUSED_SERVER_LATE: return "server-late";
	case TAILOR_REFUSED_MAX_FORWARDS: return "max-forwards";
	case TAILOR_REFUSALS: break;
	}
	return "unknown";
}

/* Why TCP kept bytes back, as a person reads it: "Nagle: waiting for an ACK"; "" for none. Never NULL. */
static inline const char *tailor_unsent_name(enum tailor_unsent unsent)
{
	switch (unsent) {
	case TAILOR_UNSENT_NONE: return "";
	case TAILOR_UNSENT_NAGLE: return "Nagle: waiting for an ACK";
	case TAILOR_UNSENT_CORK: return "corked by the application";
	case TAILOR_UNSENT_WINDOW: return "the receiver's window was full";
	case TAILOR_UNSENT_CONGESTION: return "the congestion window was full";
	case TAILOR_UNSENT_OTHER: return "held back by TCP";
	}
	return "unknown";
}

#endif /* TAILOR_EVENT_NAMES_H */
