/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/attempt.h"

#include <stdio.h>

#include "base/units.h"
#include "correlate/application.h"
#include "correlate/client.h"
#include "correlate/cover.h"
#include "correlate/owner.h"
#include "correlate/path.h"
#include "correlate/standstill.h"
#include "correlate/wire.h"
#include "correlate/worker.h"

/* Without the worker's scheduling: taking an idle connection from the pool takes less, a connect takes more. */
#define CONNECT_NS 20000
/* Without kernel events: a response that came in one piece is read within this. */
#define ONE_PIECE_NS 50000

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	if (value < low)
		return low;
	return value > high ? high : value;
}

static uint32_t pid_of(const struct correlation *correlation, const struct tailor_attempt *attempt,
                       const struct wire *wire)
{
	const struct tailor_window *window = correlation->window;

	if (attempt->server < window->server_count && window->servers[attempt->server].pid)
		return window->servers[attempt->server].pid;
	if (wire && wire->last_write)
		return wire->last_write->pid;
	return wire && wire->receive ? wire->receive->pid : 0;
}

static const char *name_of(const struct correlation *correlation, const struct tailor_attempt *attempt)
{
	return attempt->server < correlation->window->server_count ? correlation->window->servers[attempt->server].name
	                                                           : "the server";
}

static void cut_connect(struct correlation *correlation, uint64_t from_ns, uint64_t to_ns)
{
	struct worker_story story = {.working = TAILOR_CAUSE_PROXY, .waiting = TAILOR_CAUSE_CONNECTION_WAIT};

	/* The worker sleeps here only while the connection is being made. */
	if (worker_recorded(&correlation->index) ? worker_slept(&correlation->index, from_ns, to_ns)
	                                         : to_ns - from_ns > CONNECT_NS)
		story.working = TAILOR_CAUSE_CONNECTION_WAIT;
	worker_cover(&correlation->index, &correlation->stalls, &correlation->spans, from_ns, to_ns, &story);
}

/* "of the response, bytes 2896..4343, sent 3 times again". `first`: sequence of its first byte. */
static void add_retransmission(struct correlation *correlation, const struct resent *resent, const char *what, uint32_t first,
                               uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = span_list_add(&correlation->spans, from_ns, to_ns, TAILOR_CAUSE_RETRANSMISSION);
	uint32_t offset = resent->sequence - first;

	span_detail(span, "of the %s", what);
	if (resent->bytes > 0 && (int32_t)offset >= 0)
		span_detail(span, "of the %s, bytes %u..%u", what, offset, offset + resent->bytes - 1);
	if (resent->times > 1)
		span_detail_more(span, "sent %u times again", resent->times);
}

/* From the send to the moment from which on the request was with the server or on its way. Returns that moment. */
static uint64_t cut_send(struct correlation *correlation, const struct wire *wire, uint64_t send_ns, uint64_t end_ns)
{
	static const struct worker_story story = {.working = TAILOR_CAUSE_PROXY,
	                                          .working_detail = "sending the request",
	                                          .waiting = TAILOR_CAUSE_REQUEST_TRANSIT,
	                                          .waiting_detail = "the socket took no more"};
	uint64_t limit = wire->receive ? clamp(wire->receive->time_ns, send_ns, end_ns) : end_ns;
	uint64_t sent, resent;

	if (wire->request_sent_ns == 0)
		return send_ns;
	sent = clamp(wire->request_sent_ns, send_ns, limit);
	worker_cover(&correlation->index, &correlation->stalls, &correlation->spans, send_ns, sent, &story);
	resent = clamp(wire->request_resent.time_ns, sent, limit);
	add_retransmission(correlation, &wire->request_resent, "request", wire->request_sequence, sent, resent);
	return resent;
}

static struct path path_for(struct correlation *correlation, const struct tailor_attempt *attempt,
                            const struct wire *wire, uint64_t floor_ns)
{
	return (struct path){
	        .index = &correlation->index,
	        .pauses = &correlation->pauses,
	        .traffic = &correlation->traffic,
	        .overlays = &correlation->overlays,
	        .stalls = &correlation->stalls,
	        .spans = &correlation->spans,
	        .wire = wire,
	        .server_pid = pid_of(correlation, attempt, wire),
	        .proxy_pid = correlation->window->record.worker_pid,
	        .doubt_from_ns = client_doubt_from(correlation->window),
	        .floor_ns = floor_ns,
	};
}

