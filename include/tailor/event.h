/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only definition of an event. Kernel programs, JVM agents and proxy workers write it, the
 * observer reads it; all of them include this file and nothing else to agree on its bytes.
 *
 * Time is CLOCK_MONOTONIC in nanoseconds everywhere. It is the clock of bpf_ktime_get_ns(),
 * clock_gettime(CLOCK_MONOTONIC) and System.nanoTime(), so events of all producers compare directly.
 *
 * Self-contained: needs only <stdint.h>, also when compiled for BPF.
 */
#ifndef TAILOR_EVENT_H
#define TAILOR_EVENT_H

#include <stdint.h>

/*
 * What happened. Beside each kind: who writes it, then what the fields hold that the kind defines.
 * Fields not named are zero. "task" values are TAILOR_TASK(tgid, tid); "comm" is the kernel's 16-byte
 * task name in arg[1] and arg[2].
 *
 * Values cross process boundaries: append, never renumber.
 */
enum tailor_event_kind {
	TAILOR_EVENT_NONE = 0,

	/* --- kernel (bpf/) --------------------------------------------------------------------- */

	/* sched_waking of a traced task (or sched_wakeup_new of a new one). pid/tid: the woken task. request: the
	 * request the *waker* was bound to (0: none). arg[0]: waker's task, arg[1..2]: waker's comm; all 0 where no task
	 * woke it but an interrupt: a timer, a device, the network (loopback too). extra:
	 * TAILOR_WAKEUP_... bits. May stand a few us before the SWITCH_OUT of the sleep that it ends: the sleeper had said
	 * so but had not left its CPU yet. */
	TAILOR_EVENT_WAKEUP = 1,
	/* A traced task got a CPU. pid/tid: that task, request: what it is bound to. arg[0]: task that had the CPU
	 * before, arg[1..2]: its comm. Where nobody had it (tid 0) instead arg[1]: when the CPU left its idle state, arg[2]:
	 * that state's number + 1 (the kernel's cpuidle order: higher is deeper); both 0 where not known. An arg[1] before the
	 * task's wake-up is of an earlier time: the CPU was awake already. */
	TAILOR_EVENT_SWITCH_IN = 2,
	/* A traced task lost its CPU. pid/tid, request: as above. extra: TAILOR_SWITCH(state it left in, system
	 * call it was in). arg[0]: task that took the CPU, arg[1..2]: its comm. */
	TAILOR_EVENT_SWITCH_OUT = 3,
	/* A fault of a traced task in user mode. arg[0]: address, arg[1]: instruction, arg[2]: x86 error code. Where fexit is
	 * allowed: each, at its start. Elsewhere only one that sleeps, just before its SWITCH_OUT: the others are in
	 * PAGE_FAULTS. */
	TAILOR_EVENT_PAGE_FAULT = 4,
	/* End of handle_mm_fault, only where fexit is allowed. arg[0]: address, arg[1]: duration in ns, extra: 1 = major. */
	TAILOR_EVENT_PAGE_FAULT_END = 5,
	/* A traced server's thread received bytes on a tagged connection and is bound to `request` from now on.
	 * extra: TAILOR_PORTS(local, remote) as the server sees them, arg[0]: TCP sequence of the first byte
	 * received, arg[1]: bytes. request 0: the connection has no tag, but tagged ones came at the same local port: the
	 * thread serves somebody who did not come through the proxy, and is bound to nothing. */
	TAILOR_EVENT_RECEIVE = 6,
	/* A thread of a traced server wrote to a tagged connection; time is the end of the write.
	 * request: of the connection's tag, 0 as for RECEIVE. extra: TAILOR_PORTS(local, remote) as the writer sees them,
	 * arg[0]: TCP sequence of the first byte, arg[1]: bytes, arg[2]: TAILOR_UNSENT(why, bytes that TCP had not sent
	 * then). */
	TAILOR_EVENT_SYSCALL_WRITE = 7,
	/* A segment of a tagged connection was handed to the network device. extra and arg[0], arg[1] as above
	 * for the sending end. tid/pid: whatever task happened to run; do not attribute by it. */
	TAILOR_EVENT_TCP_TRANSMIT = 8,
	/* The kernel sent a segment of a tagged connection again. Fields as for TCP_TRANSMIT, one of which for the same
	 * bytes comes just before. */
	TAILOR_EVENT_TCP_RETRANSMIT = 9,

