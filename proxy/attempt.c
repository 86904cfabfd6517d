/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/attempt.h"

#include <assert.h>
#include <errno.h>

#include "proxy/budget.h"
#include "proxy/discard.h"
#include "proxy/exchange.h"
#include "proxy/failover.h"
#include "proxy/queue.h"
#include "proxy/record.h"
#include "proxy/server.h"
#include "proxy/stopped.h"
#include "proxy/timeouts.h"
#include "proxy/upstream.h"

/* A server's stop that calls for an attempt elsewhere; as in struct attempt. */
struct call {
	uint64_t signal_ns;
	uint64_t stop_ns;
	uint8_t from;
	uint8_t signal;
};

unsigned int exchange_live_attempts(const struct exchange *exchange)
{
	unsigned int live = 0;

	for (unsigned int i = 0; i < exchange->attempts; i++)
		live += exchange->attempt[i].upstream != NULL;
	return live;
}

void exchange_leave_place(struct worker *worker, struct attempt *attempt)
{
	if (attempt->placed)
		queue_give_place(worker, attempt->server);
	attempt->placed = false;
}

/*
 * With a place at the server, which it takes over in any case. `called`: by which server's stop, and since when; NULL: by none. Returns 0,
 * or a negative errno when no connection could be had.
 */
static int begin_attempt(struct worker *worker, struct client *client, unsigned int server,
                         enum tailor_failover_reason reason, bool fresh, const struct call *called)
{
	struct exchange *exchange = &client->exchange;
	unsigned int index = exchange->attempts;
	int ret;

	assert(index < TAILOR_ATTEMPTS_MAX && server < worker->options->servers);
	exchange->attempt[index] = (struct attempt){.server = (uint8_t)server, .reason = (uint16_t)reason, .placed = true};
	if (called) {
		exchange->attempt[index].from = called->from;
		exchange->attempt[index].signal = called->signal;
		exchange->attempt[index].signal_ns = called->signal_ns;
		exchange->attempt[index].stop_ns = called->stop_ns;
	}
	exchange->attempts++;
	ret = upstream_begin(worker, client, index, fresh);
	if (ret < 0) {
		exchange->attempts--;
		exchange_leave_place(worker, &exchange->attempt[index]);
	}
	return ret;
}

int attempt_place(struct worker *worker, struct client *client, unsigned int server, enum tailor_failover_reason reason,
                  bool fresh)
{
	struct exchange *exchange = &client->exchange;

	switch (queue_enter(worker, client, server)) {
	case QUEUE_GO: return begin_attempt(worker, client, server, reason, fresh, NULL);
	case QUEUE_FULL: return -EBUSY;
	case QUEUE_WAIT: break;
	}
	exchange->queued_reason = (uint16_t)reason;
	exchange->queued_fresh = fresh;
	record(worker, TAILOR_EVENT_REQUEST_QUEUED, exchange, 0, 0, 0, 0);
	timeouts_queue(worker, client);
	return 0;
}

void exchange_granted(struct worker *worker, struct client *client, int server)
{
	struct exchange *exchange = &client->exchange;
	int now = server_choose(worker);

	/* Things may have changed since the place was handed out. */
	if (now >= 0 && now != server && !server_may_serve(worker, server) && queue_take_place(worker, (unsigned int)now)) {
		if (server >= 0)
			queue_give_place(worker, (unsigned int)server);
		server = now;
	}
	if (server < 0) {
		server = server_last_resort(worker, -1);
		if (server >= 0 && !queue_take_place(worker, (unsigned int)server))
			server = -1;
	}
	if (server < 0 || begin_attempt(worker, client, (unsigned int)server,
	                                (enum tailor_failover_reason)exchange->queued_reason, exchange->queued_fresh, NULL) < 0)
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
}

/* `read`: what they will answer is little enough to be read for the connections' sake. */
static void drop_attempts(struct worker *worker, struct client *client, enum tailor_attempt_end end, bool read)
{
	struct exchange *exchange = &client->exchange;

	for (unsigned int i = 0; i < exchange->attempts; i++) {
		if (!exchange->attempt[i].upstream || (int)i == exchange->winner)
			continue;
		record_attempt(worker, TAILOR_EVENT_ATTEMPT_END, exchange, i, end);
		(read ? upstream_discard : upstream_drop)(worker, exchange->attempt[i].upstream);
		exchange_leave_place(worker, &exchange->attempt[i]);
	}
	queue_leave(worker, client);
}

void exchange_drop_attempts(struct worker *worker, struct client *client, enum tailor_attempt_end end)
{
	drop_attempts(worker, client, end, false);
}

