/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/attempt.h"

#include <assert.h>
#include <errno.h>

#include "proxy/exchange.h"
#include "proxy/failover.h"
#include "proxy/queue.h"
#include "proxy/record.h"
#include "proxy/server.h"
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

/* With a place at the server, which it takes over in any case. Returns 0, or a negative errno when no connection could be had. */
static int begin_attempt(struct worker *worker, struct client *client, unsigned int server,
                         enum tailor_failover_reason reason, bool fresh)
{
	struct exchange *exchange = &client->exchange;
	unsigned int index = exchange->attempts;
	int ret;

	assert(index < TAILOR_ATTEMPTS_MAX && server < worker->options->servers);
	exchange->attempt[index] = (struct attempt){.server = (uint8_t)server, .reason = (uint16_t)reason, .placed = true};
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
	case QUEUE_GO: return begin_attempt(worker, client, server, reason, fresh);
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
	if (now >= 0 && now != server && queue_take_place(worker, (unsigned int)now)) {
		if (server >= 0)
			queue_give_place(worker, (unsigned int)server);
		server = now;
	}
	if (server < 0 || begin_attempt(worker, client, (unsigned int)server,
	                                (enum tailor_failover_reason)exchange->queued_reason, exchange->queued_fresh) < 0)
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
}

void exchange_drop_attempts(struct worker *worker, struct client *client, enum tailor_attempt_end end)
{
	struct exchange *exchange = &client->exchange;

	for (unsigned int i = 0; i < exchange->attempts; i++) {
		if (!exchange->attempt[i].upstream || (int)i == exchange->winner)
			continue;
		record_attempt(worker, TAILOR_EVENT_ATTEMPT_END, exchange, i, end);
		upstream_drop(worker, exchange->attempt[i].upstream);
		exchange_leave_place(worker, &exchange->attempt[i]);
	}
	queue_leave(worker, client);
}

static struct failover_case describe(const struct worker *worker, const struct exchange *exchange, unsigned int server,
                                     enum tailor_failover_reason reason)
{
	const struct tailor_proxy_options *options = worker->options;
	unsigned int other = 1 - server;

	return (struct failover_case){
	        .reason = reason,
	        .enabled = options->failover_on_gc,
	        .other_exists = options->servers > 1,
	        .other_paused = options->servers > 1 && server_is_paused(worker, other),
	        .other_down = options->servers > 1 && server_is_down(worker, other),
	        .method_allowed = (options->replay_methods & (1u << exchange->method)) && !exchange->upgrade,
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
	struct failover_case c = describe(worker, exchange, server, reason);
	int next = (int)(1 - server);

	c.stale_connection = stale;
	if (failover_judge(&c).action != FAILOVER_REPLAY)
		return false;
	/* A server that is just going may still take a connection; the other one, if it answers, is the surer. */
	if (stale && (!c.other_exists || c.other_down || c.other_paused))
		next = server_choose(worker);
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
	bool answered = exchange->attempt[index].response_begun;
	bool stale = upstream->reused;

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

void exchange_server_paused(struct worker *worker, struct upstream *upstream, bool again)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	unsigned int server = upstream->server;
	struct failover_case c = describe(worker, exchange, server, TAILOR_FAILOVER_GC);
	struct failover_verdict verdict;

	/* Read whole, or also under way elsewhere: this pause costs it nothing. */
	if (exchange->response_complete || exchange->tunnel || exchange_live_attempts(exchange) > 1)
		return;
	verdict = failover_judge(&c);
	if (verdict.action != FAILOVER_REPLAY) {
		if (!again)
			count(&worker->counters.not_moved[verdict.why == TAILOR_NOT_MOVED_BODY && exchange->replay_full
			                                          ? TAILOR_NOT_MOVED_REPLAY_FULL
			                                          : verdict.why]);
		return;
	}
	if (!queue_take_place(worker, 1 - server)) {
		if (!again)
			count(&worker->counters.not_moved[TAILOR_NOT_MOVED_FULL]);
		return;
	}
	if (begin_attempt(worker, client, 1 - server, TAILOR_FAILOVER_GC, false) < 0) {
		count(&worker->counters.not_moved[TAILOR_NOT_MOVED_DOWN]);
		return;
	}
	exchange->moved = true;
	count(&worker->counters.server[server].moved_away);
}
