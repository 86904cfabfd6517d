/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/body.h"

#include <string.h>

#include "proxy/exchange.h"
#include "proxy/replay.h"

bool body_is_too_long(const struct worker *worker, const struct exchange *exchange)
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
		if (body_is_too_long(worker, exchange))
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

unsigned int body_take(struct worker *worker, struct client *client)
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

bool body_discard_sent(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	uint32_t room = replay_forward_bytes(worker, client);
	struct attempt *attempt;

	if (exchange->request_complete || exchange_live_attempts(exchange) != 1)
		return false;
	/* What can be kept whole is, to the last byte that fits. */
	if (!exchange->unkept && exchange->forward_end == room && replay_grow(worker, client))
		return true;
	if (exchange->forward_end < (exchange->unkept ? room / 2 : room))
		return false;
	attempt = &exchange->attempt[exchange->attempts - 1];
	/* A send of an attempt that has ended may read it yet, too. */
	if (!attempt->upstream || client->connection.holds > 0 || attempt->sent_bytes < exchange->forward_end)
		return false;
	exchange->request_lost = exchange->unkept = true;
	exchange->forward_end = 0;
	attempt->sent_bytes = 0;
	return true;
}
