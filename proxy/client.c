/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proxy/addresses.h"
#include "proxy/client_wait.h"
#include "proxy/connection.h"
#include "proxy/exchange.h"
#include "proxy/head.h"
#include "proxy/late.h"
#include "proxy/record.h"
#include "proxy/replay.h"
#include "proxy/response.h"
#include "proxy/timeouts.h"
#include "proxy/tunnel.h"

/* How long a client that was told to close may take to do so. */
#define DRAIN_NS (1 * TAILOR_NS_PER_S)
/* How long one that had just connected when a stop began may take to send its request. */
#define FRESH_NS (1 * TAILOR_NS_PER_S)

static void learn_peer(struct client *client)
{
	struct tailor_address peer = {.length = sizeof(peer.storage)};
	int on = 1;

	client->port = 0;
	client->ip = 0;
	memset(client->address, 0, sizeof(client->address));
	if (getpeername(client->connection.fd, (struct sockaddr *)&peer.storage, &peer.length) != 0)
		return;
	client->port = tailor_address_port(&peer);
	if (peer.storage.ss_family == AF_INET)
		client->ip = ntohl(((const struct sockaddr_in *)&peer.storage)->sin_addr.s_addr);
	if (peer.storage.ss_family == AF_UNIX)
		return;
	tailor_address_ip(&peer, client->address);
	(void)setsockopt(client->connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* A Unix socket has none, and everybody behind it is one. */
static bool has_address(const struct client *client)
{
	static const uint8_t none[sizeof(client->address)];

	return memcmp(client->address, none, sizeof(none)) != 0;
}

/* One too many: told so without looking at what it wants, if there is room for that. It takes no other's place meanwhile. */
static void refuse_connection(struct worker *worker, struct client *client, unsigned int status, enum tailor_refusal why)
{
	struct exchange *exchange = &client->exchange;

	client->beyond = true;
	worker->beyond_count++;
	__atomic_fetch_sub(&worker->shared->clients, 1, __ATOMIC_RELAXED);
	if (worker->beyond_count > WORKER_BEYOND_MAX) {
		count(&worker->counters.refused);
		count(&worker->counters.refused_by[why]);
		close(client->connection.fd);
		client->connection.fd = -1;
		client_closed(worker, client);
		return;
	}
	exchange->reply_begun = true;
	exchange_refuse(worker, client, status, why);
}

void client_accepted(struct worker *worker, int fd)
{
	struct client *client = worker_take_client(worker);

	if (!client) {
		close(fd);
		count(&worker->counters.refused);
		count(&worker->counters.refused_by[TAILOR_REFUSED_CONNECTIONS]);
		return;
	}
	client->connection.fd = fd;
	client->state = CLIENT_IDLE;
	client->eof = false;
	client->fresh = true;
	client->early_ns = 0;
	client->counted = false;
	client->beyond = false;
	client->wait.since_ns = 0;
	client->waits = (struct client_waits){.from_zero = true};
	client->ended_ns = 0;
	exchange_clear(&client->exchange);
	learn_peer(client);
	if (__atomic_fetch_add(&worker->shared->clients, 1, __ATOMIC_RELAXED) >= worker->options->connections_max) {
		refuse_connection(worker, client, 503, TAILOR_REFUSED_CONNECTIONS);
		return;
	}
	if (worker->shared->addresses && has_address(client)) {
		client->counted = addresses_enter(worker->shared->addresses, client->address);
		if (!client->counted) {
			refuse_connection(worker, client, 429, TAILOR_REFUSED_PER_ADDRESS);
			return;
		}
	}
	timeouts_wait(worker, client, worker->stopping && !worker->patient ? FRESH_NS : worker->options->keep_alive_timeout_ns);
	client_receive(worker, client);
}

void client_closed(struct worker *worker, struct client *client)
{
	replay_end(worker, client);
	input_clear(worker, &client->in);
	client_rest(worker, client);
	client->state = CLIENT_FREE;
	client->next = worker->client_free;
	worker->client_free = client;
	worker->client_count--;
	if (client->counted)
		addresses_leave(worker->shared->addresses, client->address);
	if (client->beyond)
		worker->beyond_count--;
	else
		__atomic_fetch_sub(&worker->shared->clients, 1, __ATOMIC_RELAXED);
}

void client_close(struct worker *worker, struct client *client)
{
	tunnel_closed(worker, client);
	client->state = CLIENT_CLOSING;
	connection_close(worker, &client->connection);
}

void client_receive(struct worker *worker, struct client *client)
{
	struct connection *connection = &client->connection;
	bool expected = client->state == CLIENT_EXCHANGE && !client->exchange.request_complete;

	if (connection->closing)
		return;
	/* While the server is slow to take what is here, it is not the client that is late. A send has the alarm for
	 * itself. */
	if (expected && !connection_has(connection, OPERATION_SEND)) {
		if (!input_empty(&client->in))
			timeouts_wait(worker, client, UINT64_MAX);
		else
			timeouts_wait(worker, client, worker->options->body_timeout_ns);
	}
	if (client->state == CLIENT_HEAD || expected)
		client->in.own = true;
	if (!client->eof)
		(void)connection_receive(worker, connection, &client->in, expected);
}

void client_rest(struct worker *worker, struct client *client)
{
	pool_give(&worker->out_pool, client->out);
	client->out = NULL;
	if (client->connection.holds > 0)
		return;
	pool_give(&worker->forward_pool, client->forward);
	client->forward = NULL;
}

char *client_out(struct worker *worker, struct client *client)
{
	if (!client->out)
		client->out = pool_take(&worker->out_pool);
	return client->out;
}

/* A head that takes no time to be parsed that would show in a timeline. */
#define SHORT_HEAD_BYTES 1024

/* `now_ns`: the clock has just been read, 0: it has not. */
static void parse(struct worker *worker, struct client *client, uint64_t now_ns)
{
	int ret = http1_parse_request(client->in.data + client->in.start, input_length(&client->in), &worker->limits,
	                              &client->search, &worker->head);

	if (ret > 0) {
		timeouts_wait(worker, client, UINT64_MAX);
		record_step_begin(worker, worker->head.head_bytes <= SHORT_HEAD_BYTES ? now_ns : 0);
		exchange_start(worker, client);
		record_step_end(worker);
		return;
	}
	exchange_tell_begin(worker, client);
	if (ret < 0) {
		client->exchange.method = worker->head.method_known;
		exchange_refuse(worker, client, (unsigned int)-ret,
		                ret == -414 || ret == -431 ? TAILOR_REFUSED_HEAD : TAILOR_REFUSED_MALFORMED);
	} else if (client->eof) {
		exchange_client_gone(worker, client);
	} else {
		client_receive(worker, client);
	}
}

/*
 * Whether a request has begun behind the last one. Empty lines are no beginning (RFC 9112, 2.2): a client may send one
 * behind a body, and an answer to it would be taken for that to its next request.
 */
static bool next_has_begun(struct client *client)
{
	struct input *in = &client->in;

	while (input_length(in) >= 2 && in->data[in->start] == '\r' && in->data[in->start + 1] == '\n')
		in->start += 2;
	return input_length(in) > 1 || (input_length(in) == 1 && in->data[in->start] != '\r');
}

/* Bytes behind the current request belong to the next, which began when they were read. */
static void note_early_bytes(struct client *client, uint64_t read_ns)
{
	if (client->state == CLIENT_EXCHANGE && client->exchange.request_complete && !client->exchange.upgrade && client->early_ns == 0 &&
	    next_has_begun(client))
		client->early_ns = read_ns;
}

/* By when what was read just now was there, as TCP says: it counts in ticks. 0: not known. */
static uint64_t there_ns(const struct client *client, uint64_t now_ns)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);
	struct timespec tick;
	uint64_t age_ns;

	if (getsockopt(client->connection.fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0 ||
	    clock_getres(CLOCK_MONOTONIC_COARSE, &tick) < 0)
		return 0;
	age_ns = info.tcpi_last_data_recv * TAILOR_NS_PER_MS;
	return age_ns > (uint64_t)tick.tv_nsec ? now_ns - (age_ns - (uint64_t)tick.tv_nsec) : 0;
}

/* `early_ns`: when its first byte was read, 0: just now. */
static void begin_request(struct worker *worker, struct client *client, uint64_t early_ns)
{
	uint64_t now_ns = early_ns ? 0 : tailor_clock_ns(), read_ns = early_ns ? early_ns : now_ns;
	uint64_t late_ns = early_ns ? 0 : late_from_ns(worker, client);

	client->state = CLIENT_HEAD;
	client->fresh = false;
	client->early_ns = 0;
	client->in.own = false;
	exchange_begin(worker, client, read_ns);
	/* For the whole head: a byte now and then would hold the connection for ever. */
	timeouts_wait(worker, client, worker->options->head_timeout_ns);
	parse(worker, client, now_ns);
	if (late_ns)
		record(worker, TAILOR_EVENT_REQUEST_LATE, &client->exchange, client->port, late_ns, there_ns(client, now_ns), 0);
	note_early_bytes(client, read_ns);
}

/* Says that nothing more will come, and reads until the client has said the same: a close with unread bytes would
 * make TCP throw away the answer on its way (RFC 9112, 9.6). */
static void drain(struct worker *worker, struct client *client)
{
	if (client->eof) {
		client_close(worker, client);
		return;
	}
	client->state = CLIENT_DRAIN;
	input_clear(worker, &client->in);
	tailor_ring_shutdown(worker->ring, client->connection.fd, SHUT_WR,
	                     connection_begin(&client->connection, OPERATION_SHUTDOWN));
	timeouts_wait(worker, client, DRAIN_NS);
	client_receive(worker, client);
}

/*
 * Nobody may use this connection any more, which nobody uses now. What has arrived with this turn's completions comes first, and a
 * new connection's request may be on its way.
 */
static void close_idle(struct worker *worker, struct client *client)
{
	timeouts_wait(worker, client, client->fresh ? FRESH_NS : 0);
}

/* A request that is here by now is answered yet, and told that it was the last. */
static void end_idle(struct worker *worker, struct client *client)
{
	char byte;

	if (recv(client->connection.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) > 0)
		timeouts_wait(worker, client, worker->options->keep_alive_timeout_ns);
	else if (client->fresh)
		client_close(worker, client);
	else
		drain(worker, client);
}

void client_answered(struct worker *worker, struct client *client)
{
	client_rest(worker, client);
	if (client->connection.holds == 0)
		replay_end(worker, client);
	if (client->exchange.close) {
		drain(worker, client);
		return;
	}
	if (client->connection.holds > 0) {
		client->state = CLIENT_HELD;
		return;
	}
	client->state = CLIENT_IDLE;
	(void)input_gather(worker, &client->in);
	if (next_has_begun(client)) {
		begin_request(worker, client, client->early_ns);
	} else if (client->eof) {
		client_close(worker, client);
	} else {
		timeouts_wait(worker, client, worker->options->keep_alive_timeout_ns);
		client->in.own = false;
		client_receive(worker, client);
		if (worker->stopping && !worker->patient)
			close_idle(worker, client);
	}
}

static void ended(struct worker *worker, struct client *client, int result)
{
	client->eof = true;
	switch (client->state) {
	case CLIENT_IDLE:
	case CLIENT_DRAIN: client_close(worker, client); break;
	case CLIENT_HEAD: exchange_client_gone(worker, client); break;
	case CLIENT_EXCHANGE:
		/* A client that has only shut down its sending side still wants its answer, if its request is here. */
		if (result < 0)
			exchange_client_gone(worker, client);
		else if (!client->exchange.request_complete)
			exchange_feed(worker, client);
		break;
	default: break;
	}
}

static void received(struct worker *worker, struct client *client, int result)
{
	if (result <= 0) {
		ended(worker, client, result);
		return;
	}
	switch (client->state) {
	case CLIENT_IDLE:
		if (next_has_begun(client))
			begin_request(worker, client, 0);
		else
			client_receive(worker, client);
		break;
	case CLIENT_HEAD:
		parse(worker, client, 0);
		note_early_bytes(client, worker->now_ns);
		break;
	case CLIENT_EXCHANGE:
		if (!client->exchange.request_complete)
			exchange_feed(worker, client);
		else
			client_receive(worker, client);
		note_early_bytes(client, worker->now_ns);
		break;
	case CLIENT_HELD:
		if (client->early_ns == 0 && next_has_begun(client))
			client->early_ns = worker->now_ns;
		client_receive(worker, client);
		break;
	case CLIENT_DRAIN:
		input_clear(worker, &client->in);
		client_receive(worker, client);
		break;
	default: break;
	}
}

void client_complete(struct worker *worker, struct client *client, enum operation operation, int result)
{
	struct upstream *direct = operation == OPERATION_SEND ? client->exchange.direct : NULL;
	bool closing = client->connection.closing;

	if (operation == OPERATION_SEND) {
		if (direct) {
			direct->in.held = false;
			connection_unhold(worker, &direct->connection);
		}
		if (closing || result <= 0)
			client->exchange.direct = NULL;
		if (!closing && result == -EAGAIN && !client_waits(client))
			response_waits(worker, client);
		else if (!closing && result <= 0)
			exchange_client_gone(worker, client);
		else if (!closing)
			response_sent(worker, client, (uint32_t)result);
	} else if (!closing && operation == OPERATION_RECEIVE) {
		received(worker, client, result);
	}
	if (direct)
		input_rest(worker, &direct->in);
	input_rest(worker, &client->in);
	connection_settle(worker, &client->connection);
}

void client_alarm(struct worker *worker, struct client *client)
{
	switch (timeouts_judge(worker, client)) {
	case TIMEOUTS_EARLY: return;
	case TIMEOUTS_REQUEST: exchange_late(worker, client); return;
	case TIMEOUTS_QUEUE: exchange_refuse(worker, client, 503, TAILOR_REFUSED_QUEUE_LATE); return;
	case TIMEOUTS_PATIENCE: break;
	}
	/* Before that it is a client that does not take its answer. */
	if (client->exchange.tunnel && client->exchange.id == 0 && client->state == CLIENT_EXCHANGE) {
		tunnel_idle(worker, client);
		return;
	}
	switch (client->state) {
	case CLIENT_IDLE:
		if (worker->stopping)
			end_idle(worker, client);
		else
			client_close(worker, client);
		break;
	case CLIENT_DRAIN: client_close(worker, client); break;
	case CLIENT_HEAD: exchange_refuse(worker, client, 408, TAILOR_REFUSED_CLIENT_LATE); break;
	case CLIENT_EXCHANGE:
		/* Either it does not take the response, or it does not send its request. */
		if (connection_has(&client->connection, OPERATION_SEND))
			exchange_client_gone(worker, client);
		else if (client->exchange.request_complete)
			/* It has: only what else the alarm is for is still to come. */
			timeouts_wait(worker, client, UINT64_MAX);
		else if (client->exchange.winner >= 0)
			exchange_client_gone(worker, client);
		else
			exchange_refuse(worker, client, 408, TAILOR_REFUSED_CLIENT_LATE);
		break;
	default: break;
	}
}

void client_close_all(struct worker *worker, bool all)
{
	for (uint32_t i = 0; i < worker->client_used; i++) {
		struct client *client = &worker->clients[i];

		if (!all && client->state == CLIENT_IDLE)
			close_idle(worker, client);
		if (!all || client->state == CLIENT_FREE || client->state == CLIENT_CLOSING)
			continue;
		if (client->state == CLIENT_HEAD || client->state == CLIENT_EXCHANGE)
			count(&worker->counters.stopped);
		exchange_client_gone(worker, client);
	}
}
