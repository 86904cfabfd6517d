/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/exchange.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/client.h"
#include "proxy/connection.h"
#include "proxy/failover.h"
#include "proxy/head.h"
#include "proxy/queue.h"
#include "proxy/record.h"
#include "proxy/replay.h"
#include "proxy/response.h"
#include "proxy/server.h"
#include "proxy/timeouts.h"
#include "proxy/tunnel.h"
#include "proxy/upstream.h"

void exchange_clear(struct exchange *exchange)
{
	memset(exchange, 0, sizeof(*exchange));
	exchange->winner = -1;
	exchange->deadline_ns = UINT64_MAX;
}

void exchange_begin(struct worker *worker, struct client *client, uint64_t read_ns)
{
	struct exchange *exchange = &client->exchange;
	const uint64_t arg[3] = {client->port, client->ip, 0};

	exchange_clear(exchange);
	exchange->id = trace_next_id(&worker->trace);
	if (worker->options->request_timeout_ns)
		exchange->deadline_ns = read_ns + worker->options->request_timeout_ns;
	client->search = (struct http1_search){0};
	record_at(worker, read_ns, TAILOR_EVENT_REQUEST_BEGIN, exchange->id, 0, arg, NULL, 0);
}

static void record_parsed(struct worker *worker, const struct exchange *exchange, const struct http1_head *head)
{
	const uint64_t arg[3] = {head->minor, 0, 0};
	char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX];
	size_t length = head->method.length < sizeof(text) - 1 ? head->method.length : sizeof(text) - 1;
	size_t room;

	memcpy(text, head->method.data, length);
	text[length++] = ' ';
	room = sizeof(text) - length;
	if (head->target.length < room)
		room = head->target.length;
	memcpy(text + length, head->target.data, room);
	record_at(worker, record_ns(worker), TAILOR_EVENT_REQUEST_PARSED, exchange->id, 0, arg, text, length + room);
}

static unsigned int live_attempts(const struct exchange *exchange)
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

/* Begins an attempt, at once or when the server has a place for it. Returns 0, -EBUSY when the queue is full, or as begin_attempt(). */
static int place_attempt(struct worker *worker, struct client *client, unsigned int server, enum tailor_failover_reason reason,
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

/* Also a chunk of which no more than its size is here. */
static bool is_too_long(const struct worker *worker, const struct exchange *exchange)
{
	uint64_t most = worker->options->body_bytes_max;

	if (most == 0 || exchange->framing == HTTP1_NO_BODY)
		return false;
	return (exchange->framing == HTTP1_CHUNKED ? exchange->chunked.data + exchange->chunked.left : exchange->body_left) > most;
}

/* Moves some of the body from `in` to `forward`. Returns 0, or the status to refuse it with. */
static unsigned int take_piece(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	struct input *in = &client->in;
	uint32_t room = replay_forward_bytes(worker, client) - exchange->forward_end;
	uint32_t bytes;
	int64_t taken;

	(void)input_gather(worker, in);
	bytes = input_length(in);
	if (bytes > room && replay_grow(worker, client))
		room = replay_forward_bytes(worker, client) - exchange->forward_end;
	if (bytes > room)
		bytes = room;
	if (exchange->framing == HTTP1_CHUNKED) {
		taken = http1_chunked_take(&exchange->chunked, in->data + in->start, bytes,
		                           &exchange->request_complete);
		if (taken < 0)
			return 400;
		if (is_too_long(worker, exchange))
			return 413;
	} else {
		taken = bytes < exchange->body_left ? bytes : (int64_t)exchange->body_left;
		exchange->body_left -= (uint64_t)taken;
		exchange->request_complete = exchange->body_left == 0;
	}
	memcpy(replay_forward(client) + exchange->forward_end, in->data + in->start, (size_t)taken);
	exchange->forward_end += (uint32_t)taken;
	in->start += (uint32_t)taken;
	if (exchange->tunnel)
		count_add(&worker->counters.tunnel_bytes_to_server, (uint64_t)taken);
	return 0;
}

/* The same with all that is there, as far as there is room. */
static unsigned int take_body(struct worker *worker, struct client *client)
{
	const struct exchange *exchange = &client->exchange;

	while (!exchange->request_complete && !input_empty(&client->in) &&
	       (exchange->forward_end < replay_forward_bytes(worker, client) || replay_grow(worker, client))) {
		unsigned int status = take_piece(worker, client);

		if (status)
			return status;
	}
	return 0;
}

/* Makes room for more body once the server has what is buffered; from then on the request cannot be sent again. */
static bool discard_sent(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	uint32_t room = replay_forward_bytes(worker, client);
	struct attempt *attempt;

	if (exchange->request_complete || live_attempts(exchange) != 1)
		return false;
	/* What can be kept whole is, to the last byte that fits. */
	if (!exchange->unkept && exchange->forward_end == room && replay_grow(worker, client))
		return true;
	if (exchange->forward_end < (exchange->unkept ? room / 2 : room))
		return false;
	attempt = &exchange->attempt[exchange->attempts - 1];
	if (!attempt->upstream || attempt->upstream->sending || attempt->sent_bytes < exchange->forward_end)
		return false;
	exchange->request_lost = exchange->unkept = true;
	exchange->forward_end = 0;
	attempt->sent_bytes = 0;
	return true;
}

/* The client has said that nothing more comes, and all that came is not the whole request. */
static bool is_broken_off(const struct client *client)
{
	return client->eof && !client->exchange.request_complete && !client->exchange.tunnel && input_empty(&client->in);
}

static void refuse_body(struct worker *worker, struct client *client, unsigned int status)
{
	/* Where it ends is not known, or its end has not been taken: nothing behind it is another request. */
	client->exchange.request_complete = false;
	exchange_refuse(worker, client, status, status == 413 ? TAILOR_REFUSED_BODY : TAILOR_REFUSED_MALFORMED);
}

void exchange_feed(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	if (client->state != CLIENT_EXCHANGE || exchange->response_complete)
		return;
	do {
		unsigned int status = take_body(worker, client);

		if (status) {
			if (exchange->winner >= 0)
				exchange_client_gone(worker, client);
			else
				refuse_body(worker, client, status);
			return;
		}
		for (unsigned int i = 0; i < exchange->attempts; i++) {
			if (exchange->attempt[i].upstream)
				upstream_send(worker, exchange->attempt[i].upstream);
		}
	} while (discard_sent(worker, client));
	if (is_broken_off(client)) {
		exchange_client_gone(worker, client);
		return;
	}
	client_receive(worker, client);
	tunnel_advance(worker, client);
}

static void start_attempt(struct worker *worker, struct client *client, unsigned int server)
{
	int ret = place_attempt(worker, client, server, TAILOR_FAILOVER_NONE, client->exchange.upgrade != 0);

	if (ret == -EBUSY)
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_QUEUE_FULL);
	else if (ret < 0)
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
	else
		client_receive(worker, client);
}