	/* A traced server's JVM began to bring its threads to a stop (USDT hs_private:safepoint__begin), and lets them go on
	 * (hs_private:safepoint__end). pid/tid: the VM Thread. */
	TAILOR_EVENT_SAFEPOINT_BEGIN = 10,
	TAILOR_EVENT_SAFEPOINT_END = 11,
	/* The VM Thread begins and has ended an operation (USDT hotspot:vmops__begin, vmops__end); within a safepoint all
	 * threads have stopped by then. extra: 1 = it runs beside the threads, without a safepoint. text: HotSpot's name, for
	 * example "G1CollectForAllocation", "PrintThreads". */
	TAILOR_EVENT_VM_OPERATION_BEGIN = 12,
	TAILOR_EVENT_VM_OPERATION_END = 13,
	/* This CPU's timer came much too late: nothing that an interrupt could have interrupted ran on it from arg[0] on until this
	 * event's time (the host had stopped the virtual CPU, or interrupts were off). arg[0]: when it was due; arg[1]: when it
	 * had come the last time before that. */
	TAILOR_EVENT_CPU_STALL = 14,
	/* Interrupts kept a traced task from its CPU for a time worth telling. pid/tid: the task that they interrupted. extra:
	 * TAILOR_INTERRUPT(soft, number). arg[0]: ns, until this event's time. Softirqs that the task's own system call ran at its end
	 * (loopback's network) are among them. Optional. */
	TAILOR_EVENT_INTERRUPT = 15,
	/* Page faults in a row of one thread that did not sleep, where fexit is refused; time is the last one's end. extra: how many.
	 * arg[0]: the first one's start, arg[1]: ns in faults, each from its exception to the change of the process's resident memory
	 * that it makes (a little less than it really takes); arg[2]: lowest address. */
	TAILOR_EVENT_PAGE_FAULTS = 16,
	/* Bytes came for a socket of a traced proxy, whose worker had been kept from running for at least TAILOR_LATE_NS (it had been woken,
	 * pushed off its CPU or stopped): it sees them late. Only the first ones of a socket while it was. extra: TAILOR_PORTS(local, remote) as the proxy sees them. arg[0]: TCP sequence up to which bytes
	 * are there. */
	TAILOR_EVENT_ARRIVAL = 17,

	/* --- JVM (jvmagent/) ------------------------------------------------------------------- */

	/* A stop-the-world pause of the collector began (JVMTI GarbageCollectionStart). arg[0]: pauses so far.
	 * arg[1]: ns that the JVM's own counters say bringing the threads to a stop took, 0 unknown. */
	TAILOR_EVENT_GC_START = 32,
	/* It ended (GarbageCollectionFinish); the threads run again only after the safepoint ends. arg[0]: as in
	 * GC_START, arg[1]: its start time. text: "COLLECTOR\tCAUSE", in words of the GC log, for example "Serial young\tAllocation Failure"; "unknown"
	 * stands for either that is not certain. */
	TAILOR_EVENT_GC_FINISH = 33,
	/* A class was loaded; time is the end. arg[0]: ns from the class file being at hand (ClassFileLoadHook) to
	 * ClassLoad on the same thread, 0 where unknown. text: the class's name, for example "java.lang.String". */
	TAILOR_EVENT_CLASS_LOAD = 34,
	/* A class was prepared; time is the end. arg[0]: ns since its ClassLoad on the same thread, 0 where unknown. text: name. */
	TAILOR_EVENT_CLASS_PREPARE = 35,
	/* A Java thread started or got known. pid/tid: that thread. text: its name. */
	TAILOR_EVENT_THREAD_START = 36,
	/* A Java thread ended. */
	TAILOR_EVENT_THREAD_END = 37,
	/* A virtual thread runs on this (carrier) thread from now on, and no longer. arg[0]: its number, given by the agent, never 0,
	 * never given twice in a JVM. */
	TAILOR_EVENT_VTHREAD_MOUNT = 38,
	TAILOR_EVENT_VTHREAD_UNMOUNT = 39,
	/* The application says that this thread works for `request` from now on (Tailor.begin), and no longer (Tailor.end).
	 * arg[0]: number of the virtual thread that says so, 0: none. */
	TAILOR_EVENT_APP_BEGIN = 40,
	TAILOR_EVENT_APP_END = 41,
	/* What the JVM's own counters say of the safepoints since the last such event, written some 20 ms after one, collections' ones
	 * included. arg[0]: how many began, arg[1]: ns in those that ended, arg[2]: ns until all threads had stopped: one that is under way
	 * just then is counted here, and its time in the next event, whose arg[0] may then be 0. */
	TAILOR_EVENT_SAFEPOINTS = 42,

