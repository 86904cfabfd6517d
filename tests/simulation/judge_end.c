/* SPDX-License-Identifier: Apache-2.0 */
/* At the end: every request, and every counter, by what was heard. */
#include "judge.h"

#include <inttypes.h>
#include <stdlib.h>

#include "heard.h"
#include "kernel.h"
#include "traffic.h"

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
	if (heard.late_port[request->wire->port])
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
		const struct record *record = &heard.record[i];

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
		world_check(heard.tags[port].server_port <= FOREIGN, "the tag of port %u is left", port);

	for (uint32_t i = 1; i <= traffic_requests(); i++) {
		const struct request *request = traffic_request(i);
		const struct record *record = table[i];

		if (request->id) {
			const struct record *by_id = heard_record(request->id);

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
	double floor = world.options.replay_floor_per_s, lived_s = (double)(world.now_ns - heard.born_ns) / 1e9;

	world_check((double)moved <= floor * (10 + lived_s) + world.options.replay_part * (double)requests,
	            "%" PRIu64 " moved of %" PRIu64 " requests in %.3f s", moved, requests, lived_s);
}

static uint64_t reactions(const struct tailor_proxy_status *status)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < TAILOR_REACTIONS; i++) {
		for (unsigned int j = 0; j <= TAILOR_REACTION_BUCKETS; j++)
			sum += status->reaction[i].count[j];
	}
	return sum;
}

void judge_counters(void)
{
	struct tailor_proxy_status status;
	uint64_t connects = 0, moved = 0;

	tailor_proxy_status(world.proxy, &status);
	SAME("requests begun", heard.begun, heard.ended);
	SAME("requests", status.requests, heard.ended);
	/* A connection beyond the limit is no request, but is refused. */
	if (2 * kernel_accepted_most < world.options.connections_max && world.options.per_address_max == 0) {
		SAME("refused", status.refused, heard.refused);
		SAME("client_gone", status.client_gone, heard.gone);
	} else {
		world_check(status.refused >= heard.refused && status.client_gone >= heard.gone, "refused or gone: counted less than happened");
	}
	SAME("cut", status.cut, heard.cut);
	SAME("failed_over", status.failed_over, heard.failed_over);
	SAME("clients", status.clients, 0);
	SAME("queued", status.queued, 0);
	SAME("stale completions", status.stale_completions, 0);
	for (unsigned int i = 0; i < world.options.servers; i++) {
		const struct tailor_proxy_server_status *server = &status.server[i];

		SAME("attempts sent", server->requests, heard.sent[i]);
		SAME("responses", server->responses, heard.responses[i]);
		SAME("moved here", server->moved_here, heard.moved_here[i]);
		check_budget(server->moved_away, server->requests);
		moved += server->moved_away;
		SAME("in flight", server->in_flight, 0);
		SAME("at the server", heard.at_server[i], 0);
		SAME("paused", server->paused, 0);
		SAME("connections", server->connections, server_connections(i));
		connects += server->connects;
	}
	check_budget(moved, status.requests);
	SAME("moved away", moved, heard.moved_away);
	/* Each replay that found a connection was handed to the kernel, and was timed then. */
	SAME("replays handed over", reactions(&status), kernel_sends_submitted);
	world_check(reactions(&status) <= moved, "%" PRIu64 " replays were timed of %" PRIu64, reactions(&status), moved);
	judge_figures.budget += status.not_moved[TAILOR_NOT_MOVED_BUDGET];
	/* Those that were cancelled were never tried. */
	world_check(connects >= wire_connects, "connects: counted %" PRIu64 ", happened %" PRIu64, connects, wire_connects);
}
