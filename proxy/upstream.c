/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/upstream.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/connection.h"
#include "proxy/discard.h"
#include "proxy/exchange.h"
#include "proxy/pause.h"
#include "proxy/record.h"
#include "proxy/replay.h"
#include "proxy/response.h"
#include "proxy/server.h"
#include "proxy/stopped.h"
#include "proxy/tag.h"
#include "proxy/tunnel.h"
#include "proxy/warm.h"

#define PORT_TRIES 3

static void list_remove(struct upstream *upstream)
{
	*upstream->link = upstream->next;
	if (upstream->next)
		upstream->next->link = upstream->link;
	upstream->link = NULL;
	upstream->next = NULL;
}

static void list_add(struct upstream **list, struct upstream *upstream)
{
	upstream->next = *list;
	if (*list)
		(*list)->link = &upstream->next;
	*list = upstream;
	upstream->link = list;
}

/* One more or one fewer of the worker's requests is at the server. */
static void change_load(struct worker *worker, unsigned int server, int by)
{
	uint32_t *load = &worker->shared->load[worker->index].server[server];

	__atomic_store_n(load, *load + (uint32_t)by, __ATOMIC_RELAXED);
	count_add(&worker->counters.server[server].in_flight, (uint64_t)(int64_t)by);
}

static void attach(struct worker *worker, struct upstream *upstream, struct client *client, unsigned int index)
{
	upstream->client = client;
	upstream->attempt = (uint8_t)index;
	upstream->search = (struct http1_search){0};
	client->exchange.attempt[index].upstream = upstream;
	list_add(&worker->server[upstream->server].in_flight, upstream);
	upstream->loads = true;
	change_load(worker, upstream->server, 1);
	pause_watch(worker, upstream->server);
	warm_note(worker, upstream->server);
}

void upstream_answered(struct worker *worker, struct upstream *upstream)
{
	if (upstream->loads)
		change_load(worker, upstream->server, -1);
	upstream->loads = false;
}

static void detach(struct worker *worker, struct upstream *upstream)
{
	stopped_leave(worker, &upstream->client->exchange.attempt[upstream->attempt]);
	upstream->client->exchange.attempt[upstream->attempt].upstream = NULL;
	upstream->client = NULL;
	/* The tag stays until the next request: the server's write may return only now. */
	list_remove(upstream);
	upstream_answered(worker, upstream);
}

static void close_upstream(struct worker *worker, struct upstream *upstream)
{
	assert(!upstream->client && !upstream->link);
	upstream->state = UPSTREAM_CLOSING;
	if (upstream->tag) {
		tag_release(upstream->tag);
		upstream->tag = NULL;
	}
	connection_close(worker, &upstream->connection);
}

void upstream_closed(struct worker *worker, struct upstream *upstream)
{
	input_clear(worker, &upstream->in);
	upstream->state = UPSTREAM_FREE;
	upstream->next = worker->upstream_free;
	worker->upstream_free = upstream;
	worker->upstream_count--;
	count_add(&worker->counters.server[upstream->server].connections, (uint64_t)-1);
}