	/* --- proxy (proxy/) -------------------------------------------------------------------- */

	/* First byte of a request read from the client. pid/tid: the worker. arg[0]: client port, arg[1]: client
	 * IPv4 address (host order), 0 for others. */
	TAILOR_EVENT_REQUEST_BEGIN = 64,
	/* Its head was parsed. arg[0]: minor version of HTTP/1. text: "METHOD TARGET", cut where too long. arg[1]: 0; or, where the whole
	 * head was there at once, the time of the REQUEST_BEGIN that this event then stands for, too: the request's first one.
	 * arg[2] is then TAILOR_CLIENT of its arguments. A short head's two times are the same. */
	TAILOR_EVENT_REQUEST_PARSED = 65,
	/* An attempt was given to a server to which a connection must be made. extra: TAILOR_ATTEMPT(number, server, failover
	 * reason). arg[0]: the attempt's upstream local port, 0 while connecting. Attempt 0 is the first. */
	TAILOR_EVENT_ATTEMPT_BEGIN = 66,
	/* The attempt's connection is ready, its tag stored and the send about to be submitted. extra as above, arg[0]: local port.
	 * arg[1]: 1 when the connection was there and the attempt begins with this event, 0 when it had an ATTEMPT_BEGIN; what is sent
	 * as soon as it was parsed has the same time as its REQUEST_PARSED. */
	TAILOR_EVENT_ATTEMPT_SEND = 67,
	/* The kernel accepted the last byte of the attempt's request. extra, arg[0] as above. */
	TAILOR_EVENT_ATTEMPT_SENT = 68,
	/* The first byte of the attempt's response was read. extra, arg[0] as above. */
	TAILOR_EVENT_RESPONSE_BEGIN = 69,
	/* The last byte of the attempt's response was read; what was read at once has the same time as its RESPONSE_BEGIN. extra,
	 * arg[0] as above, arg[1]: bytes of the whole response, arg[2]: TAILOR_RESPONSE_...: the events that this one stands for, too. */
	TAILOR_EVENT_RESPONSE_END = 70,
	/* The attempt was given up. extra, arg[0] as above, arg[1]: enum tailor_attempt_end. */
	TAILOR_EVENT_ATTEMPT_END = 71,
	/* The first byte of the response was handed to the client's socket (send submitted); the time is that at which the bytes that
	 * made it possible were read, where that was just before. */
	TAILOR_EVENT_REPLY_BEGIN = 72,
	/* The client's socket accepted the last byte: the end of what the client observes. extra: TAILOR_ENDED(HTTP status, enum
	 * tailor_refusal), arg[0]: bytes sent to the client, arg[1]: enum tailor_request_end, arg[2]: TAILOR_ATTEMPT of the one that
	 * answered, or TAILOR_ATTEMPT_NONE. Always the request's last event. */
	TAILOR_EVENT_REQUEST_END = 73,

