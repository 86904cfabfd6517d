/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/response.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "proxy/client.h"
#include "proxy/client_wait.h"
#include "proxy/connection.h"
#include "proxy/exchange.h"
#include "proxy/head.h"
#include "proxy/record.h"
#include "proxy/reframe.h"
#include "proxy/stopped.h"
#include "proxy/timeouts.h"
#include "proxy/tunnel.h"
#include "proxy/upstream.h"

/* Less is cheaper to copy behind the head. */
#define DIRECT_BYTES_MIN 2048

static struct upstream *winning_upstream(const struct exchange *exchange)
{
	return exchange->winner < 0 ? NULL : exchange->attempt[exchange->winner].upstream;
}

/* The connection carries another exchange only if both sides know that this one is over. */
static void judge_reuse(struct upstream *upstream, const struct exchange *exchange)
{
	const struct attempt *attempt = &exchange->attempt[upstream->attempt];

	if (upstream->in.end > upstream->in.body || input_waits(&upstream->in) || !exchange->request_complete ||
	    attempt->sent_bytes < exchange->forward_end)
		upstream->dirty = true;
}

static void complete(struct worker *worker, struct upstream *upstream)
{
	struct exchange *exchange = &upstream->client->exchange;

	exchange->response_complete = true;
	stopped_answered(worker, &exchange->attempt[upstream->attempt]);
	upstream_answered(worker, upstream);
	exchange_leave_place(worker, &exchange->attempt[upstream->attempt]);
	judge_reuse(upstream, exchange);
	wheel_set(&worker->wheel, &upstream->connection.alarm, UINT64_MAX);
	count(&worker->counters.server[upstream->server].responses);
	record_response(worker, RECORD_RESPONSE_END, exchange, upstream->attempt);
}

/* Finds how much of what was received belongs to the body. Returns false when it is malformed. */
static bool take_body(struct worker *worker, struct upstream *upstream)
{
	struct exchange *exchange = &upstream->client->exchange;
	struct input *in = &upstream->in;
	uint32_t available = in->end - in->body;
	bool done = false;
	int64_t taken = available;

	switch (exchange->response_framing) {
	case HTTP1_NO_BODY:
		taken = 0;
		done = true;
		break;
	case HTTP1_LENGTH:
		if ((uint64_t)taken > exchange->response_left)
			taken = (int64_t)exchange->response_left;
		exchange->response_left -= (uint64_t)taken;
		done = exchange->response_left == 0;
		break;
	case HTTP1_CHUNKED:
		taken = http1_chunked_take(&exchange->response_chunked, in->data + in->body, available, &done);
		if (taken < 0)
			return false;
		break;
	case HTTP1_UNTIL_CLOSE: break;
	}
	if (exchange->tunnel)
		count_add(&worker->counters.tunnel_bytes_to_client, (uint64_t)taken);
	in->body += (uint32_t)taken;
	if (done)
		complete(worker, upstream);
	return true;
}

static void advance_body(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;

	if (!take_body(worker, upstream)) {
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_BAD);
		return;
	}
	response_pump(worker, client);
}

/* 100 Continue and its like: passed on while only one server is involved, to clients that know them. */
static void pass_interim(struct worker *worker, struct client *client, const struct http1_head *head)
{
	struct exchange *exchange = &client->exchange;
	int length;

	if (exchange_live_attempts(exchange) > 1 || exchange->minor == 0 ||
	    exchange->out_end + head->head_bytes + HEAD_ADDED_BYTES > worker->out_bytes / 2)
		return;
	length = head_write_interim(head, worker->options->via, client_out(worker, client) + exchange->out_end,
	                            worker->out_bytes - exchange->out_end);
	if (length > 0)
		exchange->out_end += (uint32_t)length;
}

static void choose_reframing(struct worker *worker, struct exchange *exchange, const struct http1_head *head)
{
	exchange->status = head->status;
	exchange->response_framing = head->framing;
	exchange->response_left = head->content_length;
	exchange->close = !exchange->keep_alive || !exchange->request_complete || worker->stopping;
	if (head->framing == HTTP1_UNTIL_CLOSE && exchange->minor >= 1) {
		exchange->reframing = REFRAME_TO_CHUNKED;
	} else if (head->framing == HTTP1_CHUNKED && exchange->minor == 0) {
		exchange->reframing = REFRAME_FROM_CHUNKED;
		exchange->close = exchange->until_close = true;
	} else if (head->framing == HTTP1_UNTIL_CLOSE) {
		exchange->close = exchange->until_close = true;
	}
}

/*
 * The head that was made in `out`, `length` bytes, moves to right before its body if much of that has come with it:
 * both are then sent from there, without a copy of the body.
 */
static bool put_before_body(struct client *client, struct input *in, uint32_t length)
{
	const struct exchange *exchange = &client->exchange;

	if (exchange->reframing != REFRAME_NONE || exchange->out_end > 0 || input_length(in) < DIRECT_BYTES_MIN ||
	    in->start < length || in->held)
		return false;
	in->start -= length;
	memcpy(in->data + in->start, client->out, length);
	return true;
}

