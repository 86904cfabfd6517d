/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tunnel.h"

#include <string.h>
#include <sys/socket.h>

#include "proxy/client.h"
#include "proxy/connection.h"
#include "proxy/exchange.h"
#include "proxy/record.h"
#include "proxy/upstream.h"

static bool names(const struct http1_head *head, const char *protocol)
{
	for (size_t i = 0; i < head->field_count; i++) {
		if (head->field[i].known == HTTP1_UPGRADE && http1_list_has(head->field[i].value, protocol))
			return true;
	}
	return false;
}

unsigned int tunnel_asked(const struct tailor_proxy_options *options, const struct http1_head *head)
{
	/* With a body it would not be known where the new protocol begins. */
	if (!head->upgrade || head->framing != HTTP1_NO_BODY)
		return 0;
	for (unsigned int i = 0; i < options->upgrades; i++) {
		if (names(head, options->upgrade[i]))
			return i + 1;
	}
	return 0;
}

const char *tunnel_protocol(const struct tailor_proxy_options *options, unsigned int asked)
{
	return asked ? options->upgrade[asked - 1] : NULL;
}

bool tunnel_agreed(const struct tailor_proxy_options *options, unsigned int asked, const struct http1_head *head)
{
	return asked && head->upgrade && names(head, options->upgrade[asked - 1]);
}

void tunnel_begin(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;

	exchange->tunnel = true;
	exchange->deadline_ns = UINT64_MAX;
	exchange->request_complete = false;
	exchange->framing = HTTP1_LENGTH;
	exchange->body_left = UINT64_MAX;
	exchange->unkept = true;
	wheel_set(&worker->wheel, &upstream->connection.alarm, UINT64_MAX);
	count(&worker->counters.tunnels);
	count(&worker->counters.tunnels_open);
	/* It has answered the request. */
	upstream_answered(worker, upstream);
	exchange_leave_place(worker, &exchange->attempt[upstream->attempt]);
	count(&worker->counters.server[upstream->server].responses);
	record_response(worker, RECORD_RESPONSE_END, exchange, upstream->attempt);
}

/* All that the server will ever send has been taken by the client. */
static bool is_drained_to_client(const struct client *client, const struct upstream *upstream)
{
	const struct exchange *exchange = &client->exchange;

	return exchange->server_ended && input_empty(&upstream->in) && exchange->out_start == exchange->out_end &&
	       !connection_has(&client->connection, OPERATION_SEND);
}

static bool is_drained_to_server(const struct client *client, const struct upstream *upstream)
{
	const struct exchange *exchange = &client->exchange;

	return client->eof && input_empty(&client->in) &&
	       exchange->attempt[upstream->attempt].sent_bytes == exchange->forward_end &&
	       !connection_has(&upstream->connection, OPERATION_SEND);
}

static void finish(struct worker *worker, struct client *client, struct upstream *upstream)
{
	upstream->dirty = true;
	client->exchange.request_complete = client->exchange.response_complete = true;
	upstream_release(worker, upstream);
	exchange_finish(worker, client);
}

void tunnel_advance(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	struct upstream *upstream = exchange->winner < 0 ? NULL : exchange->attempt[exchange->winner].upstream;
	bool to_client, to_server;

	if (!exchange->tunnel || !upstream || client->state != CLIENT_EXCHANGE)
		return;
	to_client = is_drained_to_client(client, upstream);
	to_server = is_drained_to_server(client, upstream);
	/* The server takes no more, and may have nothing more to say by which that would be noticed. Its last words come first. */
	if (upstream->dirty && (to_client || !exchange->server_ended)) {
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_CLOSED);
		return;
	}
	if (to_client && to_server) {
		finish(worker, client, upstream);
		return;
	}
	if (to_client && !exchange->client_told) {
		exchange->client_told = true;
		tailor_ring_shutdown(worker->ring, client->connection.fd, SHUT_WR,
		                     connection_begin(&client->connection, OPERATION_SHUTDOWN));
	}
	if (to_server && !exchange->server_told) {
		exchange->server_told = true;
		tailor_ring_shutdown(worker->ring, upstream->connection.fd, SHUT_WR,
		                     connection_begin(&upstream->connection, OPERATION_SHUTDOWN));
	}
}

void tunnel_idle(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;
	struct upstream *upstream = exchange->attempt[exchange->winner].upstream;

	count(&worker->counters.tunnels_idle);
	upstream_drop(worker, upstream);
	client_close(worker, client);
}

void tunnel_closed(struct worker *worker, struct client *client)
{
	if (!client->exchange.tunnel)
		return;
	client->exchange.tunnel = false;
	count_add(&worker->counters.tunnels_open, (uint64_t)-1);
}