	/* Its head was parsed, and the server that it is for has as many requests as it may (limits.in_flight): it waits for
	 * one of them to end, until the next ATTEMPT_BEGIN or REPLY_BEGIN. */
	TAILOR_EVENT_REQUEST_QUEUED = 74,
	/* The client's socket had taken no more for a time worth telling, until now: written when it goes on. arg[0]: since when,
	 * arg[1]: bytes that waited for it, arg[2]: TAILOR_CLIENT_WAIT(ns of it in which the client's window was closed, ns in which
	 * the socket's own buffer was the limit), each in us, capped. extra: 0; or, where it stands for many waits that follow each
	 * other, from the first one's begin (or the response's, if TCP says so) to the last one's end, how long they were in sum, in us, and
	 * arg[1] is the most that waited for one. It is written when it is known to be over, but has the time of its end. */
	TAILOR_EVENT_CLIENT_WAIT = 75,
	/* The worker found, when it read the request's first bytes, that it had been kept from running: they may have come
	 * earlier than REQUEST_BEGIN says, but not before arg[0]. extra: client's port. arg[1]: by when they were there, as TCP says, which
	 * counts in ticks of the kernel's clock: up to two of them late, never early; 0: not known. */
	TAILOR_EVENT_REQUEST_LATE = 76,
	/* What one worker did about a stop of a server. It is written when that is known to be over, but has the time of its end, by whoever
	 * told. request: 0. extra: TAILOR_STOPPED(server, enum tailor_stop_kind
	 * (stop.h) by which it was noticed first, requests that were in flight there). arg[0]: when it began, by whoever told. arg[1]: TAILOR_STOP_TIMES(us
	 * from then until this worker noticed, us until the bytes of its last replay were handed to the kernel, 0: none were). arg[2]: TAILOR_STOP_MOVES(moved,
	 * not moved, the most frequent reason why not: enum tailor_not_moved). text: "CAUSE", as far as the JVM said it. */
	TAILOR_EVENT_SERVER_STOPPED = 77,

	/* --- any ------------------------------------------------------------------------------- */

	/* Text that belongs to the event before it in the same channel; see struct tailor_text. */
	TAILOR_EVENT_TEXT = 128,
};

/* A task as one value: thread group (process) id above, thread id below; both as in the initial pid namespace. */
#define TAILOR_TASK(tgid, tid) (((uint64_t)(uint32_t)(tgid) << 32) | (uint32_t)(tid))
#define TAILOR_TASK_PID(task) ((uint32_t)((task) >> 32))
#define TAILOR_TASK_TID(task) ((uint32_t)(task))

/* Both ports of a TCP connection in host byte order, as the end that the event is about sees them. */
#define TAILOR_PORTS(local, remote) (((uint32_t)(uint16_t)(local) << 16) | (uint16_t)(remote))
#define TAILOR_PORTS_LOCAL(ports) ((uint16_t)((ports) >> 16))
#define TAILOR_PORTS_REMOTE(ports) ((uint16_t)(ports))

/* Attempt number, index of the server in the config and enum tailor_failover_reason that caused it. */
#define TAILOR_ATTEMPT(number, server, reason)                                                     \
	(((uint32_t)(uint8_t)(number) << 24) | ((uint32_t)(uint8_t)(server) << 16) | (uint16_t)(reason))
#define TAILOR_ATTEMPT_NUMBER(attempt) ((uint8_t)((attempt) >> 24))
#define TAILOR_ATTEMPT_SERVER(attempt) ((uint8_t)((attempt) >> 16))
#define TAILOR_ATTEMPT_REASON(attempt) ((uint16_t)(attempt))
#define TAILOR_ATTEMPT_NONE TAILOR_ATTEMPT(UINT8_MAX, 0, 0)