/* The first complete head decides: from here on, only this attempt exists. */
static void choose(struct worker *worker, struct upstream *upstream, const struct http1_head *head)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	int length;

	exchange->winner = (int8_t)upstream->attempt;
	exchange_drop_losers(worker, client, head);
	choose_reframing(worker, exchange, head);
	if (!head->keep_alive || head->framing == HTTP1_UNTIL_CLOSE)
		upstream->dirty = true;
	length = head_write_response(exchange, head, worker->options->via, date_now(&worker->date, worker->now_ns),
	                             client_out(worker, client) + exchange->out_end, worker->out_bytes - exchange->out_end);
	upstream->in.start += (uint32_t)head->head_bytes;
	upstream->in.body = upstream->in.start;
	/* More than comes by chance in the same piece is taken in by our own measure. */
	if (exchange->response_left > input_length(&upstream->in) + worker->upstream_in_bytes / 2)
		upstream->in.own = true;
	/* None of it is on its way yet. */
	if (length < 0 || !take_body(worker, upstream)) {
		exchange->winner = -1;
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_BAD);
		return;
	}
	if (!put_before_body(client, &upstream->in, (uint32_t)length))
		exchange->out_end += (uint32_t)length;
	response_pump(worker, client);
}

/* The server has agreed to another protocol. */
static void change_protocol(struct worker *worker, struct upstream *upstream, const struct http1_head *head)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	int length = head_write_switch(exchange, head, worker->options->via,
	                               tunnel_protocol(worker->options, exchange->upgrade),
	                               client_out(worker, client) + exchange->out_end, worker->out_bytes - exchange->out_end);

	if (length < 0) {
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_BAD);
		return;
	}
	exchange->winner = (int8_t)upstream->attempt;
	exchange->status = 101;
	exchange->response_framing = HTTP1_UNTIL_CLOSE;
	exchange->close = exchange->until_close = true;
	exchange->out_end += (uint32_t)length;
	upstream->in.start += (uint32_t)head->head_bytes;
	upstream->in.body = upstream->in.start;
	tunnel_begin(worker, upstream);
	advance_body(worker, upstream);
	/* What the client has sent already. */
	exchange_feed(worker, client);
}

static void advance_head(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;
	struct http1_head *head = &worker->head;

	for (;;) {
		struct input *in = &upstream->in;
		int ret;

		(void)input_gather(worker, in);
		ret = http1_parse_response(in->data + in->start, input_length(in), &worker->response_limits, &upstream->search,
		                           client->exchange.method, head);

		if (ret == 0) {
			client->exchange.attempt[upstream->attempt].answered = input_length(in) > 0;
			upstream_receive(worker, upstream);
			return;
		}
		if (ret > 0 && head->status == 101 && tunnel_agreed(worker->options, client->exchange.upgrade, head)) {
			change_protocol(worker, upstream, head);
			return;
		}
		/* Nobody asked for this protocol. */
		if (ret < 0 || head->status == 101) {
			exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_BAD);
			return;
		}
		if (head->status >= 200)
			break;
		pass_interim(worker, client, head);
		in->start += (uint32_t)head->head_bytes;
		in->body = in->start;
		upstream->search = (struct http1_search){0};
		response_pump(worker, client);
	}
	choose(worker, upstream, head);
}

void response_received(struct worker *worker, struct upstream *upstream, uint32_t bytes)
{
	struct exchange *exchange = &upstream->client->exchange;
	struct attempt *attempt = &exchange->attempt[upstream->attempt];

	record_step_begin(worker, 0);
	if (!attempt->response_begun) {
		attempt->response_begun = true;
		record_response(worker, RECORD_RESPONSE_BEGIN, exchange, upstream->attempt);
	}
	attempt->answered = true;
	attempt->response_bytes += bytes;
	if (exchange->winner < 0)
		advance_head(worker, upstream);
	else
		advance_body(worker, upstream);
	record_step_end(worker);
}

void response_ended(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;

	/* A tunnel goes on, unless the server had refused the client's bytes before. */
	if (!exchange->tunnel)
		upstream->dirty = true;
	/* What came before it comes first: response_pump() will be back. */
	if (input_waits(&upstream->in))
		return;
	if (exchange->tunnel && upstream->end_result == 0) {
		/* The client may still send. */
		upstream->ended = exchange->server_ended = true;
		response_pump(worker, client);
		return;
	}
	if (exchange->winner == (int)upstream->attempt && exchange->response_framing == HTTP1_UNTIL_CLOSE &&
	    upstream->end_result == 0) {
		complete(worker, upstream);
		response_pump(worker, client);
		return;
	}
	exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_CLOSED);
}

