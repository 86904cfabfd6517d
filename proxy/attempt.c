/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/attempt.h"

#include <assert.h>
#include <errno.h>

#include "proxy/budget.h"
#include "proxy/exchange.h"
#include "proxy/failover.h"
#include "proxy/queue.h"
#include "proxy/record.h"
#include "proxy/server.h"
#include "proxy/stopped.h"
#include "proxy/timeouts.h"
#include "proxy/upstream.h"

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
 * With a place at the server, which it takes over in any case. `from`: the server whose stop has called for it, -1: none has. Returns 0, or
 * a negative errno when no connection could be had.
 */
static int begin_attempt(struct worker *worker, struct client *client, unsigned int server,
                         enum tailor_failover_reason reason, bool fresh, int from)
{
	struct exchange *exchange = &client->exchange;
	unsigned int index = exchange->attempts;
	int ret;

	assert(index < TAILOR_ATTEMPTS_MAX && server < worker->options->servers);
	exchange->attempt[index] = (struct attempt){.server = (uint8_t)server, .reason = (uint16_t)reason, .placed = true};
	if (from >= 0) {
		exchange->attempt[index].from = (uint8_t)from;
		exchange->attempt[index].signal_ns = worker->server[from].standing.signal_ns;
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
	case QUEUE_GO: return begin_attempt(worker, client, server, reason, fresh, -1);
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
	                                (enum tailor_failover_reason)exchange->queued_reason, exchange->queued_fresh, -1) < 0)
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
}

/* `drained`: what they will answer is little enough to be read for the connections' sake. */
static void drop_attempts(struct worker *worker, struct client *client, enum tailor_attempt_end end, bool drained)
{
	struct exchange *exchange = &client->exchange;

	for (unsigned int i = 0; i < exchange->attempts; i++) {
		if (!exchange->attempt[i].upstream || (int)i == exchange->winner)
			continue;
		record_attempt(worker, TAILOR_EVENT_ATTEMPT_END, exchange, i, end);
		(drained ? upstream_drain : upstream_drop)(worker, exchange->attempt[i].upstream);
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
	              head->framing == HTTP1_NO_BODY || (head->framing == HTTP1_LENGTH && head->content_length <= UPSTREAM_DRAIN_BYTES_MAX));
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
	int next = server_other(worker, server);
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
	if (exchange_live_attempts(exchange) > 0)
		return;
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
static enum tailor_not_moved move(struct worker *worker, struct client *client, unsigned int from, unsigned int to,
                                  enum tailor_failover_reason reason)
{
	enum tailor_not_moved why = TAILOR_NOT_MOVED_DOWN;

	if (!budget_take_for(worker, from))
		return TAILOR_NOT_MOVED_BUDGET;
	if (!queue_take_place(worker, to))
		why = TAILOR_NOT_MOVED_FULL;
	else if (begin_attempt(worker, client, to, reason, false, (int)from) == 0)
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

void exchange_server_paused(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	struct attempt *attempt = &exchange->attempt[upstream->attempt];
	unsigned int server = upstream->server;
	enum tailor_failover_reason reason = reason_of(worker->server[server].standing.kind);
	int other = server_other(worker, server);
	struct failover_case c = describe(worker, exchange, server, other, reason);
	struct failover_verdict verdict;
	enum tailor_not_moved why;

	/* Read whole, or also under way elsewhere: this stop costs it nothing. */
	if (exchange->response_complete || exchange->tunnel || is_elsewhere_too(worker, exchange, upstream->attempt))
		return;
	verdict = failover_judge(&c);
	why = verdict.why;
	if (verdict.action == FAILOVER_REPLAY)
		why = move(worker, client, server, (unsigned int)other, reason);
	else if (why == TAILOR_NOT_MOVED_BODY && exchange->replay_full)
		why = TAILOR_NOT_MOVED_REPLAY_FULL;
	if (why != TAILOR_NOT_MOVED_REASONS) {
		stopped_not_moved(worker, server, attempt, why);
		return;
	}
	stopped_moved(worker, server, attempt);
	exchange->moved = true;
	count(&worker->counters.server[other].moved_here);
}