void exchange_drop_losers(struct worker *worker, struct client *client, const struct http1_head *head)
{
	/* They were asked for the same. */
	drop_attempts(worker, client, TAILOR_ATTEMPT_END_LOST,
	              head->framing == HTTP1_NO_BODY || (head->framing == HTTP1_LENGTH && head->content_length <= DISCARD_BYTES_MAX));
}

/* Where it has been, as bits 1 << server. */
static uint32_t servers_of(const struct exchange *exchange)
{
	uint32_t servers = 0;

	for (unsigned int i = 0; i < exchange->attempts; i++)
		servers |= 1u << exchange->attempt[i].server;
	return servers;
}

static struct failover_case describe(const struct worker *worker, const struct exchange *exchange, unsigned int server, int other, enum tailor_failover_reason reason)
{
	const struct tailor_proxy_options *options = worker->options;

	return (struct failover_case){
	        .reason = reason,
	        .enabled = options->replay_when != TAILOR_PROXY_REPLAY_NEVER && stopped_matters(worker, worker->server[server].standing.kind),
	        .lasts = worker->server[server].standing.lasting,
	        .other_exists = other >= 0,
	        .other_paused = other >= 0 && server_is_paused(worker, (unsigned int)other),
	        .other_down = other >= 0 && server_is_down(worker, (unsigned int)other),
	        .method_allowed = exchange->replayable,
	        .request_complete = exchange->request_complete,
	        .request_kept = !exchange->request_lost,
	        .response_begun = exchange->winner >= 0,
	        .retried = exchange->retried,
	        .attempts = exchange->attempts,
	        .attempts_max = options->replay_attempts_max,
	};
}

/* The last attempt under way has failed. Returns true when another one has begun. */
static bool retry(struct worker *worker, struct client *client, unsigned int server, enum tailor_failover_reason reason,
                  bool stale)
{
	struct exchange *exchange = &client->exchange;
	int next = server_other(worker, server, servers_of(exchange));
	struct failover_case c = describe(worker, exchange, server, next, reason);
	bool other_down = c.other_down;

	c.stale_connection = stale;
	/* Asked now, it may be back. */
	c.other_down = other_down && stale;
	if (failover_judge(&c).action != FAILOVER_REPLAY)
		return false;
	/* A server that is just going may still take a connection; the other one, if it answers, is the surer. */
	if (stale && (!c.other_exists || other_down || c.other_paused))
		next = server_choose(worker);
	else if (other_down)
		next = server_last_resort(worker, (int)server);
	if (next < 0)
		return false;
	/* A new connection to the same server makes no good yet: if it dies, too, the other one is left. */
	if (reason == TAILOR_FAILOVER_CLOSED && (unsigned int)next != server)
		exchange->retried = true;
	return attempt_place(worker, client, (unsigned int)next, reason, stale) == 0;
}

/* The ones that are left may wait for servers that stand still, as this one was to be the one that answers. */
static void another_is_left(struct worker *worker, struct client *client, enum tailor_attempt_end end)
{
	struct exchange *exchange = &client->exchange;
	unsigned int before = exchange->attempts;

	if (end != TAILOR_ATTEMPT_END_CONNECT && (end != TAILOR_ATTEMPT_END_CLOSED || exchange->retried))
		return;
	exchange_judge_again(worker, client);
	/* As in failover_judge(): a request that kills servers is not to walk through all of them. */
	if (end == TAILOR_ATTEMPT_END_CLOSED && exchange->attempts > before)
		exchange->retried = true;
}

void exchange_attempt_failed(struct worker *worker, struct upstream *upstream, enum tailor_attempt_end end_reason)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	unsigned int index = upstream->attempt;
	unsigned int server = upstream->server;
	bool answered = exchange->attempt[index].answered;
	/* It was not closed before the request came, if the server has told anything of it. */
	bool stale = upstream->reused && !exchange->attempt[index].response_begun;

	record_attempt(worker, TAILOR_EVENT_ATTEMPT_END, exchange, index, end_reason);
	upstream_drop(worker, upstream);
	exchange_leave_place(worker, &exchange->attempt[index]);
	if (exchange->winner == (int)index) {
		exchange_cut(worker, client);
		return;
	}
	if (exchange_live_attempts(exchange) > 0) {
		another_is_left(worker, client, end_reason);
		return;
	}
	switch (end_reason) {
	case TAILOR_ATTEMPT_END_CONNECT:
		if (!retry(worker, client, server, TAILOR_FAILOVER_CONNECT, false))
			exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
		break;
	case TAILOR_ATTEMPT_END_CLOSED:
		if (answered || !retry(worker, client, server, TAILOR_FAILOVER_CLOSED, stale))
			exchange_refuse(worker, client, 502, TAILOR_REFUSED_SERVER_FAILED);
		break;
	case TAILOR_ATTEMPT_END_TIMEOUT: exchange_refuse(worker, client, 504, TAILOR_REFUSED_SERVER_LATE); break;
	default: exchange_refuse(worker, client, 502, TAILOR_REFUSED_SERVER_FAILED); break;
	}
}

