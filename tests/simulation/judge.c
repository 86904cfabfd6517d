/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tailor/window.h>

#include "kernel.h"
#include "traffic.h"

#define SLOTS (1u << 11) /* read after each turn of a worker */
#define RECORDS (1u << 14)
/* A server that refused is believed to be down for at most so long (server.c of the proxy: 2 s). */
#define DOWN_NS (2200 * MS)
/* Or for so long behind the time that a connection may take. */
#define DOWN_BEFORE_NS (110 * MS)

/* The server's port in tags of others. */
#define FOREIGN 1

/* A request as its events tell it. */
struct record {
	uint64_t id;
	struct request *request; /* NULL: its head was never whole, or nobody's */
	bool began, ended, at_stop;
	uint8_t attempts, sent, ended_attempts, responses;
	uint8_t placed; /* attempts at a server, as bits */
	uint8_t server[TAILOR_ATTEMPTS_MAX]; /* of each attempt */
	bool queued, late;
	bool moved, failed_connect, failed_closed, failed_bad, failed_timeout, down;
	uint16_t status;
	uint64_t bytes;
	enum tailor_request_end how;
	uint32_t winner;
	uint64_t began_ns;
	unsigned int client_waits, long_waits_before;
	uint64_t client_waited_ns; /* until when the last one was */
};

struct judge_figures judge_figures;

static struct tailor_channel channels[TAILOR_PROXY_WORKERS_MAX];
static uint64_t positions[TAILOR_PROXY_WORKERS_MAX];
static _Alignas(64) struct tailor_channel_head heads[TAILOR_PROXY_WORKERS_MAX];
static _Alignas(64) struct tailor_event slots[TAILOR_PROXY_WORKERS_MAX][SLOTS];
static struct tailor_tag tags[TAILOR_TAGS];
static struct record records[RECORDS]; /* by id */
static unsigned int record_count;
/* What the counters must be. */
static uint64_t begun, ended, refused, gone, cut, failed_over;
/* Until when whether it is down may be what somebody is finding out. */
static uint64_t tried_until_ns[TAILOR_PROXY_SERVERS_MAX];
static uint64_t born_ns;
/* Clients' connections that ended because a request on them had taken too long; those behind it end with it. */
static bool late_port[1u << 16];
/* Attempts at each server now. */
static unsigned int at_server[TAILOR_PROXY_SERVERS_MAX];
static uint64_t sent[TAILOR_PROXY_SERVERS_MAX], responses[TAILOR_PROXY_SERVERS_MAX];
static uint64_t moved_away, moved_here[TAILOR_PROXY_SERVERS_MAX];

void judge_open(void)
{
	for (unsigned int i = 0; i < world.options.workers; i++) {
		memset(&heads[i], 0, sizeof(heads[i]));
		memset(slots[i], 0, sizeof(slots[i]));
		channels[i] = (struct tailor_channel){.head = &heads[i], .slots = slots[i], .mask = SLOTS - 1};
		positions[i] = 0;
	}
	memset(tags, 0, sizeof(tags));
	memset(records, 0, sizeof(records));
	record_count = 0;
	/* Ports whose entry belongs to somebody else. */
	for (unsigned int i = world_chance(300) ? 20000 : 0; i > 0; i--)
		tags[world_below(TAILOR_TAGS)].server_port = FOREIGN;
	begun = ended = refused = gone = cut = failed_over = 0;
	born_ns = world.now_ns;
	memset(tried_until_ns, 0, sizeof(tried_until_ns));
	memset(at_server, 0, sizeof(at_server));
	memset(late_port, 0, sizeof(late_port));
	memset(sent, 0, sizeof(sent));
	memset(responses, 0, sizeof(responses));
	moved_away = 0;
	memset(moved_here, 0, sizeof(moved_here));
	world.options.channels = channels;
	world.options.tags = tags;
}

void judge_close(void)
{
	memset(channels, 0, sizeof(channels));
}

static struct record *record_of(uint64_t id)
{
	uint64_t at = id;

	world_check(id != 0, "an event of no request");
	for (;; at++) {
		struct record *record = &records[at % RECORDS];

		if (record->id == id)
			return record;
		if (record->id == 0) {
			world_check(++record_count < RECORDS / 2, "too many requests");
			record->id = id;
			return record;
		}
	}
}