static const char *why_unsent(const struct wire *wire)
{
	switch (wire->unsent) {
	case TAILOR_UNSENT_NAGLE: return ", waiting for an ACK (Nagle)";
	case TAILOR_UNSENT_CORK: return ", held back by TCP_CORK or MSG_MORE";
	case TAILOR_UNSENT_WINDOW: return ", the proxy's receive window was full";
	case TAILOR_UNSENT_CONGESTION: return ", the congestion window was full";
	case TAILOR_UNSENT_OTHER: return ", held back by pacing, a queue or memory";
	case TAILOR_UNSENT_NONE: break;
	}
	return wire->waited_for_ack ? ", waiting for an ACK (Nagle)" : "";
}

static void cut_buffered(struct correlation *correlation, const struct wire *wire, uint64_t from_ns, uint64_t to_ns)
{
	struct tailor_span *span = span_list_add(&correlation->spans, from_ns, to_ns, TAILOR_CAUSE_RESPONSE_BUFFERED);

	span_thread(span, wire->last_write->pid, wire->last_write->tid,
	            thread_name(correlation->window, wire->last_write->tid));
	if (wire->buffered_bytes)
		span_detail(span, "%llu bytes%s", (unsigned long long)wire->buffered_bytes, why_unsent(wire));
}

/* From the server's last act to the last byte at the proxy. */
static void cut_response(struct correlation *correlation, const struct wire *wire, uint64_t from_ns, uint64_t to_ns)
{
	static const struct worker_story story = {.working = TAILOR_CAUSE_PROXY,
	                                          .working_detail = "reading the response",
	                                          .busy_detail = "it was at work already",
	                                          .waiting = TAILOR_CAUSE_RESPONSE_TRANSIT};
	uint64_t sent = clamp(wire->response_sent_ns, from_ns, to_ns);
	uint64_t resent = clamp(wire->response_resent.time_ns, from_ns, to_ns);

	if (sent < resent && sent > from_ns) {
		cut_buffered(correlation, wire, from_ns, sent);
		from_ns = sent;
	}
	add_retransmission(correlation, &wire->response_resent, "response", (uint32_t)wire->first_write->arg[0], from_ns, resent);
	from_ns = clamp(resent, from_ns, to_ns);
	if (sent > from_ns)
		cut_buffered(correlation, wire, from_ns, sent);
	from_ns = clamp(sent, from_ns, to_ns);
	if (worker_recorded(&correlation->index))
		worker_cover(&correlation->index, &correlation->stalls, &correlation->spans, from_ns, to_ns, &story);
	else
		span_list_add(&correlation->spans, from_ns, to_ns, TAILOR_CAUSE_RESPONSE_TRANSIT);
}

/* Between those who are known to have worked for the request. */
static void cut_between(struct correlation *correlation, uint32_t pid, uint64_t from_ns, uint64_t to_ns, const char *detail)
{
	struct tailor_span span = {.cause = TAILOR_CAUSE_SERVER};

	span_detail(&span, "%s", detail);
	if (from_ns < to_ns)
		cover_off_cpu(&correlation->spans, &correlation->pauses, pid, from_ns, to_ns, &span);
}

/* What a walk that is only inferred said of [from_ns, ...) beside the application's word. */
static void take_back(struct correlation *correlation, size_t first_span, uint64_t from_ns)
{
	for (size_t i = first_span; i < correlation->spans.count; i++) {
		struct tailor_span *span = &correlation->spans.spans[i];

		if (span->start_ns < from_ns)
			continue;
		switch (span->cause) {
		case TAILOR_CAUSE_ON_CPU:
		case TAILOR_CAUSE_PAGE_FAULT_MINOR:
		case TAILOR_CAUSE_PAGE_FAULT_MAJOR:
		case TAILOR_CAUSE_CLASS_LOADING:
			span->cause = TAILOR_CAUSE_SERVER;
			span_detail(span, "on a CPU, perhaps for this request: the application did not say");
			break;
		default: break;
		}
	}
}

