/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#include "heard.h"
#include "kernel.h"
#include "traffic.h"

#define SLOTS (1u << 11) /* read after each turn of a worker */
/* A server that refused is believed to be down for at most so long (server.c of the proxy: 2 s). */
#define DOWN_NS (2200 * MS)
/* Or for so long behind the time that a connection may take. */
#define DOWN_BEFORE_NS (110 * MS)

struct judge_figures judge_figures;
struct heard heard;

static struct tailor_channel channels[TAILOR_PROXY_WORKERS_MAX];
static uint64_t positions[TAILOR_PROXY_WORKERS_MAX];
static _Alignas(64) struct tailor_channel_head heads[TAILOR_PROXY_WORKERS_MAX];
static _Alignas(64) struct tailor_event slots[TAILOR_PROXY_WORKERS_MAX][SLOTS];
static unsigned int record_count;
/* Until when whether it is down may be what somebody is finding out. */
static uint64_t tried_until_ns[TAILOR_PROXY_SERVERS_MAX];

void judge_open(void)
{
	for (unsigned int i = 0; i < world.options.workers; i++) {
		memset(&heads[i], 0, sizeof(heads[i]));
		memset(slots[i], 0, sizeof(slots[i]));
		channels[i] = (struct tailor_channel){.head = &heads[i], .slots = slots[i], .mask = SLOTS - 1};
		positions[i] = 0;
	}
	memset(heard.tags, 0, sizeof(heard.tags));
	memset(heard.record, 0, sizeof(heard.record));
	record_count = 0;
	/* Ports whose entry belongs to somebody else. */
	for (unsigned int i = world_chance(300) ? 20000 : 0; i > 0; i--)
		heard.tags[world_below(TAILOR_TAGS)].server_port = FOREIGN;
	heard.begun = heard.ended = heard.refused = heard.gone = heard.cut = heard.failed_over = 0;
	heard.born_ns = world.now_ns;
	memset(tried_until_ns, 0, sizeof(tried_until_ns));
	memset(heard.at_server, 0, sizeof(heard.at_server));
	memset(heard.late_port, 0, sizeof(heard.late_port));
	memset(heard.sent, 0, sizeof(heard.sent));
	memset(heard.responses, 0, sizeof(heard.responses));
	heard.moved_away = 0;
	memset(heard.moved_here, 0, sizeof(heard.moved_here));
	world.options.channels = channels;
	world.options.tags = heard.tags;
}

void judge_close(void)
{
	memset(channels, 0, sizeof(channels));
}

struct record *heard_record(uint64_t id)
{
	uint64_t at = id;

	world_check(id != 0, "an event of no request");
	for (;; at++) {
		struct record *record = &heard.record[at % RECORDS];

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
	heard.at_server[server] += comes ? 1 : -1u;
	world_check(world.options.in_flight_max == 0 || heard.at_server[server] <= world.options.in_flight_max,
	            "server %u has %u requests at once", server, heard.at_server[server]);
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
		heard.late_port[record->request->wire->port] = true;
	record->at_stop = world.stopping;
	record->status = TAILOR_ENDED_STATUS(event->extra);
	record->bytes = event->arg[0];
	record->how = (enum tailor_request_end)event->arg[1];
	record->winner = (uint32_t)event->arg[2];
	if (record->request && record->how < TAILOR_REQUEST_END_CLIENT)
		/* Many may be told as one. */
		world_check(record->client_waits > 0 || record->request->wire->long_waits == record->long_waits_before,
		            "of %u waits for a client, %u are told", record->request->wire->long_waits - record->long_waits_before,
		            record->client_waits);
	heard.ended++;
	heard.refused += record->how == TAILOR_REQUEST_END_REFUSED;
	heard.gone += record->how == TAILOR_REQUEST_END_CLIENT;
	heard.cut += record->how == TAILOR_REQUEST_END_CUT;
	heard.failed_over += record->moved;
	world_check((record->how == TAILOR_REQUEST_END_DONE || record->how == TAILOR_REQUEST_END_CUT) <=
	                    (record->winner != TAILOR_ATTEMPT_NONE),
	            "a request was answered by nobody");
	world_check((record->how == TAILOR_REQUEST_END_REFUSED) <= (TAILOR_ENDED_REFUSAL(event->extra) != TAILOR_REFUSED_NONE) &&
	                    TAILOR_ENDED_REFUSAL(event->extra) < TAILOR_REFUSALS,
	            "a request is refused for no reason");
	if (world.now_ns - record->began_ns > judge_figures.held_longest_ns)
		judge_figures.held_longest_ns = world.now_ns - record->began_ns;
}

static bool is_any_full_or_tried(void)
{
	for (unsigned int i = 0; i < world.options.servers; i++) {
		if (world.now_ns < tried_until_ns[i] || (world.options.in_flight_max && heard.at_server[i] >= world.options.in_flight_max))
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
		if (world.options.in_flight_max && heard.at_server[i] >= world.options.in_flight_max)
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
	world_check(event->arg[0] <= event->time_ns && event->arg[0] >= heard.born_ns - 1000 * MS, "a stop that began at %" PRIu64 " ns", event->arg[0]);
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
		heard.moved_away++;
		heard.moved_here[server]++;
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
	heard.begun++;
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
	record = heard_record(event->request);
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
		heard.sent[server]++;
		break;
	case TAILOR_EVENT_RESPONSE_END:
		place(record, event, false);
		world_check(++record->responses == 1, "a request has two responses");
		heard.responses[server]++;
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