/* The attempt is at its server from now on, or no longer. */
static void place(struct record *record, const struct tailor_event *event, bool comes)
{
	unsigned int server = TAILOR_ATTEMPT_SERVER(event->extra);
	uint8_t bit = (uint8_t)(1u << TAILOR_ATTEMPT_NUMBER(event->extra));

	if (comes == ((record->placed & bit) != 0))
		return;
	record->placed ^= bit;
	at_server[server] += comes ? 1 : -1u;
	world_check(world.options.in_flight_max == 0 || at_server[server] <= world.options.in_flight_max,
	            "server %u has %u requests at once", server, at_server[server]);
}

static bool is_late(const struct record *record)
{
	return world.options.request_timeout_ns && world.now_ns - record->began_ns >= world.options.request_timeout_ns;
}

static void attempt_ended(struct record *record, const struct tailor_event *event)
{
	const struct wire *wire = event->arg[0] ? wire_by_port((uint16_t)event->arg[0]) : NULL;
	bool blamed = wire && (wire->peer_ended || wire->kernel_fault);

	record->ended_attempts++;
	switch ((enum tailor_attempt_end)event->arg[1]) {
	case TAILOR_ATTEMPT_END_CONNECT:
		record->failed_connect = true;
		world.last_refused_ns = world.now_ns;
		break;
	case TAILOR_ATTEMPT_END_CLOSED:
		record->failed_closed = true;
		blamed |= wire && wire->peer_silent && server_was_gone(TAILOR_ATTEMPT_SERVER(event->extra));
		world_check(blamed, "an attempt ended as closed on port %u, which nobody closed", (unsigned int)event->arg[0]);
		break;
	case TAILOR_ATTEMPT_END_BAD:
		record->failed_bad = true;
		world_check(wire && wire->peer_bad, "an attempt ended as bad on port %u, where all was well",
		            (unsigned int)event->arg[0]);
		break;
	case TAILOR_ATTEMPT_END_TIMEOUT:
		record->failed_timeout = true;
		world_check((wire && (wire->peer_silent || wire->kernel_fault)) || is_late(record),
		            "an attempt timed out on port %u, which was not silent", (unsigned int)event->arg[0]);
		break;
	default: break;
	}
}

static void request_ended(struct record *record, const struct tailor_event *event)
{
	world_check(!record->ended, "a request ends twice");
	record->ended = true;
	record->late = is_late(record);
	if (record->late && record->request)
		late_port[record->request->wire->port] = true;
	record->at_stop = world.stopping;
	record->status = (uint16_t)event->extra;
	record->bytes = event->arg[0];
	record->how = (enum tailor_request_end)event->arg[1];
	record->winner = (uint32_t)event->arg[2];
	if (record->request && record->how < TAILOR_REQUEST_END_CLIENT)
		/* Many may be told as one. */
		world_check(record->client_waits > 0 || record->request->wire->long_waits == record->long_waits_before,
		            "of %u waits for a client, %u are told", record->request->wire->long_waits - record->long_waits_before,
		            record->client_waits);
	ended++;
	refused += record->how == TAILOR_REQUEST_END_REFUSED;
	gone += record->how == TAILOR_REQUEST_END_CLIENT;
	cut += record->how == TAILOR_REQUEST_END_CUT;
	failed_over += record->moved;
	world_check((record->how == TAILOR_REQUEST_END_DONE || record->how == TAILOR_REQUEST_END_CUT) <=
	                    (record->winner != TAILOR_ATTEMPT_NONE),
	            "a request was answered by nobody");
	if (world.now_ns - record->began_ns > judge_figures.held_longest_ns)
		judge_figures.held_longest_ns = world.now_ns - record->began_ns;
}

static bool is_any_full_or_tried(void)
{
	for (unsigned int i = 0; i < world.options.servers; i++) {
		if (world.now_ns < tried_until_ns[i] || (world.options.in_flight_max && at_server[i] >= world.options.in_flight_max))
			return true;
	}
	return false;
}

/* A new request is not given to a server that stands still while another one runs, as far as that one can be reached. */
static void check_choice(unsigned int server)
{
	if (!world.options.failover_on || !server_stands(server, true))
		return;
	/* Of those that are not heeded it is not known here by which it stands. */
	if (world.stops && !(world.options.failover_on & 1u << TAILOR_STOP_SAFEPOINT))
		return;
	if (world.last_refused_ns != 0 && world.now_ns - world.last_refused_ns < DOWN_NS)
		return;
	if (is_any_full_or_tried())
		return;
	for (unsigned int i = 0; i < world.options.servers; i++)
		world_check(server_stands(i, false), "a new request for server %u, which stands still, while server %u runs", server, i);
}