/* In extra of REQUEST_END. */
#define TAILOR_ENDED(status, refusal) ((uint32_t)(uint16_t)(refusal) << 16 | (uint16_t)(status))
#define TAILOR_ENDED_STATUS(extra) ((uint16_t)(extra))
#define TAILOR_ENDED_REFUSAL(extra) ((uint16_t)((extra) >> 16)) /* enum tailor_refusal */

/* In arg[2] of RESPONSE_END: neither event is written then, and both have its time. */
#define TAILOR_RESPONSE_BEGAN 1   /* RESPONSE_BEGIN */
#define TAILOR_RESPONSE_REPLIED 2 /* REPLY_BEGIN */

/* A client's port and IPv4 address, as in REQUEST_BEGIN. */
#define TAILOR_CLIENT(port, ip) (((uint64_t)(uint16_t)(port) << 32) | (uint32_t)(ip))
#define TAILOR_CLIENT_PORT(client) ((uint16_t)((client) >> 32))
#define TAILOR_CLIENT_IP(client) ((uint32_t)(client))

/* Where TAILOR_EVENT_ARRIVAL and TAILOR_EVENT_REQUEST_LATE begin. */
#define TAILOR_LATE_NS 1000000

/* In extra of WAKEUP. */
/* The woken task's cgroup had used up its CPU quota: it must wait for the next period. Before Linux 6.18 only: there it first gets a
 * CPU all the same, and leaves it as TAILOR_TASK_THROTTLED when it is to return to user mode. */
#define TAILOR_WAKEUP_THROTTLED 1
/* It was stopped until then (SIGSTOP or a tracer): said again here, as its SWITCH_OUT may be long past. */
#define TAILOR_WAKEUP_STOPPED 2

/* In extra of SWITCH_OUT. call: x86-64 system call number + 1; TAILOR_CALL_NONE: an exception (a page fault) or an interrupt; 0: not
 * known. */
#define TAILOR_CALL_NONE UINT16_MAX
#define TAILOR_SWITCH(state, call) ((uint32_t)(uint8_t)(state) | (uint32_t)(uint16_t)(call) << 16)
#define TAILOR_SWITCH_STATE(extra) ((uint8_t)(extra)) /* enum tailor_task_state */
#define TAILOR_SWITCH_CALL(extra) ((uint16_t)((extra) >> 16))

/* In arg[2] of SYSCALL_WRITE: enum tailor_unsent and bytes. */
#define TAILOR_UNSENT(why, bytes) ((uint64_t)(why) << 32 | (uint32_t)(bytes))
#define TAILOR_UNSENT_WHY(unsent) ((uint32_t)((unsent) >> 32))
#define TAILOR_UNSENT_BYTES(unsent) ((uint32_t)(unsent))

/* In extra of INTERRUPT. number: the interrupt's, or the softirq's vector. */
#define TAILOR_INTERRUPT(soft, number) ((uint32_t)(soft) << 31 | ((uint32_t)(number) & 0x7fffffff))
#define TAILOR_INTERRUPT_SOFT(extra) ((extra) >> 31)
#define TAILOR_INTERRUPT_NUMBER(extra) ((extra) & 0x7fffffff)

/* In arg[2] of CLIENT_WAIT, both in us. */
#define TAILOR_CLIENT_WAIT(window_us, buffer_us) ((uint64_t)(uint32_t)(window_us) << 32 | (uint32_t)(buffer_us))
#define TAILOR_CLIENT_WAIT_WINDOW_US(wait) ((uint32_t)((wait) >> 32))
#define TAILOR_CLIENT_WAIT_BUFFER_US(wait) ((uint32_t)(wait))