/* Copies body behind what `out` holds, or reframes it into `out`. */
static void fill_out(struct worker *worker, struct client *client, struct upstream *upstream)
{
	struct exchange *exchange = &client->exchange;
	uint32_t room = worker->out_bytes - exchange->out_end;
	struct input *in = &upstream->in;
	uint32_t available = in->body - in->start;

	switch (exchange->reframing) {
	case REFRAME_NONE:
		/* Alone, a piece of body is sent from where it is. */
		if (exchange->out_end == 0 || exchange->direct || available == 0)
			return;
		if (available > room)
			available = room;
		memcpy(client->out + exchange->out_end, in->data + in->start, available);
		exchange->out_end += available;
		in->start += available;
		break;
	case REFRAME_TO_CHUNKED:
		in->start += reframe_to_chunked(exchange, in->data + in->start, available, client->out,
		                                worker->out_bytes);
		break;
	case REFRAME_FROM_CHUNKED:
		in->start += reframe_from_chunked(exchange, in->data + in->start, available, client->out,
		                                  worker->out_bytes);
		break;
	}
}

/* Takes what waited for room in the upstream's memory. Returns false when that has ended the exchange's response. */
static bool take_waiting(struct worker *worker, struct upstream *upstream)
{
	if (input_gather(worker, &upstream->in) && !take_body(worker, upstream)) {
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_BAD);
		return false;
	}
	if (upstream->ended && !input_waits(&upstream->in) && !upstream->client->exchange.response_complete &&
	    !upstream->client->exchange.server_ended) {
		upstream->ended = false;
		response_ended(worker, upstream);
		return false;
	}
	return true;
}

/* Makes of what is there something to send, if that is possible. Returns false when the response has ended by it. */
static bool fill(struct worker *worker, struct client *client, struct upstream *upstream)
{
	struct exchange *exchange = &client->exchange;

	do {
		if (!exchange->response_complete && !take_waiting(worker, upstream))
			return false;
		fill_out(worker, client, upstream);
		/* Of chunks, all may have been framing. */
	} while (!exchange->response_complete && input_waits(&upstream->in) &&
	         exchange->out_start == exchange->out_end && upstream->in.start == upstream->in.body);
	return true;
}

static void submit(struct worker *worker, struct client *client, const char *data, uint32_t bytes)
{
	struct exchange *exchange = &client->exchange;

	if (!exchange->reply_begun && (exchange->refused || exchange->winner >= 0)) {
		exchange->reply_begun = true;
		exchange->reply_ns = record_ns(worker);
		record_reply(worker, exchange);
	}
	timeouts_wait(worker, client, worker->options->body_timeout_ns);
	if (client_waits(client))
		client->wait.bytes = bytes;
	tailor_ring_send(worker->ring, client->connection.fd, data, bytes, client_waits(client) ? 0 : MSG_DONTWAIT,
	                 connection_begin(&client->connection, OPERATION_SEND));
}

/* A piece of body alone is sent from where it is. */
static void submit_direct(struct worker *worker, struct client *client, struct upstream *upstream)
{
	struct input *in = &upstream->in;

	/* How long it is held is up to the client. */
	if (worker->lent_count > INPUT_BUFFERS / 2)
		input_rest(worker, in);
	client->exchange.direct = upstream;
	upstream->connection.holds++;
	in->held = true;
	submit(worker, client, in->data + in->start, in->body - in->start);
}

void response_pump(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	struct upstream *upstream = winning_upstream(exchange);

	if (client->connection.closing)
		return;
	if (connection_has(&client->connection, OPERATION_SEND)) {
		/* One send at a time keeps the bytes in order; reading goes on as far as the buffer reaches. */
		if (upstream && !exchange->response_complete)
			upstream_receive(worker, upstream);
		return;
	}
	if (exchange->out_start == exchange->out_end)
		exchange->out_start = exchange->out_end = 0;
	if (upstream && !fill(worker, client, upstream))
		return;
	if (exchange->out_start < exchange->out_end) {
		submit(worker, client, client->out + exchange->out_start, exchange->out_end - exchange->out_start);
	} else if (upstream && exchange->reframing == REFRAME_NONE && upstream->in.start < upstream->in.body) {
		submit_direct(worker, client, upstream);
	}
	if (upstream && exchange->response_complete && upstream->in.start == upstream->in.body &&
	    (exchange->reframing != REFRAME_TO_CHUNKED || exchange->tail_written))
		upstream_release(worker, upstream);
	else if (upstream && !exchange->response_complete)
		upstream_receive(worker, upstream);
	if (exchange->response_complete && !connection_has(&client->connection, OPERATION_SEND))
		exchange_finish(worker, client);
	else if (exchange->tunnel)
		tunnel_advance(worker, client);
}

void response_waits(struct worker *worker, struct client *client)
{
	client_wait_begin(worker, client);
	/* The same bytes again, and perhaps more by now. */
	response_pump(worker, client);
}

void response_sent(struct worker *worker, struct client *client, uint32_t bytes)
{
	struct exchange *exchange = &client->exchange;

	client_wait_end(worker, client);
	exchange->reply_bytes += bytes;
	/* From here it waits for the server, or still for the rest of the request. */
	if (exchange->request_complete || !input_empty(&client->in))
		timeouts_wait(worker, client, UINT64_MAX);
	if (exchange->direct) {
		/* The hold has ended with the send. */
		exchange->direct->in.start += bytes;
		exchange->direct = NULL;
	} else {
		exchange->out_start += bytes;
	}
	if (exchange->tunnel && exchange->id && exchange->out_start == exchange->out_end)
		exchange_told(worker, client);
	response_pump(worker, client);
}