/* Nor to one that is drained while another one runs. */
static void check_drained(unsigned int server)
{
	if (!server_is_drained(server))
		return;
	/* None has been down for so long that none is tried any more. */
	if (world.last_refused_ns != 0 && world.now_ns - world.last_refused_ns < DOWN_NS + world.options.connect_timeout_ns)
		return;
	for (unsigned int i = 0; i < world.options.servers; i++) {
		if (world.options.in_flight_max && at_server[i] >= world.options.in_flight_max)
			return;
	}
	for (unsigned int i = 0; i < world.options.servers; i++)
		world_check(i == server || server_stands(i, false) || server_was_gone(i), "a new request for server %u, which is drained, while server %u runs", server, i);
}

static bool is_moved(unsigned int reason)
{
	return reason == TAILOR_FAILOVER_GC || reason == TAILOR_FAILOVER_SAFEPOINT || reason == TAILOR_FAILOVER_STALL;
}

/* What a worker did about a stop, told at its end. */
static void server_stopped(const struct tailor_event *event, const char *text)
{
	unsigned int server = TAILOR_STOPPED_SERVER(event->extra), kind = TAILOR_STOPPED_KIND(event->extra);
	uint64_t moved = TAILOR_STOP_MOVED(event->arg[2]), not_moved = TAILOR_STOP_NOT_MOVED(event->arg[2]);

	world_check(server < world.options.servers && kind > TAILOR_STOP_NONE && kind < TAILOR_STOP_GONE, "server %u stopped by kind %u", server, kind);
	world_check(event->arg[0] <= event->time_ns && event->arg[0] >= born_ns - 1000 * MS, "a stop that began at %" PRIu64 " ns", event->arg[0]);
	world_check(TAILOR_STOPPED_IN_FLIGHT(event->extra) + moved + not_moved > 0, "a stop is told that nobody met");
	world_check(TAILOR_STOP_REPLAYED_US(event->arg[1]) == 0 || moved > 0, "nothing was moved %u us after a stop", TAILOR_STOP_REPLAYED_US(event->arg[1]));
	world_check(not_moved == 0 || TAILOR_STOP_WHY_NOT(event->arg[2]) < TAILOR_NOT_MOVED_REASONS, "a reason of no name");
	world_check(text[0] == 0 || strcmp(text, "Simulated") == 0, "a stop because of \"%s\"", text);
	judge_figures.stops++;
}

static void attempt_began(struct record *record, const struct tailor_event *event)
{
	unsigned int server = TAILOR_ATTEMPT_SERVER(event->extra);
	/* Where it was before, and is still if it was moved. */
	unsigned int from = record->placed ? record->server[__builtin_ctz(record->placed)] : server;

	if (event->kind == TAILOR_EVENT_ATTEMPT_BEGIN)
		tried_until_ns[server] = world.now_ns + world.options.connect_timeout_ns + DOWN_BEFORE_NS;
	record->attempts++;
	place(record, event, true);
	record->server[TAILOR_ATTEMPT_NUMBER(event->extra)] = (uint8_t)server;
	world_check(record->attempts <= world.options.replay_attempts_max, "request %u has %u attempts",
	            record->request ? record->request->number : 0, record->attempts);
	if (is_moved(TAILOR_ATTEMPT_REASON(event->extra))) {
		record->moved = true;
		world_check(from != server, "moved to where it was");
		world_check(!server_stands(server, true), "moved to a server that has stopped");
		for (unsigned int i = 0; i < (unsigned int)record->attempts - 1; i++)
			world_check(!(record->placed & 1u << i) || server_stands(record->server[i], false), "moved from a server that runs");
		moved_away++;
		moved_here[server]++;
	} else if (TAILOR_ATTEMPT_REASON(event->extra) == TAILOR_FAILOVER_NONE) {
		check_choice(server);
		check_drained(server);
	}
}

static void request_began(struct record *record, uint64_t time_ns)
{
	world_check(!record->began, "a request begins twice");
	record->began = true;
	record->began_ns = time_ns;
	begun++;
}