void exchange_start(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	const struct http1_head *head = &worker->head;
	struct forwarded_rules rules = {.via = worker->options->via,
	                                .x_forwarded = worker->options->x_forwarded,
	                                .forwarded = worker->options->forwarded};
	char host[TAILOR_ADDRESS_TEXT_BYTES] = "";
	int server = server_choose(worker);
	unsigned int status;
	int length;

	record_parsed(worker, exchange, head);
	client->state = CLIENT_EXCHANGE;
	client->in.start += (uint32_t)head->head_bytes;
	exchange->method = head->method_known;
	exchange->minor = head->minor;
	exchange->keep_alive = head->keep_alive;
	exchange->framing = head->framing;
	exchange->body_left = head->framing == HTTP1_LENGTH ? head->content_length : 0;
	exchange->request_complete =
	        head->framing == HTTP1_NO_BODY || (head->framing == HTTP1_LENGTH && !exchange->body_left);
	if (head->method_known == HTTP1_CONNECT) {
		exchange_refuse(worker, client, 501, TAILOR_REFUSED_MALFORMED);
		return;
	}
	/* Before anybody is asked to take it: also who waits for a 100 learns it in time. */
	if (is_too_long(worker, exchange)) {
		refuse_body(worker, client, 413);
		return;
	}
	if (!forwarded_may(head)) {
		exchange_refuse(worker, client, head->method_known == HTTP1_OPTIONS ? 200 : 501, TAILOR_REFUSED_MAX_FORWARDS);
		return;
	}
	if (server < 0) {
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
		return;
	}
	if (head->minor == 0)
		tailor_address_format(host, &worker->options->server[server].address);
	exchange->upgrade = (uint8_t)tunnel_asked(worker->options, head);
	rules.upgrade = tunnel_protocol(worker->options, exchange->upgrade);
	memcpy(rules.address, client->address, sizeof(rules.address));
	assert(!client->forward);
	client->forward = pool_take(&worker->forward_pool);
	length = head_write_request(&worker->trace, head, exchange->id, host, &rules, client->forward, worker->forward_bytes);
	if (length < 0) {
		exchange_refuse(worker, client, 431, TAILOR_REFUSED_HEAD);
		return;
	}
	exchange->forward_end = (uint32_t)length;
	replay_begin(worker, client);
	/* More than comes by chance in the same piece is taken in by our own measure. */
	client->in.own = exchange->body_left > input_length(&client->in) + worker->in_bytes / 2;
	/* Before the attempt, so that a small body goes out with the head. */
	status = take_body(worker, client);
	if (status)
		refuse_body(worker, client, status);
	else if (is_broken_off(client))
		exchange_client_gone(worker, client);
	else
		start_attempt(worker, client, (unsigned int)server);
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

void exchange_refuse(struct worker *worker, struct client *client, unsigned int status, enum tailor_refusal why)
{
	struct exchange *exchange = &client->exchange;
	int length;

	assert(exchange->winner < 0);
	exchange_drop_attempts(worker, client, TAILOR_ATTEMPT_END_CLIENT);
	client->state = CLIENT_EXCHANGE;
	exchange->refused = true;
	exchange->refusal = (uint8_t)why;
	exchange->deadline_ns = UINT64_MAX; /* the answer takes the time that it takes */
	exchange->status = (uint16_t)status;
	exchange->response_complete = true;
	/* An HTTP/1.0 client that is not told otherwise waits for the close. */
	exchange->close = !exchange->keep_alive || !exchange->request_complete || exchange->minor == 0 || worker->stopping;
	length = head_write_refusal(status, exchange, date_text(&worker->date, tailor_clock_wall_ns() / TAILOR_NS_PER_S),
	                            client_out(worker, client) + exchange->out_end,
	                            worker->out_bytes - exchange->out_end);
	if (length > 0)
		exchange->out_end += (uint32_t)length;
	response_pump(worker, client);
}

static void end(struct worker *worker, struct client *client, enum tailor_request_end how)
{
	struct exchange *exchange = &client->exchange;

	/* A connection beyond the limit is refused without a request. */
	if (exchange->id == 0)
		return;
	if (exchange->moved)
		count(&worker->counters.failed_over);
	count(&worker->counters.requests);
	record(worker, TAILOR_EVENT_REQUEST_END, exchange, exchange->status, exchange->reply_bytes, how,
	       exchange->winner < 0 ? TAILOR_ATTEMPT_NONE : record_attempt_number(exchange, (unsigned int)exchange->winner));
	exchange->id = 0;
}

/* The client must notice that the response broke off: its connection ends without the end of the body. */
static void break_off(struct worker *worker, struct client *client)
{
	if (client->exchange.until_close) {
		static const struct linger reset = {.l_onoff = 1};

		/* An orderly close would look like a whole response. */
		(void)setsockopt(client->connection.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	}
	client_close(worker, client);
}

static void cut(struct worker *worker, struct client *client)
{
	/* Not a tunnel: its request has had its answer. */
	if (client->exchange.id)
		count(&worker->counters.cut);
	end(worker, client, TAILOR_REQUEST_END_CUT);
	break_off(worker, client);
}

static void drop_all(struct worker *worker, struct client *client, enum tailor_attempt_end why)
{
	struct exchange *exchange = &client->exchange;
	int8_t winner = exchange->winner;

	exchange->winner = -1; /* so that its attempt is dropped, too */
	exchange_drop_attempts(worker, client, why);
	exchange->winner = winner;
}

void exchange_late(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	/* The server has done its part: it is the client that takes its time. */
	if (exchange->winner >= 0 && exchange->response_complete) {
		exchange_client_gone(worker, client);
	} else if (exchange->winner >= 0) {
		drop_all(worker, client, TAILOR_ATTEMPT_END_TIMEOUT);
		cut(worker, client);
	} else if (client->state == CLIENT_HEAD || !exchange->request_complete) {
		exchange_refuse(worker, client, 408, TAILOR_REFUSED_DEADLINE);
	} else {
		exchange_drop_attempts(worker, client, TAILOR_ATTEMPT_END_TIMEOUT);
		exchange_refuse(worker, client, 504, TAILOR_REFUSED_DEADLINE);
	}
}

void exchange_client_gone(struct worker *worker, struct client *client)
{
	if (client->state == CLIENT_HEAD || client->state == CLIENT_EXCHANGE) {
		drop_all(worker, client, TAILOR_ATTEMPT_END_CLIENT);
		if (client->exchange.id)
			count(&worker->counters.client_gone);
		end(worker, client, TAILOR_REQUEST_END_CLIENT);
		/* It may only have been slow, and read on later. */
		break_off(worker, client);
		return;
	}
	client_close(worker, client);
}

static void count_refused(struct worker *worker, unsigned int refusal)
{
	count(&worker->counters.refused);
	count(&worker->counters.refused_by[refusal]);
}

void exchange_told(struct worker *worker, struct client *client)
{
	end(worker, client, TAILOR_REQUEST_END_DONE);
}

void exchange_finish(struct worker *worker, struct client *client)
{
	if (client->exchange.refused)
		count_refused(worker, client->exchange.refusal);
	client->exchange.deadline_ns = UINT64_MAX;
	end(worker, client, client->exchange.refused ? TAILOR_REQUEST_END_REFUSED : TAILOR_REQUEST_END_DONE);
	assert(live_attempts(&client->exchange) == 0);
	client_answered(worker, client);
}

void exchange_unheld(struct worker *worker, struct client *client)
{
	if (client->state == CLIENT_HELD && client->connection.holds == 0)
		client_answered(worker, client);
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
	if (reason == TAILOR_FAILOVER_CLOSED)
		exchange->retried = true;
	return place_attempt(worker, client, (unsigned int)next, reason, stale) == 0;
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
		cut(worker, client);
		return;
	}
	if (live_attempts(exchange) > 0)
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
	if (exchange->response_complete || exchange->tunnel || live_attempts(exchange) > 1)
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