static int open_socket(const struct tailor_address *address)
{
	int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	if (address->storage.ss_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* Returns a connection in state CONNECTING, its connect queued, or NULL with *ret_error. */
static struct upstream *open_upstream(struct worker *worker, unsigned int server, int *ret_error)
{
	const struct tailor_address *address = &worker->options->server[server].address;
	int fd = open_socket(address);
	struct upstream *upstream;

	*ret_error = fd;
	if (fd < 0)
		return NULL;
	upstream = worker_take_upstream(worker);
	if (!upstream) {
		close(fd);
		*ret_error = -ENOBUFS;
		return NULL;
	}
	upstream->next = NULL;
	upstream->state = UPSTREAM_CONNECTING;
	upstream->connection.fd = fd;
	upstream->server = (uint8_t)server;
	upstream->reused = false;
	upstream->dirty = false;
	upstream->port = 0;
	upstream->port_tries = 0;
	upstream->ended = false;
	server_connecting(worker, server);
	count(&worker->counters.server[server].connects);
	count(&worker->counters.server[server].connections);
	wheel_set(&worker->wheel, &upstream->connection.alarm, worker->now_ns + worker->options->connect_timeout_ns);
	tailor_ring_connect(worker->ring, fd, (const struct sockaddr *)&address->storage, address->length,
	                    connection_begin(&upstream->connection, OPERATION_CONNECT));
	return upstream;
}

bool upstream_open_spare(struct worker *worker, unsigned int server)
{
	int error;
	struct upstream *upstream = open_upstream(worker, server, &error);

	if (!upstream)
		return false;
	upstream->state = UPSTREAM_WARMING;
	list_add(&worker->server[server].discarding, upstream);
	return true;
}

/* The connection stands: the tag first, then the request, with which the attempt begins unless it had to connect. */
static void start_sending(struct worker *worker, struct upstream *upstream, bool begins)
{
	struct exchange *exchange = &upstream->client->exchange;

	upstream->state = UPSTREAM_BUSY;
	exchange->attempt[upstream->attempt].port = upstream->port;
	exchange->attempt[upstream->attempt].sent_ns = worker->now_ns;
	if (upstream->tag)
		tag_store(upstream->tag, exchange->id);
	record_attempt(worker, TAILOR_EVENT_ATTEMPT_SEND, exchange, upstream->attempt, begins);
	count(&worker->counters.server[upstream->server].requests);
	wheel_set(&worker->wheel, &upstream->connection.alarm, UINT64_MAX);
	upstream_send(worker, upstream);
	upstream_receive(worker, upstream);
}

int upstream_begin(struct worker *worker, struct client *client, unsigned int index, bool fresh)
{
	struct attempt *attempt = &client->exchange.attempt[index];
	struct upstream *upstream = worker->server[attempt->server].idle;
	int error;

	if (upstream && !fresh) {
		list_remove(upstream);
		upstream->reused = true;
		upstream->turn = worker->turn;
		attempt->port = upstream->port;
		attach(worker, upstream, client, index);
		start_sending(worker, upstream, true);
		return 0;
	}
	upstream = open_upstream(worker, attempt->server, &error);
	if (!upstream)
		return error;
	attach(worker, upstream, client, index);
	record_attempt(worker, TAILOR_EVENT_ATTEMPT_BEGIN, &client->exchange, index, 0);
	return 0;
}

void upstream_send(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;
	struct exchange *exchange = &client->exchange;
	struct attempt *attempt = &exchange->attempt[upstream->attempt];

	if (upstream->state != UPSTREAM_BUSY || upstream->dirty ||
	    connection_has(&upstream->connection, OPERATION_SEND))
		return;
	if (attempt->sent_bytes < exchange->forward_end) {
		if (exchange->winner < 0)
			wheel_set(&worker->wheel, &upstream->connection.alarm,
			          worker->now_ns + worker->options->body_timeout_ns);
		upstream->sending = client;
		client->connection.holds++;
		tailor_ring_send(worker->ring, upstream->connection.fd, replay_forward(client) + attempt->sent_bytes,
		                 exchange->forward_end - attempt->sent_bytes, 0,
		                 connection_begin(&upstream->connection, OPERATION_SEND));
		if (attempt->signal_ns)
			stopped_hand_over(worker, attempt);
	} else if (exchange->request_complete && !attempt->sent) {
		attempt->sent = true;
		record_attempt(worker, TAILOR_EVENT_ATTEMPT_SENT, exchange, upstream->attempt, 0);
		if (exchange->winner < 0)
			wheel_set(&worker->wheel, &upstream->connection.alarm,
			          worker->now_ns + worker->options->response_timeout_ns);
	} else if (!exchange->request_complete && exchange->winner < 0) {
		/* The client's turn. */
		wheel_set(&worker->wheel, &upstream->connection.alarm, UINT64_MAX);
	}
}

void upstream_receive(struct worker *worker, struct upstream *upstream)
{
	bool body = upstream->client && upstream->client->exchange.winner == (int)upstream->attempt;

	if (upstream->connection.closing || upstream->ended)
		return;
	if (upstream->client && upstream->client->exchange.response_complete)
		return;
	if (upstream->client && upstream->client->exchange.attempt[upstream->attempt].response_begun)
		upstream->in.own = true;
	if (!connection_receive(worker, &upstream->connection, &upstream->in, false))
		/* The client is slow, not the server. */
		wheel_set(&worker->wheel, &upstream->connection.alarm, UINT64_MAX);
	else if (body && !upstream->client->exchange.tunnel)
		wheel_set(&worker->wheel, &upstream->connection.alarm,
		          worker->now_ns + worker->options->body_timeout_ns);
}

void upstream_drop(struct worker *worker, struct upstream *upstream)
{
	if (upstream->state == UPSTREAM_CONNECTING)
		server_connect_given_up(worker, upstream->server);
	detach(worker, upstream);
	close_upstream(worker, upstream);
}

/* Into the pool. */
static void become_idle(struct worker *worker, struct upstream *upstream)
{
	upstream->state = UPSTREAM_IDLE;
	input_rest(worker, &upstream->in);
	upstream->in.own = false;
	list_add(&worker->server[upstream->server].idle, upstream);
	/* The most recently used one is used next, so that those of a past peak come to their end. */
	wheel_set(&worker->wheel, &upstream->connection.alarm, worker->now_ns + worker->options->idle_timeout_ns);
	upstream_receive(worker, upstream);
}

void upstream_release(struct worker *worker, struct upstream *upstream)
{
	const struct connection *connection = &upstream->connection;
	/* The receive that goes on for ever may go on. */
	bool usable = !upstream->dirty && !worker->stopping && !connection->holds &&
	              !(connection->operations & (uint8_t) ~(connection->multishot ? 1u << OPERATION_RECEIVE : 0u));

	detach(worker, upstream);
	if (!usable) {
		close_upstream(worker, upstream);
		return;
	}
	become_idle(worker, upstream);
}

void upstream_discard(struct worker *worker, struct upstream *upstream)
{
	const struct exchange *exchange = &upstream->client->exchange;
	const struct attempt *attempt = &exchange->attempt[upstream->attempt];

	/* The request has to be there whole: its buffer is the client's, whose next request comes soon. */
	if (upstream->state != UPSTREAM_BUSY || !attempt->sent || upstream->dirty || upstream->ended || worker->stopping ||
	    connection_has(&upstream->connection, OPERATION_SEND)) {
		upstream_drop(worker, upstream);
		return;
	}
	upstream->state = UPSTREAM_DISCARDING;
	discard_begin(upstream, exchange->method);
	detach(worker, upstream);
	list_add(&worker->server[upstream->server].discarding, upstream);
	wheel_set(&worker->wheel, &upstream->connection.alarm, worker->now_ns + worker->options->response_timeout_ns);
	upstream_receive(worker, upstream);
}

static void close_listed(struct worker *worker, struct upstream *upstream)
{
	list_remove(upstream);
	close_upstream(worker, upstream);
}

/* Bytes of an answer that nobody wants. */
static void discard(struct worker *worker, struct upstream *upstream)
{
	int ret = discard_take(worker, upstream);

	if (ret > 0) {
		list_remove(upstream);
		become_idle(worker, upstream);
	} else if (ret < 0) {
		input_clear(worker, &upstream->in);
		close_listed(worker, upstream);
	} else {
		upstream->in.own = true;
		upstream_receive(worker, upstream);
	}
}

void upstream_close_idle(struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		while (worker->server[i].idle)
			close_listed(worker, worker->server[i].idle);
		while (worker->server[i].discarding)
			close_listed(worker, worker->server[i].discarding);
	}
}

/* Learns the local port and claims its tag. Returns false when that belongs to a connection to another server. */
static bool claim_port(struct worker *worker, struct upstream *upstream)
{
	const struct tailor_address *server = &worker->options->server[upstream->server].address;
	struct tailor_address local = {.length = sizeof(local.storage)};

	if (getsockname(upstream->connection.fd, (struct sockaddr *)&local.storage, &local.length) != 0)
		return true;
	upstream->port = tailor_address_port(&local);
	if (upstream->port == 0)
		return true;
	upstream->tag = tag_claim(worker->options->tags, &local, upstream->server, server);
	return upstream->tag != NULL;
}

/* Returns false when another port was asked for: this connection is then on its way out. */
static bool learn_port(struct worker *worker, struct upstream *upstream)
{
	struct client *client = upstream->client;
	unsigned int index = upstream->attempt;
	struct upstream *other;
	int error;

	if (claim_port(worker, upstream) || upstream->port_tries >= PORT_TRIES)
		return true;
	other = open_upstream(worker, upstream->server, &error);
	if (!other)
		return true;
	other->port_tries = upstream->port_tries + 1;
	upstream_drop(worker, upstream);
	attach(worker, other, client, index);
	return false;
}

static void warmed(struct worker *worker, struct upstream *upstream)
{
	if (!claim_port(worker, upstream)) {
		close_listed(worker, upstream);
		return;
	}
	list_remove(upstream);
	become_idle(worker, upstream);
	warm_made(worker);
}

static void connected(struct worker *worker, struct upstream *upstream, int result)
{
	if (result < 0) {
		count(&worker->counters.server[upstream->server].connect_failures);
		/* One of several more may only have been one too many at a time, and who stands still accepts nobody. */
		if (upstream->state != UPSTREAM_WARMING ||
		    (!worker->server[upstream->server].idle && worker->server[upstream->server].standing.kind == TAILOR_STOP_NONE))
			server_mark_down(worker, upstream->server);
		if (upstream->state == UPSTREAM_WARMING) {
			close_listed(worker, upstream);
			return;
		}
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_CONNECT);
		return;
	}
	server_mark_up(worker, upstream->server);
	upstream->connected_ns = tailor_clock_ns();
	if (upstream->state == UPSTREAM_WARMING)
		warmed(worker, upstream);
	else if (learn_port(worker, upstream))
		start_sending(worker, upstream, false);
}