static void reply_began(struct record *record)
{
	/* Until its end much may happen. */
	record->down = world.last_refused_ns != 0 && world.now_ns - world.last_refused_ns < DOWN_NS;
}

static void client_waited(struct record *record, const struct tailor_event *event)
{
	uint64_t ns = event->time_ns - event->arg[0];
	uint64_t limited_us = (uint64_t)TAILOR_CLIENT_WAIT_WINDOW_US(event->arg[2]) + TAILOR_CLIENT_WAIT_BUFFER_US(event->arg[2]);

	world_check(event->arg[0] < event->time_ns && ns >= TAILOR_PROXY_CLIENT_WAIT_NS && event->arg[1] > 0, "a wait of %" PRIu64 " ns for a client is told", ns);
	world_check(limited_us * US <= ns, "of a wait for a client, %" PRIu64 " us of %" PRIu64 " ns", limited_us, ns);
	world_check(event->arg[0] >= record->began_ns && event->arg[0] >= record->client_waited_ns, "a wait for a client before the last has ended");
	/* Many, told as one. */
	if (event->extra) {
		world_check(event->extra * US <= ns && (event->extra + 1) * US > TAILOR_PROXY_CLIENT_WAIT_NS, "waits of %u us in sum in %" PRIu64 " ns", event->extra, ns);
		record->client_waits++;
		record->client_waited_ns = event->time_ns;
		judge_figures.client_waits++;
		return;
	}
	if (record->request) {
		const struct wire *wire = record->request->wire;
		/* It is told when it is known to be over: there may have been others meanwhile. */
		uint64_t refused_ns = wire->refused_ns <= event->arg[0] ? wire->refused_ns : wire->refused_first_ns;

		world_check(refused_ns && event->arg[0] >= refused_ns, "a wait for a client that has taken all");
	}
	record->client_waits++;
	record->client_waited_ns = event->time_ns;
	judge_figures.client_waits++;
}

static void take_event(const struct tailor_event *event, const char *text)
{
	unsigned int server = TAILOR_ATTEMPT_SERVER(event->extra);
	struct record *record;

	if (event->kind == TAILOR_EVENT_SERVER_STOPPED) {
		world_check(event->request == 0, "a server's stop is told as a request's");
		server_stopped(event, text);
		return;
	}
	record = record_of(event->request);
	world_check(!record->ended, "an event of kind %u behind a request's end", event->kind);
	switch (event->kind) {
	case TAILOR_EVENT_REQUEST_BEGIN: request_began(record, event->time_ns); break;
	case TAILOR_EVENT_REQUEST_PARSED: {
		const char *number = strstr(text, " /r/");

		if (event->arg[1])
			request_began(record, event->arg[1]);
		record->request = number ? traffic_request((uint32_t)strtoul(number + 4, NULL, 10)) : NULL;
		/* Nothing but a client's requests may be understood as one. */
		world_check(record->request || strncmp(text, "CONNECT ", 8) == 0, "somebody asked \"%s\"", text);
		if (record->request)
			record->long_waits_before = record->request->wire->long_waits;
		break;
	}
	case TAILOR_EVENT_ATTEMPT_BEGIN: attempt_began(record, event); break;
	case TAILOR_EVENT_ATTEMPT_SEND:
		if (event->arg[1])
			attempt_began(record, event);
		record->sent++;
		sent[server]++;
		break;
	case TAILOR_EVENT_RESPONSE_END:
		place(record, event, false);
		world_check(++record->responses == 1, "a request has two responses");
		responses[server]++;
		if (event->arg[2] & TAILOR_RESPONSE_REPLIED)
			reply_began(record);
		break;
	case TAILOR_EVENT_REPLY_BEGIN: reply_began(record); break;
	case TAILOR_EVENT_ATTEMPT_END:
		place(record, event, false);
		attempt_ended(record, event);
		break;
	case TAILOR_EVENT_REQUEST_QUEUED:
		world_check(world.options.queue_max > 0, "a request waits where none can");
		record->queued = true;
		break;
	case TAILOR_EVENT_CLIENT_WAIT: client_waited(record, event); break;
	case TAILOR_EVENT_REQUEST_END: request_ended(record, event); break;
	default: break;
	}
}

