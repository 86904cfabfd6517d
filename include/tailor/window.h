/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The correlator's whole input: one request as the proxy recorded it, the events around it, and what is
 * known to be missing. The collector fills it; because it is plain data, a recorded window can be
 * replayed in a test.
 */
#ifndef TAILOR_WINDOW_H
#define TAILOR_WINDOW_H

#include <tailor/event.h>
#include <tailor/timeline.h>

#define TAILOR_ATTEMPTS_MAX 4

/* One exchange with one server. Times are 0 where that point was not reached. */
struct tailor_attempt {
	uint8_t server;  /* index into window.servers */
	uint16_t reason; /* enum tailor_failover_reason */
	uint16_t port;   /* proxy's local port of the connection, 0 unknown */
	uint8_t end;     /* enum tailor_attempt_end, 0: it answered or is still open */
	uint64_t begin_ns;
	uint64_t send_ns;
	uint64_t sent_ns;
	uint64_t response_begin_ns;
	uint64_t response_end_ns;
	uint64_t end_ns;
};

/* A time in which the client's socket took no more (TAILOR_EVENT_CLIENT_WAIT), or many of them with little in between. */
#define TAILOR_CLIENT_WAITS_MAX 8
struct tailor_client_wait {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t bytes;     /* that waited for it; of many waits, the most */
	uint32_t window_us; /* of it, with the client's window closed */
	uint32_t buffer_us; /* of it, with the socket's own buffer as the limit */
	uint32_t waited_us; /* of it, in sum, where it is many waits; 0: it is one */
};

/* What the request channel says about one request. Owned by value. */
struct tailor_record {
	struct tailor_request request;
	uint32_t worker_pid; /* the proxy's worker that carried it */
	uint32_t worker_tid;
	uint32_t client_ip; /* IPv4 in host order, 0 for others */
	uint16_t client_port;
	uint8_t minor;      /* of the request's HTTP/1.x; with parsed_ns */
	uint8_t refusal;    /* enum tailor_refusal: why the proxy answered it itself */
	uint64_t parsed_ns;
	uint64_t queued_ns; /* when it began to wait for a place at a server; 0: it did not */
	uint64_t reply_begin_ns;
	uint64_t late_from_ns; /* the worker was held up when the request came, which was not before this; 0: it was not */
	uint64_t late_there_ns; /* by when it was there all the same, as TCP says; 0: not known */
	uint8_t client_waits; /* used entries of client_wait[] */
	uint8_t attempts; /* used entries of attempt[] */
	int8_t answered;  /* index of the attempt whose response reached the client, -1: none */
	struct tailor_attempt attempt[TAILOR_ATTEMPTS_MAX];
	struct tailor_client_wait client_wait[TAILOR_CLIENT_WAITS_MAX]; /* in order; of more, neighbours are one, and of those that are not, the longest are kept */
};

/*
 * The attempt for which the proxy answered 502 or 504 itself: of several, the one that was given up last, and not always the one that
 * began last. -1: there was none.
 */
static inline int tailor_failed_attempt(const struct tailor_record *record)
{
	int failed = -1;

	if (!record->refusal || (record->request.status != 502 && record->request.status != 504))
		return -1;
	for (int i = 0; i < record->attempts; i++) {
		if (record->attempt[i].end_ns && (failed < 0 || record->attempt[i].end_ns >= record->attempt[failed].end_ns))
			failed = i;
	}
	return failed;
}

struct tailor_window_event {
	struct tailor_event event;
	const char *text; /* terminated; NULL where the event has none or its text was lost */
};

/* A receive or write at a server (TAILOR_EVENT_RECEIVE, TAILOR_EVENT_SYSCALL_WRITE) before the window's events. */
struct tailor_window_point {
	uint64_t time_ns;
	uint64_t request; /* 0: of somebody who did not come through the proxy */
	uint32_t pid;
	uint32_t ports; /* TAILOR_PORTS(local, remote) */
	uint8_t receives;
};

static inline int tailor_is_point(const struct tailor_event *event)
{
	return event->kind == TAILOR_EVENT_RECEIVE || event->kind == TAILOR_EVENT_SYSCALL_WRITE;
}

static inline struct tailor_window_point tailor_point_of(const struct tailor_event *event)
{
	return (struct tailor_window_point){.time_ns = event->time_ns,
	                                    .request = event->request,
	                                    .pid = event->pid,
	                                    .ports = event->extra,
	                                    .receives = event->kind == TAILOR_EVENT_RECEIVE};
}

/* Whether the event tells, of a thread that is switched in later, since when and why it was ready for that. */
static inline int tailor_is_earlier_scheduling(const struct tailor_event *event)
{
	return event->kind == TAILOR_EVENT_WAKEUP || event->kind == TAILOR_EVENT_SWITCH_OUT;
}

struct tailor_window_server {
	char name[TAILOR_SERVER_NAME_BYTES];
	uint32_t pid;  /* 0 unknown */
	uint16_t port;
};

struct tailor_window_thread {
	uint32_t pid;
	uint32_t tid;
	char name[TAILOR_THREAD_NAME_BYTES];
};

/* A file that is mapped into a process, for the page faults that the window has. */
struct tailor_window_mapping {
	uint32_t pid;
	uint64_t start; /* addresses */
	uint64_t end;
	char name[64]; /* the path's last components, "" for memory without a file */
};

/* All pointers belong to whoever made the window and outlive the call that gets it. */
struct tailor_window {
	struct tailor_record record;
	const struct tailor_window_event *events; /* ordered by time_ns; some before begin_ns and after end_ns too */
	size_t event_count;
	const struct tailor_window_point *earlier; /* in no order: who has been at the servers for long is known by these alone */
	size_t earlier_count;
	const struct tailor_event *earlier_scheduling; /* wake-ups and switches out before the window's events, in no order */
	size_t earlier_scheduling_count;
	uint64_t earlier_whole_ns; /* from when on those are all there were */
	const struct tailor_loss *losses;
	size_t loss_count;
	const struct tailor_window_server *servers;
	size_t server_count;
	const struct tailor_window_thread *threads; /* ordered by tid */
	size_t thread_count;
	const struct tailor_window_mapping *mappings; /* ordered by pid, start */
	size_t mapping_count;
	uint32_t missing; /* enum tailor_missing bits known before the window was read */
};

#endif /* TAILOR_WINDOW_H */
