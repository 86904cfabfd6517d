/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/exchange.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/client.h"
#include "proxy/connection.h"
#include "proxy/failover.h"
#include "proxy/head.h"
#include "proxy/record.h"
#include "proxy/response.h"
#include "proxy/server.h"
#include "proxy/upstream.h"

void exchange_begin(struct worker *worker, struct client *client, uint64_t read_ns)
{
	struct exchange *exchange = &client->exchange;
	const uint64_t arg[3] = {client->port, client->ip, 0};

	memset(exchange, 0, sizeof(*exchange));
	exchange->id = trace_next_id(&worker->trace);
	exchange->winner = -1;
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

/* Returns 0, or a negative errno when no connection could be had. */
static int begin_attempt(struct worker *worker, struct client *client, unsigned int server,
                         enum tailor_failover_reason reason, bool fresh)
{
	struct exchange *exchange = &client->exchange;
	unsigned int index = exchange->attempts;
	int ret;

	assert(index < TAILOR_ATTEMPTS_MAX && server < worker->options->servers);
	exchange->attempt[index] = (struct attempt){.server = (uint8_t)server, .reason = (uint16_t)reason};
	exchange->attempts++;
	ret = upstream_begin(worker, client, index, fresh);
	if (ret < 0)
		exchange->attempts--;
	return ret;
}

/* Moves some of the body from `in` to `forward`. Returns false when it is malformed. */
static bool take_piece(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	struct input *in = &client->in;
	uint32_t room = worker->forward_bytes - exchange->forward_end;
	uint32_t bytes;
	int64_t taken;

	(void)input_gather(worker, in);
	bytes = input_length(in);
	if (bytes > room)
		bytes = room;
	if (exchange->framing == HTTP1_CHUNKED) {
		taken = http1_chunked_take(&exchange->chunked, in->data + in->start, bytes,
		                           &exchange->request_complete);
		if (taken < 0)
			return false;
	} else {
		taken = bytes < exchange->body_left ? bytes : (int64_t)exchange->body_left;
		exchange->body_left -= (uint64_t)taken;
		exchange->request_complete = exchange->body_left == 0;
	}
	memcpy(client->forward + exchange->forward_end, in->data + in->start, (size_t)taken);
	exchange->forward_end += (uint32_t)taken;
	in->start += (uint32_t)taken;
	return true;
}

/* The same with all that is there, as far as there is room. */
static bool take_body(struct worker *worker, struct client *client)
{
	const struct exchange *exchange = &client->exchange;

	while (!exchange->request_complete && exchange->forward_end < worker->forward_bytes &&
	       !input_empty(&client->in)) {
		if (!take_piece(worker, client))
			return false;
	}
	return true;
}

/* Makes room for more body once the server has what is buffered; from then on the request cannot be sent again. */
static bool discard_sent(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	struct attempt *attempt = &exchange->attempt[exchange->attempts - 1];

	if (exchange->request_complete || exchange->forward_end < worker->forward_bytes / 2 ||
	    live_attempts(exchange) != 1)
		return false;
	if (!attempt->upstream || attempt->upstream->sending || attempt->sent_bytes < exchange->forward_end)
		return false;
	exchange->request_lost = true;
	exchange->forward_end = 0;
	attempt->sent_bytes = 0;
	return true;
}

/* The client has said that nothing more comes, and all that came is not the whole request. */
static bool is_broken_off(const struct client *client)
{
	return client->eof && !client->exchange.request_complete && input_empty(&client->in);
}

void exchange_feed(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	if (client->state != CLIENT_EXCHANGE || exchange->response_complete)
		return;
	do {
		if (!take_body(worker, client)) {
			if (exchange->winner >= 0)
				exchange_client_gone(worker, client);
			else
				exchange_refuse(worker, client, 400);
			return;
		}
		for (unsigned int i = 0; i < exchange->attempts; i++) {
			if (exchange->attempt[i].upstream)
				upstream_send(worker, exchange->attempt[i].upstream);
		}
	} while (discard_sent(worker, client));
	if (is_broken_off(client))
		exchange_client_gone(worker, client);
	else
		client_receive(worker, client);
}

void exchange_start(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	const struct http1_head *head = &worker->head;
	char host[TAILOR_ADDRESS_TEXT_BYTES] = "";
	int server = server_choose(worker);
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
		exchange_refuse(worker, client, 501);
		return;
	}
	if (server < 0) {
		exchange_refuse(worker, client, 503);
		return;
	}
	if (head->minor == 0)
		tailor_address_format(host, &worker->options->server[server].address);
	assert(!client->forward);
	client->forward = pool_take(&worker->forward_pool);
	length = head_write_request(&worker->trace, head, exchange->id, host, client->forward, worker->forward_bytes);
	if (length < 0) {
		exchange_refuse(worker, client, 431);
		return;
	}
	exchange->forward_end = (uint32_t)length;
	/* More than comes by chance in the same piece is taken in by our own measure. */
	client->in.own = exchange->body_left > input_length(&client->in) + worker->in_bytes / 2;
	/* Before the attempt, so that a small body goes out with the head. */
	if (!take_body(worker, client))
		exchange_refuse(worker, client, 400);
	else if (is_broken_off(client))
		exchange_client_gone(worker, client);
	else if (begin_attempt(worker, client, (unsigned int)server, TAILOR_FAILOVER_NONE, false) < 0)
		exchange_refuse(worker, client, 503);
	else
		client_receive(worker, client);
}