static void listen_to(unsigned int worker)
{
	for (;;) {
		char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX + 1] = "";
		struct tailor_event event, raw;
		struct tailor_text line;
		size_t length = 0;
		enum tailor_read ret = tailor_channel_read(&channels[worker], positions[worker], &event);

		if (ret == TAILOR_READ_PENDING)
			return;
		world_check(ret == TAILOR_READ_OK, "events are lost");
		positions[worker]++;
		for (unsigned int i = 0; i < event.texts; i++) {
			ret = tailor_channel_read(&channels[worker], positions[worker]++, &raw);
			world_check(ret == TAILOR_READ_OK, "text is lost");
			memcpy(&line, &raw, sizeof(line));
			memcpy(text + length, line.text, line.length);
			length += line.length;
		}
		text[length] = '\0';
		world_log("worker %u: event %u of %016" PRIx64 ", extra %x, %" PRIu64 " %" PRIu64 " %" PRIu64 " %.40s",
		          worker, event.kind, event.request, event.extra, event.arg[0], event.arg[1], event.arg[2], text);
		take_event(&event, text);
	}
}

void judge_listen(void)
{
	for (unsigned int i = 0; i < world.options.workers && channels[i].head; i++)
		listen_to(i);
}

static void check_refusal(const struct request *request, const struct record *record)
{
	bool justified;

	switch (request->status) {
	case 502: justified = record->failed_closed || record->failed_bad; break;
	case 503: justified = record->failed_connect || record->down || world.options.in_flight_max > 0; break;
	case 504: justified = record->failed_timeout || record->late; break;
	case 408: justified = request->client_cause || request->hostile || record->late; break;
	case 413: justified = world.options.body_bytes_max > 0 && (request->hostile || request->body_bytes > world.options.body_bytes_max); break;
	default: justified = request->hostile && request->status >= 400; break;
	}
	world_check(justified, "request %u was refused with %u for no reason", request->number, request->status);
}

static void check_answered(const struct request *request, const struct record *record)
{
	bool done = record->how == (request->outcome == OUTCOME_WHOLE ? TAILOR_REQUEST_END_DONE : TAILOR_REQUEST_END_REFUSED);

	world_check(record->began && record->ended, "request %u was answered and has not ended", request->number);
	world_check(done || request->client_cause || record->late || request->wire->kernel_fault || (record->at_stop && record->how == TAILOR_REQUEST_END_CLIENT),
	            "request %u was answered and ended as %d", request->number, (int)record->how);
	if (!done)
		return;
	world_check(record->status == request->status, "request %u: status %u, and %u in its end", request->number,
	            request->status, record->status);
	world_check(record->bytes == request->reply_bytes, "request %u: %" PRIu64 " bytes came, %" PRIu64 " in its end",
	            request->number, request->reply_bytes, record->bytes);
	if (request->outcome == OUTCOME_WHOLE) {
		const struct answer *answer = traffic_answer(request->answer);

		world_check(record->request == request, "request %u was answered as another", request->number);
		world_check(TAILOR_ATTEMPT_SERVER(record->winner) == answer->server, "request %u: answered by another server",
		            request->number);
	}
	if (request->outcome == OUTCOME_REFUSED)
		check_refusal(request, record);
}

static void check_unanswered(const struct request *request, const struct record *record)
{
	if (request->client_cause || request->wire->kernel_fault || request->behind_close || request->hostile ||
	    request->at_stop)
		return;
	if (late_port[request->wire->port])
		return;
	/* The response had begun, and the body went on beyond its limit. */
	if (world.options.body_bytes_max && request->body_bytes > world.options.body_bytes_max)
		return;
	world_check(record, "request %u came to nothing, and nothing is known of it", request->number);
	world_check(record->ended && record->how == TAILOR_REQUEST_END_CUT, "request %u was not answered and ended as %d",
	            request->number, record->ended ? (int)record->how : -1);
	world_check(record->failed_closed || record->failed_bad || record->failed_timeout, "request %u was cut for no reason",
	            request->number);
}

static const struct record **by_request(void)
{
	const struct record **table = calloc(traffic_requests() + 1, sizeof(*table));

	world_check(table, "out of memory");
	for (unsigned int i = 0; i < RECORDS; i++) {
		const struct record *record = &records[i];

		if (record->id == 0)
			continue;
		world_check(record->began && record->ended, "request %016" PRIx64 " has not ended", record->id);
		if (!record->request)
			continue;
		world_check(!table[record->request->number], "request %u was taken for two", record->request->number);
		table[record->request->number] = record;
		judge_figures.moved += record->moved;
		judge_figures.queued += record->queued;
		judge_figures.late += record->late;
		judge_figures.replayed += record->sent > 1;
	}
	return table;
}