/* Begins another attempt, if there are means for it. Returns TAILOR_NOT_MOVED_REASONS, or what there was none of. */
static enum tailor_not_moved move(struct worker *worker, struct client *client, const struct call *called, unsigned int to,
                                  enum tailor_failover_reason reason)
{
	enum tailor_not_moved why = TAILOR_NOT_MOVED_DOWN;
	unsigned int from = called->from;

	if (!budget_take_for(worker, from))
		return TAILOR_NOT_MOVED_BUDGET;
	if (!queue_take_place(worker, to))
		why = TAILOR_NOT_MOVED_FULL;
	else if (begin_attempt(worker, client, to, reason, false, called) == 0)
		return TAILOR_NOT_MOVED_REASONS;
	budget_give_for(worker, from);
	return why;
}

static enum tailor_failover_reason reason_of(enum tailor_stop_kind kind)
{
	switch (kind) {
	case TAILOR_STOP_GC: return TAILOR_FAILOVER_GC;
	case TAILOR_STOP_SAFEPOINT: return TAILOR_FAILOVER_SAFEPOINT;
	default: return TAILOR_FAILOVER_STALL;
	}
}

/* Another attempt is under way, at a server that runs. */
static bool is_elsewhere_too(const struct worker *worker, const struct exchange *exchange, unsigned int index)
{
	for (unsigned int i = 0; i < exchange->attempts; i++) {
		if (i != index && exchange->attempt[i].upstream && !server_is_paused(worker, exchange->attempt[i].server))
			return true;
	}
	return false;
}

/* It stays for now: the stop may last longer than expected, and the rest of the request may come. */
static bool is_for_now(const struct exchange *exchange, enum tailor_not_moved why)
{
	return why == TAILOR_NOT_MOVED_SHORT ||
	       (why == TAILOR_NOT_MOVED_BODY && !exchange->request_complete && !exchange->request_lost && !exchange->unkept);
}

static void judge(struct worker *worker, struct upstream *upstream, uint64_t signal_ns, enum tailor_reaction signal)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	struct attempt *attempt = &exchange->attempt[upstream->attempt];
	unsigned int server = upstream->server;
	enum tailor_failover_reason reason = reason_of(worker->server[server].standing.kind);
	int other = server_other(worker, server, servers_of(exchange));
	struct failover_case c = describe(worker, exchange, server, other, reason);
	const struct call called = {.from = (uint8_t)server,
	                            .signal_ns = signal_ns,
	                            .signal = (uint8_t)signal,
	                            .stop_ns = worker->server[server].standing.noticed_ns};
	struct failover_verdict verdict;
	enum tailor_not_moved why;

	/* Read whole, or also under way elsewhere: this stop costs it nothing. */
	if (exchange->response_complete || exchange->tunnel || is_elsewhere_too(worker, exchange, upstream->attempt))
		return;
	verdict = failover_judge(&c);
	why = verdict.why;
	if (verdict.action == FAILOVER_REPLAY)
		why = move(worker, client, &called, (unsigned int)other, reason);
	else if (why == TAILOR_NOT_MOVED_BODY && exchange->replay_full)
		why = TAILOR_NOT_MOVED_REPLAY_FULL;
	if (why != TAILOR_NOT_MOVED_REASONS) {
		stopped_not_moved(worker, server, attempt, why, is_for_now(exchange, why));
		return;
	}
	stopped_moved(worker, server, attempt);
	exchange->moved = true;
	count(&worker->counters.server[other].moved_here);
}

void exchange_server_paused(struct worker *worker, struct upstream *upstream)
{
	const struct standing *standing = &worker->server[upstream->server].standing;

	judge(worker, upstream, standing->signal_ns, standing->signal);
}

void exchange_judge_again(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	for (unsigned int i = 0; i < exchange->attempts; i++) {
		struct upstream *upstream = exchange->attempt[i].upstream;

		/* Who stood still before this has not kept it waiting until now. */
		if (upstream && stopped_is_decided(worker, upstream->server) && server_is_paused(worker, upstream->server))
			judge(worker, upstream, worker->now_ns, TAILOR_REACTION_STOP);
	}
}