/* It is known who worked for the request: first comes what was before, in the end what was after. */
static void cut_told(struct correlation *correlation, const struct testimony *testimony, struct path path, const struct wire *wire,
                     uint64_t done)
{
	const char *gap = testimony->by_application ? "between what the application says that it worked for this request"
	                                            : "the virtual thread was parked, or no carrier was free";
	uint64_t floor = path.floor_ns, at = done, until;
	const struct told *told = testimony_before(testimony, at, &until);
	uint64_t received = wire->first_receive->time_ns;
	uint32_t first = testimony->first_event;
	size_t before = correlation->spans.count;

	correlation->join = TAILOR_JOIN_CERTAIN;
	if (!told && testimony->by_application) {
		path.floor_ns = until > floor ? until : floor;
		path_walk(&path, wire->last_write->tid, wire->last_write_event, done);
		if (path.inferred)
			take_back(correlation, before, received);
		path.floor_ns = floor;
		at = path.now_ns > until ? path.now_ns : until;
	}
	while (at > floor) {
		told = testimony_before(testimony, at, &until);
		if (!told && until == 0)
			break;
		if (told)
			path_cover(&path, told->tid, clamp(told->from_ns, floor, at), at);
		else
			cut_between(correlation, path.server_pid, clamp(until, floor, at), at, gap);
		at = clamp(told ? told->from_ns : until, floor, at);
	}
	path = (struct path){.index = path.index, .pauses = path.pauses, .traffic = path.traffic, .overlays = path.overlays, .stalls = path.stalls, .spans = path.spans, .wire = wire,
	                     .server_pid = path.server_pid, .proxy_pid = path.proxy_pid, .floor_ns = floor};
	before = correlation->spans.count;
	if (at > floor)
		path_walk(&path, correlation->window->events[first].event.tid, first, at);
	if (path.inferred)
		take_back(correlation, before, received);
}

/* Who worked for it is not known, and what the kernel saw of the carriers would mislead. */
static void cut_refused(struct correlation *correlation, struct path path, const struct wire *wire, uint64_t done)
{
	uint64_t from = clamp(wire->receive->time_ns, path.floor_ns, done);

	correlation->join = TAILOR_JOIN_INFERRED;
	cut_between(correlation, path.server_pid, from, done, "in virtual threads, whose mounts on their carriers are not known");
	if (from > path.floor_ns)
		path_walk(&path, wire->receive->tid, wire->receive_event, from);
}

/* The server's writes were seen: the critical path can be walked. */
static void cut_seen(struct correlation *correlation, const struct tailor_attempt *attempt, const struct wire *wire,
                     uint64_t floor_ns, uint64_t end_ns)
{
	uint64_t done = wire->last_write->time_ns;
	struct path path = path_for(correlation, attempt, wire, floor_ns);
	struct testimony testimony;

	/* The bytes left while the write was still going on: what it did after that delayed nobody. */
	if (wire->response_sent_ns && wire->response_sent_ns < done)
		done = wire->response_sent_ns;
	done = clamp(done, floor_ns, end_ns);
	if (testimony_hear(&testimony, correlation->window, wire, path.server_pid) != 0)
		correlation->spans.failed = 1;
	switch (testimony.telling) {
	case TELLING_WHO: cut_told(correlation, &testimony, path, wire, done); break;
	case TELLING_REFUSED: cut_refused(correlation, path, wire, done); break;
	case TELLING_NOTHING:
		path_walk(&path, wire->last_write->tid, wire->last_write_event, done);
		correlation->join = owner_confidence(&path);
		break;
	}
	testimony_free(&testimony);
	if (wire->first_receive && wire->last_write->time_ns > wire->first_receive->time_ns)
		correlation->server_ns = wire->last_write->time_ns - wire->first_receive->time_ns;
	cut_response(correlation, wire, done, end_ns);
}

static int events_lost(const struct tailor_window *window, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < window->loss_count; i++) {
		if (window->losses[i].from_ns < to_ns && window->losses[i].to_ns > from_ns)
			return 1;
	}
	return 0;
}

/* At the server, and no write of it was seen: only collections are known, from the agent. */
static void cut_dark(struct correlation *correlation, uint32_t pid, uint64_t from_ns, uint64_t to_ns)
{
	const struct tailor_window *window = correlation->window;
	struct tailor_span span = {.cause = TAILOR_CAUSE_SERVER};

	if (!(window->missing & TAILOR_MISSING_KERNEL) && events_lost(window, from_ns, to_ns)) {
		span.cause = TAILOR_CAUSE_UNEXPLAINED;
		span_detail(&span, "at the server; events were lost");
	}
	if (from_ns < to_ns)
		cover_off_cpu(&correlation->spans, &correlation->pauses, pid, from_ns, to_ns, &span);
}