void judge_requests(void)
{
	const struct record **table = by_request();

	for (unsigned int port = 0; port < TAILOR_TAGS; port++)
		world_check(tags[port].server_port <= FOREIGN, "the tag of port %u is left", port);

	for (uint32_t i = 1; i <= traffic_requests(); i++) {
		const struct request *request = traffic_request(i);
		const struct record *record = table[i];

		if (request->id) {
			const struct record *by_id = record_of(request->id);

			world_check(!record || record == by_id, "request %u: the id in its answer is another's", i);
			record = by_id;
		}
		judge_figures.requests++;
		judge_figures.delivered_twice += request->deliveries > 1;
		if (request->outcome == OUTCOME_WHOLE || request->outcome == OUTCOME_REFUSED) {
			judge_figures.by_status[request->status % 600]++;
			judge_figures.whole += request->outcome == OUTCOME_WHOLE;
			judge_figures.refused += request->outcome == OUTCOME_REFUSED;
			if (!request->connection_refused)
				check_answered(request, record);
		} else {
			if (record && record->how == TAILOR_REQUEST_END_CUT)
				judge_figures.cut++;
			else
				judge_figures.client++;
			check_unanswered(request, record);
		}
	}
	free(table);
}

#define SAME(what, counter, truth)                                                                                     \
	world_check((uint64_t)(counter) == (uint64_t)(truth), what ": counted %" PRIu64 ", happened %" PRIu64,         \
	            (uint64_t)(counter), (uint64_t)(truth))

/* At most what the floor brings in the time that there was and in the ten seconds that a new one has, and the part of the requests. */
static void check_budget(uint64_t moved, uint64_t requests)
{
	double floor = world.options.replay_floor_per_s, lived_s = (double)(world.now_ns - born_ns) / 1e9;

	world_check((double)moved <= floor * (10 + lived_s) + world.options.replay_part * (double)requests,
	            "%" PRIu64 " moved of %" PRIu64 " requests in %.3f s", moved, requests, lived_s);
}

static uint64_t reactions(const struct tailor_proxy_status *status)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i <= TAILOR_REACTION_BUCKETS; i++)
		sum += status->reaction[i];
	return sum;
}

void judge_counters(void)
{
	struct tailor_proxy_status status;
	uint64_t connects = 0, moved = 0;

	tailor_proxy_status(world.proxy, &status);
	SAME("requests begun", begun, ended);
	SAME("requests", status.requests, ended);
	/* A connection beyond the limit is no request, but is refused. */
	if (2 * kernel_accepted_most < world.options.connections_max && world.options.per_address_max == 0) {
		SAME("refused", status.refused, refused);
		SAME("client_gone", status.client_gone, gone);
	} else {
		world_check(status.refused >= refused && status.client_gone >= gone, "refused or gone: counted less than happened");
	}
	SAME("cut", status.cut, cut);
	SAME("failed_over", status.failed_over, failed_over);
	SAME("clients", status.clients, 0);
	SAME("queued", status.queued, 0);
	SAME("stale completions", status.stale_completions, 0);
	for (unsigned int i = 0; i < world.options.servers; i++) {
		const struct tailor_proxy_server_status *server = &status.server[i];

		SAME("attempts sent", server->requests, sent[i]);
		SAME("responses", server->responses, responses[i]);
		SAME("moved here", server->moved_here, moved_here[i]);
		check_budget(server->moved_away, server->requests);
		moved += server->moved_away;
		SAME("in flight", server->in_flight, 0);
		SAME("at the server", at_server[i], 0);
		SAME("paused", server->paused, 0);
		SAME("connections", server->connections, server_connections(i));
		connects += server->connects;
	}
	check_budget(moved, status.requests);
	SAME("moved away", moved, moved_away);
	/* Each replay that found a connection was handed to the kernel, and was timed. */
	world_check(reactions(&status) <= moved, "%" PRIu64 " replays were timed of %" PRIu64, reactions(&status), moved);
	judge_figures.budget += status.not_moved[TAILOR_NOT_MOVED_BUDGET];
	/* Those that were cancelled were never tried. */
	world_check(connects >= wire_connects, "connects: counted %" PRIu64 ", happened %" PRIu64, connects, wire_connects);
}