static void received(struct worker *worker, struct upstream *upstream, int result)
{
	if (upstream->state == UPSTREAM_IDLE) {
		/* Closed by the server, or bytes that nobody asked for. */
		input_clear(worker, &upstream->in);
		close_listed(worker, upstream);
	} else if (upstream->state == UPSTREAM_DISCARDING) {
		if (result > 0) {
			discard(worker, upstream);
			return;
		}
		input_clear(worker, &upstream->in);
		close_listed(worker, upstream);
	} else if (upstream->client->exchange.response_complete) {
		/* The same, while the client still reads. */
		upstream->dirty = true;
		upstream->ended = upstream->ended || result <= 0;
		input_cut(worker, &upstream->in);
	} else if (upstream->reused && upstream->turn == worker->turn) {
		/* It was here before the request has left: like in the pool, also if it looks like an answer. */
		upstream->ended = true;
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_CLOSED);
	} else if (result > 0) {
		response_received(worker, upstream, (uint32_t)result);
	} else {
		upstream->ended = true;
		upstream->end_result = result;
		response_ended(worker, upstream);
	}
}

void upstream_complete(struct worker *worker, struct upstream *upstream, enum operation operation, int result)
{
	if (operation == OPERATION_SEND) {
		struct client *sending = upstream->sending;

		upstream->sending = NULL;
		connection_unhold(worker, &sending->connection);
		if (!upstream->connection.closing && result < 0) {
			/* What the server has to say about it, or that it is gone, comes by the receive; by one that surely tells. */
			upstream->dirty = true;
			upstream->in.own = true;
			upstream_receive(worker, upstream);
			/* Or has come, and the client may not be read from any more. */
			if (upstream->client && upstream->client->exchange.server_ended)
				tunnel_advance(worker, upstream->client);
		} else if (!upstream->connection.closing && upstream->client) {
			upstream->client->exchange.attempt[upstream->attempt].sent_bytes += (uint32_t)result;
			exchange_feed(worker, upstream->client);
		} else if (!sending->exchange.request_complete) {
			/* What it still read can be overwritten now. */
			exchange_feed(worker, sending);
		}
		exchange_unheld(worker, sending);
	} else if (!upstream->connection.closing && operation == OPERATION_CONNECT) {
		connected(worker, upstream, result);
	} else if (!upstream->connection.closing && operation == OPERATION_RECEIVE) {
		received(worker, upstream, result);
	}
	input_rest(worker, &upstream->in);
	connection_settle(worker, &upstream->connection);
}

void upstream_alarm(struct worker *worker, struct upstream *upstream)
{
	if (upstream->state == UPSTREAM_IDLE || upstream->state == UPSTREAM_DISCARDING) {
		close_listed(worker, upstream);
	} else if (upstream->state == UPSTREAM_CONNECTING || upstream->state == UPSTREAM_WARMING)
		connected(worker, upstream, -ETIMEDOUT);
	else if (upstream->state == UPSTREAM_BUSY)
		exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_TIMEOUT);
}