void exchange_drop_attempts(struct worker *worker, struct client *client, enum tailor_attempt_end end)
{
	struct exchange *exchange = &client->exchange;

	for (unsigned int i = 0; i < exchange->attempts; i++) {
		if (!exchange->attempt[i].upstream || (int)i == exchange->winner)
			continue;
		record_attempt(worker, TAILOR_EVENT_ATTEMPT_END, exchange, i, end);
		upstream_drop(worker, exchange->attempt[i].upstream);
	}
}

void exchange_refuse(struct worker *worker, struct client *client, unsigned int status)
{
	struct exchange *exchange = &client->exchange;
	int length;

	assert(exchange->winner < 0);
	exchange_drop_attempts(worker, client, TAILOR_ATTEMPT_END_CLIENT);
	client->state = CLIENT_EXCHANGE;
	exchange->refused = true;
	exchange->status = (uint16_t)status;
	exchange->response_complete = true;
	/* An HTTP/1.0 client that is not told otherwise waits for the close. */
	exchange->close = !exchange->keep_alive || !exchange->request_complete || exchange->minor == 0 || worker->stopping;
	length = head_write_refusal(status, exchange, client_out(worker, client) + exchange->out_end,
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
	count(&worker->counters.cut);
	end(worker, client, TAILOR_REQUEST_END_CUT);
	break_off(worker, client);
}

void exchange_client_gone(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	if (client->state == CLIENT_HEAD || client->state == CLIENT_EXCHANGE) {
		int8_t winner = exchange->winner;

		exchange->winner = -1; /* so that its attempt is dropped, too */
		exchange_drop_attempts(worker, client, TAILOR_ATTEMPT_END_CLIENT);
		exchange->winner = winner;
		count(&worker->counters.client_gone);
		end(worker, client, TAILOR_REQUEST_END_CLIENT);
		/* It may only have been slow, and read on later. */
		break_off(worker, client);
		return;
	}
	client_close(worker, client);
}

void exchange_finish(struct worker *worker, struct client *client)
{
	if (client->exchange.refused)
		count(&worker->counters.refused);
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
	        .method_allowed = options->replay_methods & (1u << exchange->method),
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
	if (stale)
		next = server_choose(worker);
	if (next < 0)
		return false;
	if (reason == TAILOR_FAILOVER_CLOSED)
		exchange->retried = true;
	return begin_attempt(worker, client, (unsigned int)next, reason, stale) == 0;
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
	if (exchange->winner == (int)index) {
		cut(worker, client);
		return;
	}
	if (live_attempts(exchange) > 0)
		return;
	switch (end_reason) {
	case TAILOR_ATTEMPT_END_CONNECT:
		if (!retry(worker, client, server, TAILOR_FAILOVER_CONNECT, false))
			exchange_refuse(worker, client, 503);
		break;
	case TAILOR_ATTEMPT_END_CLOSED:
		if (answered || !retry(worker, client, server, TAILOR_FAILOVER_CLOSED, stale))
			exchange_refuse(worker, client, 502);
		break;
	case TAILOR_ATTEMPT_END_TIMEOUT: exchange_refuse(worker, client, 504); break;
	default: exchange_refuse(worker, client, 502); break;
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
	if (exchange->response_complete || live_attempts(exchange) > 1)
		return;
	verdict = failover_judge(&c);
	if (verdict.action != FAILOVER_REPLAY) {
		if (!again)
			count(&worker->counters.not_moved[verdict.why]);
		return;
	}
	if (begin_attempt(worker, client, 1 - server, TAILOR_FAILOVER_GC, false) < 0) {
		count(&worker->counters.not_moved[TAILOR_NOT_MOVED_DOWN]);
		return;
	}
	exchange->moved = true;
	count(&worker->counters.server[server].moved_away);
}
