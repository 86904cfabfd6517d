/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/attempt.h"
#include "proxy/body.h"
#include "proxy/client.h"
#include "proxy/client_wait.h"
#include "proxy/head.h"
#include "proxy/record.h"
#include "proxy/replay.h"
#include "proxy/response.h"
#include "proxy/route.h"
#include "proxy/server.h"
#include "proxy/tunnel.h"
#include "proxy/upstream.h"

void exchange_clear(struct exchange *exchange)
{
	memset(exchange, 0, offsetof(struct exchange, attempt));
	exchange->winner = -1;
	exchange->deadline_ns = UINT64_MAX;
}

void exchange_begin(struct worker *worker, struct client *client, uint64_t read_ns)
{
	struct exchange *exchange = &client->exchange;

	exchange_clear(exchange);
	exchange->id = trace_next_id(&worker->trace);
	if (worker->options->request_timeout_ns)
		exchange->deadline_ns = read_ns + worker->options->request_timeout_ns;
	client->search = (struct http1_search){0};
	exchange->begin_ns = read_ns;
}

void exchange_tell_begin(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	const uint64_t arg[3] = {client->port, client->ip, 0};

	if (exchange->begin_ns)
		record_at(worker, exchange->begin_ns, TAILOR_EVENT_REQUEST_BEGIN, exchange->id, 0, arg, NULL, 0);
	exchange->begin_ns = 0;
}

static void record_parsed(struct worker *worker, struct client *client, const struct http1_head *head)
{
	struct exchange *exchange = &client->exchange;
	uint64_t begin_ns = exchange->begin_ns;
	const uint64_t arg[3] = {head->minor, begin_ns, begin_ns ? TAILOR_CLIENT(client->port, client->ip) : 0};
	char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX];
	size_t length = head->method.length < sizeof(text) - 1 ? head->method.length : sizeof(text) - 1;
	size_t room;

	memcpy(text, head->method.data, length);
	text[length++] = ' ';
	room = sizeof(text) - length;
	if (head->target.length < room)
		room = head->target.length;
	memcpy(text + length, head->target.data, room);
	exchange->begin_ns = 0;
	record_at(worker, record_ns(worker), TAILOR_EVENT_REQUEST_PARSED, exchange->id, 0, arg, text, length + room);
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
	bool was_complete = exchange->request_complete;

	if (client->state != CLIENT_EXCHANGE || exchange->response_complete)
		return;
	do {
		unsigned int status = body_take(worker, client);

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
	} while (body_discard_sent(worker, client));
	if (is_broken_off(client)) {
		exchange_client_gone(worker, client);
		return;
	}
	client_receive(worker, client);
	tunnel_advance(worker, client);
	if (!was_complete && exchange->request_complete)
		exchange_judge_again(worker, client);
}

static void start_attempt(struct worker *worker, struct client *client, unsigned int server)
{
	int ret = attempt_place(worker, client, server, TAILOR_FAILOVER_NONE, client->exchange.upgrade != 0);

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

	record_parsed(worker, client, head);
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
	if (body_is_too_long(worker, exchange)) {
		refuse_body(worker, client, 413);
		return;
	}
	if (!forwarded_may(head)) {
		exchange_refuse(worker, client, head->method_known == HTTP1_OPTIONS ? 200 : 501, TAILOR_REFUSED_MAX_FORWARDS);
		return;
	}
	if (server < 0)
		server = server_last_resort(worker, -1);
	if (server < 0) {
		exchange_refuse(worker, client, 503, TAILOR_REFUSED_NO_SERVER);
		return;
	}
	if (head->minor == 0)
		tailor_address_format(host, &worker->options->server[server].address);
	exchange->upgrade = (uint8_t)tunnel_asked(worker->options, head);
	exchange->replayable = !exchange->upgrade && route_allows(worker->options->route, worker->options->routes, head->method_known, head->path);
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
	status = body_take(worker, client);
	if (status)
		refuse_body(worker, client, status);
	else if (is_broken_off(client))
		exchange_client_gone(worker, client);
	else
		start_attempt(worker, client, (unsigned int)server);
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
	length = head_write_refusal(status, exchange, date_now(&worker->date, worker->now_ns),
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
	client_wait_finish(worker, client);
	client->ended_ns = worker->now_ns;
	if (exchange->moved)
		count(&worker->counters.failed_over);
	count(&worker->counters.requests);
	record(worker, TAILOR_EVENT_REQUEST_END, exchange, TAILOR_ENDED(exchange->status, exchange->refusal), exchange->reply_bytes, how,
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

void exchange_cut(struct worker *worker, struct client *client)
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
		exchange_cut(worker, client);
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
	assert(exchange_live_attempts(&client->exchange) == 0);
	client_answered(worker, client);
}

void exchange_unheld(struct worker *worker, struct client *client)
{
	if (client->state == CLIENT_HELD && client->connection.holds == 0)
		client_answered(worker, client);
}