/* In SERVER_STOPPED. Counts and times are capped. */
#define TAILOR_STOPPED(server, kind, in_flight) ((uint32_t)(uint8_t)(server) << 24 | (uint32_t)(uint8_t)(kind) << 16 | (uint16_t)(in_flight))
#define TAILOR_STOPPED_SERVER(extra) ((uint8_t)((extra) >> 24))
#define TAILOR_STOPPED_KIND(extra) ((uint8_t)((extra) >> 16))
#define TAILOR_STOPPED_IN_FLIGHT(extra) ((uint16_t)(extra))
#define TAILOR_STOP_TIMES(noticed_us, replayed_us) ((uint64_t)(uint32_t)(noticed_us) << 32 | (uint32_t)(replayed_us))
#define TAILOR_STOP_NOTICED_US(times) ((uint32_t)((times) >> 32))
#define TAILOR_STOP_REPLAYED_US(times) ((uint32_t)(times))
#define TAILOR_STOP_MOVES(moved, not_moved, why) ((uint64_t)(uint16_t)(moved) << 32 | (uint32_t)(uint16_t)(not_moved) << 16 | (uint16_t)(why))
#define TAILOR_STOP_MOVED(moves) ((uint16_t)((moves) >> 32))
#define TAILOR_STOP_NOT_MOVED(moves) ((uint16_t)((moves) >> 16))
#define TAILOR_STOP_WHY_NOT(moves) ((uint16_t)(moves))

/* The state a task was in when it lost its CPU; the kernel's __state folded to what attribution needs. */
enum tailor_task_state {
	TAILOR_TASK_RUNNABLE = 0,      /* preempted or yielded */
	TAILOR_TASK_SLEEPING = 1,      /* interruptible: futex, epoll, sleep, socket */
	TAILOR_TASK_UNINTERRUPTIBLE = 2, /* disk, page fault */
	TAILOR_TASK_STOPPED = 3,       /* SIGSTOP or a tracer */
	TAILOR_TASK_DEAD = 4,
	TAILOR_TASK_OTHER = 5,
	/* Runnable, but its cgroup had used up its CPU quota. No WAKEUP says when it has some again: the next is its SWITCH_IN. */
	TAILOR_TASK_THROTTLED = 6,
};

/* Why TCP kept bytes that a write had given it. */
enum tailor_unsent {
	TAILOR_UNSENT_NONE = 0,       /* it kept none */
	TAILOR_UNSENT_NAGLE = 1,      /* less than a segment, and earlier bytes not acknowledged (RFC 9293 3.7.4) */
	TAILOR_UNSENT_CORK = 2,       /* TCP_CORK or MSG_MORE */
	TAILOR_UNSENT_WINDOW = 3,     /* the peer's receive window was full */
	TAILOR_UNSENT_CONGESTION = 4, /* the congestion window was full */
	TAILOR_UNSENT_OTHER = 5,      /* pacing, small queues, memory */
};

/* Why an attempt after the first was begun. */
enum tailor_failover_reason {
	TAILOR_FAILOVER_NONE = 0,    /* the first attempt */
	TAILOR_FAILOVER_GC = 1,      /* the server's JVM began a collection */
	TAILOR_FAILOVER_CONNECT = 2, /* the server refused or could not be reached */
	TAILOR_FAILOVER_CLOSED = 3,  /* the connection died before the first response byte */
	TAILOR_FAILOVER_SAFEPOINT = 4, /* the server's JVM stopped its threads for something else, or for what is not known yet */
	TAILOR_FAILOVER_STALL = 5,   /* the server's process stands still */
};

enum tailor_attempt_end {
	TAILOR_ATTEMPT_END_LOST = 1,    /* the other attempt answered first */
	TAILOR_ATTEMPT_END_CONNECT = 2, /* could not connect */
	TAILOR_ATTEMPT_END_CLOSED = 3,  /* the server closed or reset */
	TAILOR_ATTEMPT_END_BAD = 4,     /* the response was not HTTP/1.1 */
	TAILOR_ATTEMPT_END_CLIENT = 5,  /* the client went away */
	TAILOR_ATTEMPT_END_TIMEOUT = 6,
};

enum tailor_request_end {
	TAILOR_REQUEST_END_DONE = 0,    /* a server's response was delivered whole */
	TAILOR_REQUEST_END_REFUSED = 1, /* answered by the proxy itself (4xx, 5xx) */
	TAILOR_REQUEST_END_CLIENT = 2,  /* the client went away first, or a stop of the proxy did not wait for it any longer */
	TAILOR_REQUEST_END_CUT = 3,     /* the server died in mid-response; the client's connection was closed */
};