/* As far as the receiving thread's path to the request is known; returns until when. */
static uint64_t cut_arrival(struct correlation *correlation, const struct tailor_attempt *attempt,
                            const struct wire *wire, uint64_t floor_ns, uint64_t end_ns)
{
	struct path path = path_for(correlation, attempt, wire, floor_ns);

	if (!wire->receive || wire->receive->time_ns <= floor_ns || wire->receive->time_ns >= end_ns)
		return floor_ns;
	path_walk(&path, wire->receive->tid, wire->receive_event, wire->receive->time_ns);
	return wire->receive->time_ns;
}

static void cut_unseen(struct correlation *correlation, const struct tailor_attempt *attempt, const struct wire *wire,
                       uint64_t floor_ns, uint64_t end_ns)
{
	uint64_t first = attempt->response_begin_ns ? clamp(attempt->response_begin_ns, floor_ns, end_ns) : end_ns;
	uint64_t from = cut_arrival(correlation, attempt, wire, floor_ns, first);

	cut_dark(correlation, pid_of(correlation, attempt, wire), from, first);
	if (end_ns - first <= ONE_PIECE_NS)
		span_list_add(&correlation->spans, first, end_ns, TAILOR_CAUSE_RESPONSE_TRANSIT);
	else
		span_detail(span_list_add(&correlation->spans, first, end_ns, TAILOR_CAUSE_UNEXPLAINED),
		            "the response came in pieces; why is not recorded");
}

void attempt_answered(struct correlation *correlation, const struct tailor_attempt *attempt, uint64_t end_ns)
{
	uint64_t send = attempt->send_ns ? clamp(attempt->send_ns, attempt->begin_ns, end_ns) : end_ns;
	uint64_t floor;
	struct wire wire;

	wire_read(correlation->window, attempt, end_ns, &wire);
	cut_connect(correlation, attempt->begin_ns, send);
	floor = cut_send(correlation, &wire, send, end_ns);
	if (wire.last_write)
		cut_seen(correlation, attempt, &wire, floor, end_ns);
	else
		cut_unseen(correlation, attempt, &wire, floor, end_ns);
}

static void describe_move(const struct correlation *correlation, const struct tailor_attempt *attempt,
                          const struct tailor_attempt *next, const struct standstill *standstill, struct tailor_span *span)
{
	const char *from = name_of(correlation, attempt), *to = name_of(correlation, next);
	char what[80], duration[32];

	switch (next->reason) {
	case TAILOR_FAILOVER_CONNECT: span_detail(span, "%s could not be reached, moved to %s", from, to); return;
	case TAILOR_FAILOVER_CLOSED: span_detail(span, "%s closed the connection, moved to %s", from, to); return;
	default: break;
	}
	standstill_describe(standstill, what, sizeof(what));
	if (!standstill->start_ns) {
		span_detail(span, "%s %s, moved to %s", from, what, to);
		return;
	}
	tailor_format_duration(duration, sizeof(duration), next->begin_ns - standstill->start_ns);
	span_detail(span, "server %s %s, moved to %s after %s", from, what, to, duration);
}

void attempt_left(struct correlation *correlation, const struct tailor_attempt *attempt,
                  const struct tailor_attempt *next)
{
	uint64_t moved = next->begin_ns;
	uint64_t send = attempt->send_ns ? clamp(attempt->send_ns, attempt->begin_ns, moved) : attempt->begin_ns;
	struct standstill standstill = standstill_before(correlation, pid_of(correlation, attempt, NULL), send, next);
	uint64_t lost = standstill.start_ns ? clamp(standstill.start_ns, send, moved) : send, floor;
	struct tailor_span *span;
	struct wire wire;

	cut_connect(correlation, attempt->begin_ns, send);
	if (lost > send) {
		wire_read(correlation->window, attempt, lost, &wire);
		floor = cut_send(correlation, &wire, send, lost);
		floor = cut_arrival(correlation, attempt, &wire, floor, lost);
		cut_dark(correlation, pid_of(correlation, attempt, NULL), floor, lost);
	}
	span = span_list_add(&correlation->spans, lost, moved, TAILOR_CAUSE_FAILOVER_WAIT);
	/* No thread: the response waited for the whole server. Reports take its name from here. */
	span_thread(span, pid_of(correlation, attempt, NULL), 0, name_of(correlation, attempt));
	describe_move(correlation, attempt, next, &standstill, span);
}