/* Why the proxy answered a request itself. */
enum tailor_refusal {
	TAILOR_REFUSED_NONE = 0,        /* it did not */
	TAILOR_REFUSED_MALFORMED = 1,   /* 400, 411, 417, 501, 505: not a request that can be passed on */
	TAILOR_REFUSED_HEAD = 2,        /* 414, 431: its head is beyond the limits */
	TAILOR_REFUSED_BODY = 3,        /* 413: body_bytes_max */
	TAILOR_REFUSED_CLIENT_LATE = 4, /* 408: its head or body did not come in time */
	TAILOR_REFUSED_DEADLINE = 5,    /* 504, 408 where the client was still sending: request_timeout_ns */
	TAILOR_REFUSED_CONNECTIONS = 6, /* 503: one connection too many */
	TAILOR_REFUSED_PER_ADDRESS = 7, /* 429: one too many from that address */
	TAILOR_REFUSED_QUEUE_FULL = 8,  /* 503: no place at a server, and none in the queue */
	TAILOR_REFUSED_QUEUE_LATE = 9,  /* 503: no place at a server came free in queue_timeout_ns */
	TAILOR_REFUSED_NO_SERVER = 10,  /* 503: no server takes connections */
	TAILOR_REFUSED_SERVER_FAILED = 11, /* 502: the server broke off, or answered what is not HTTP/1.1 */
	TAILOR_REFUSED_SERVER_LATE = 12,   /* 504: the server did not answer in time */
	TAILOR_REFUSED_MAX_FORWARDS = 13,  /* 200 to OPTIONS, 501 to TRACE: it may not be forwarded once more */
	TAILOR_REFUSALS = 14,              /* how many there are */
};

/*
 * One event, one cache line. `sequence` belongs to the channel (channel.h); producers fill the rest.
 * pid and tid are those of the initial pid namespace for kernel events and those the process itself
 * sees for JVM events; the collector maps the latter.
 */
struct tailor_event {
	uint64_t sequence;
	uint8_t kind;  /* enum tailor_event_kind */
	uint8_t texts; /* how many TAILOR_EVENT_TEXT slots follow it in the same channel */
	uint16_t cpu;
	uint32_t extra;
	uint64_t time_ns;
	uint64_t request; /* 0: none known */
	uint32_t pid;
	uint32_t tid;
	uint64_t arg[3];
};

/* Bytes of text a TAILOR_EVENT_TEXT slot holds, and the most slots an event may be followed by. */
#define TAILOR_TEXT_BYTES 52
#define TAILOR_TEXTS_MAX 4

/*
 * A slot of text behind an event with `texts` > 0. Shares its first nine bytes with struct
 * tailor_event, so a reader that starts in the middle recognizes it by its kind.
 */
struct tailor_text {
	uint64_t sequence;
	uint8_t kind;   /* TAILOR_EVENT_TEXT */
	uint8_t length; /* used bytes of text, at most TAILOR_TEXT_BYTES; not terminated */
	uint16_t reserved;
	char text[TAILOR_TEXT_BYTES];
};

_Static_assert(sizeof(struct tailor_event) == 64, "an event is one cache line");
_Static_assert(sizeof(struct tailor_text) == sizeof(struct tailor_event), "text takes a slot of its own");
_Static_assert(__builtin_offsetof(struct tailor_event, kind) == 8, "event layout");
_Static_assert(__builtin_offsetof(struct tailor_text, kind) == 8, "event and text share their head");
_Static_assert(__builtin_offsetof(struct tailor_event, extra) == 12, "event layout");
_Static_assert(__builtin_offsetof(struct tailor_event, time_ns) == 16, "event layout");
_Static_assert(__builtin_offsetof(struct tailor_event, arg) == 40, "event layout");

#endif /* TAILOR_EVENT_H */
