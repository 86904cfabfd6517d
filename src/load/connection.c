/* SPDX-License-Identifier: Apache-2.0 */
#include "load/worker.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"

/* Well below the smallest socket buffer (net.ipv4.tcp_wmem). */
#define SEND_WHOLE_BYTES 2048
/* FNV-1a, 64 bits (draft-eastlake-fnv). */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define HASH_FACTOR UINT64_C(0x100000001b3)

static const struct http1_limits limits = {.head_bytes = LOAD_BUFFER_BYTES, .fields = HTTP1_FIELDS_MAX};

void load_connection_list_remove(struct connection_list *list, struct connection *connection)
{
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		list->first = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	else
		list->last = connection->previous;
	list->count--;
}

void load_connection_list_append(struct connection_list *list, struct connection *connection)
{
	connection->previous = list->last;
	connection->next = NULL;
	if (list->last)
		list->last->next = connection;
	else
		list->first = connection;
	list->last = connection;
	list->count++;
}

static void set_state(struct worker *worker, struct connection *connection, enum connection_state state)
{
	load_connection_list_remove(&worker->lists[connection->state], connection);
	connection->state = (uint8_t)state;
	load_connection_list_append(&worker->lists[state], connection);
}

static uint64_t token(const struct worker *worker, const struct connection *connection,
                      enum connection_operation operation)
{
	return TAILOR_TOKEN(connection - worker->connections, connection->generation, operation);
}

/* Gives the slot back once the kernel owns nothing of it any more. */
static void release_when_quiet(struct worker *worker, struct connection *connection)
{
	if (connection->state != CONNECTION_CLOSING || connection->pending)
		return;
	close(connection->fd);
	connection->fd = -1;
	connection->generation++;
	set_state(worker, connection, CONNECTION_FREE);
}

void load_connection_close(struct worker *worker, struct connection *connection)
{
	static const enum connection_operation operations[] = {OPERATION_CONNECT, OPERATION_SEND, OPERATION_RECEIVE};

	set_state(worker, connection, CONNECTION_CLOSING);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (connection->pending & operations[i])
			tailor_ring_cancel(worker->ring, token(worker, connection, operations[i]),
			                   token(worker, connection, OPERATION_CANCEL));
	release_when_quiet(worker, connection);
}

void load_connection_fail(struct worker *worker, struct connection *connection, enum tailor_load_failure failure)
{
	assert(connection->state == CONNECTION_BUSY);
	load_worker_failed(worker, connection->due_ns, failure);
	load_connection_close(worker, connection);
}

void load_connection_open(struct worker *worker, uint64_t now_ns)
{
	const struct tailor_address *address = &worker->options->address;
	struct connection *connection = worker->lists[CONNECTION_FREE].last; /* the one used last is in the caches */
	int one = 1;

	assert(connection);
	/* Blocking: io_uring itself waits for the socket, and would not for a non-blocking one. */
	connection->fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0) {
		load_worker_connect_failed(worker, -errno, now_ns);
		return;
	}
	(void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	set_state(worker, connection, CONNECTION_CONNECTING);
	connection->since_ns = now_ns;
	connection->pending = OPERATION_CONNECT;
	tailor_ring_connect(worker->ring, connection->fd, (const struct sockaddr *)&address->storage, address->length,
	                    token(worker, connection, OPERATION_CONNECT));
}

static void send_rest(struct worker *worker, struct connection *connection)
{
	const struct tailor_load_request *request = connection->request;

	/* An idle connection's socket buffer takes so much at once: nobody needs to be told that it did. */
	if (request->length <= SEND_WHOLE_BYTES) {
		connection->sent_bytes = request->length;
		tailor_ring_send_whole(worker->ring, connection->fd, request->bytes, request->length,
		                       token(worker, connection, OPERATION_SEND));
		return;
	}
	connection->pending |= OPERATION_SEND;
	tailor_ring_send(worker->ring, connection->fd, request->bytes + connection->sent_bytes,
	                 request->length - connection->sent_bytes, 0, token(worker, connection, OPERATION_SEND));
}

/* One receive is always under way, so that an idle connection's end is noticed too. */
static void receive_more(struct worker *worker, struct connection *connection, bool later)
{
	char *free_bytes = connection->buffer + connection->filled;
	size_t count = LOAD_BUFFER_BYTES - connection->filled;

	connection->pending |= OPERATION_RECEIVE;
	if (later)
		tailor_ring_receive_later(worker->ring, connection->fd, free_bytes, count,
		                          token(worker, connection, OPERATION_RECEIVE));
	else
		tailor_ring_receive(worker->ring, connection->fd, free_bytes, count,
		                    token(worker, connection, OPERATION_RECEIVE));
}

void load_connection_send(struct worker *worker, struct connection *connection, uint64_t number, uint64_t due_ns)
{
	assert(connection->state == CONNECTION_IDLE && connection->filled == 0);
	set_state(worker, connection, CONNECTION_BUSY);
	connection->number = number;
	connection->due_ns = due_ns;
	connection->request = &worker->options->plan->requests[load_schedule_request(&worker->schedule, number)];
	connection->compared = load_schedule_compares(&worker->schedule, number);
	connection->sent_bytes = 0;
	connection->search = (struct http1_search){0};
	connection->head_done = false;
	connection->request_id[0] = '\0';
	connection->hash = HASH_BEGIN;
	connection->body_bytes = 0;
	connection->sent_ns = tailor_clock_ns();
	load_worker_sent(worker, connection);
	send_rest(worker, connection);
}

static void take_request_id(struct connection *connection, const struct http1_head *head)
{
	static const char name[] = "X-Tailor-Request-Id";

	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_text *value = &head->field[i].value;

		if (head->field[i].name.length != sizeof(name) - 1 ||
		    strncasecmp(head->field[i].name.data, name, sizeof(name) - 1) != 0)
			continue;
		if (value->length >= sizeof(connection->request_id))
			return;
		for (size_t j = 0; j < value->length; j++)
			if ((unsigned char)value->data[j] >= 0x7f)
				return; /* goes into JSON, which is UTF-8 */
		memcpy(connection->request_id, value->data, value->length);
		connection->request_id[value->length] = '\0';
		return;
	}
}

static void consume(struct connection *connection, size_t bytes)
{
	connection->filled -= bytes;
	memmove(connection->buffer, connection->buffer + bytes, connection->filled);
}

/* Returns 1 when the head of the final response has been taken, 0 when more bytes are needed, -1 when it is none. */
static int take_head(struct worker *worker, struct connection *connection)
{
	struct http1_head *head = &worker->response_head;

	for (;;) {
		int ret = http1_parse_response(connection->buffer, connection->filled, &limits, &connection->search,
		                               connection->request->method, head);

		if (ret != 1)
			return ret < 0 ? -1 : 0;
		if (head->status == 101)
			return -1; /* nobody asked for it */
		if (head->status >= 200)
			break;
		consume(connection, head->head_bytes);
		connection->search = (struct http1_search){0};
	}
	connection->head_done = true;
	connection->status = head->status;
	connection->keep_alive = head->keep_alive;
	connection->framing = (uint8_t)head->framing;
	connection->left = head->content_length;
	connection->chunked = (struct http1_chunked){0};
	take_request_id(connection, head);
	consume(connection, head->head_bytes);
	return 1;
}

static void hash_body(struct connection *connection, const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		connection->hash = (connection->hash ^ (unsigned char)data[i]) * HASH_FACTOR;
}

/* The same body in other chunks is the same body: only the chunks' data count. */
static int64_t take_chunked(struct connection *connection, bool *ret_done)
{
	int64_t taken = 0, part = 0;

	if (!connection->compared)
		return http1_chunked_take(&connection->chunked, connection->buffer, connection->filled, ret_done);
	for (*ret_done = false; part >= 0 && !*ret_done && (size_t)taken < connection->filled; taken += part) {
		const char *data = connection->buffer + taken;
		size_t bytes = connection->filled - (size_t)taken;
		uint64_t chunk = http1_chunked_data(&connection->chunked);

		if (chunk == 0)
			bytes = 1;
		else if (bytes > chunk)
			bytes = (size_t)chunk;
		part = http1_chunked_take(&connection->chunked, data, bytes, ret_done);
		if (chunk > 0 && part > 0)
			hash_body(connection, data, (size_t)part);
	}
	return part < 0 ? part : taken;
}

/* Throws away the body's bytes. Returns 1 at its end, 0 when more are needed, -1 when they are wrong. */
static int take_body(struct connection *connection)
{
	bool done = true;
	int64_t taken;

	switch ((enum http1_framing)connection->framing) {
	case HTTP1_NO_BODY: return 1;
	case HTTP1_LENGTH:
		taken = connection->filled < connection->left ? (int64_t)connection->filled : (int64_t)connection->left;
		connection->left -= (uint64_t)taken;
		done = connection->left == 0;
		break;
	case HTTP1_CHUNKED:
		taken = take_chunked(connection, &done);
		if (taken < 0)
			return -1;
		break;
	default: /* until the connection is closed */
		taken = (int64_t)connection->filled;
		done = false;
		break;
	}
	if (connection->compared && connection->framing != HTTP1_CHUNKED)
		hash_body(connection, connection->buffer, (size_t)taken);
	connection->body_bytes += (uint64_t)taken;
	consume(connection, (size_t)taken);
	return done;
}

static void answered(struct worker *worker, struct connection *connection, uint64_t now_ns)
{
	load_worker_answered(worker, connection, now_ns);
	/* Bytes that nobody asked for, or a request answered before it was whole: the connection is of no more use. */
	if (connection->filled > 0 || (connection->pending & OPERATION_SEND) ||
	    connection->sent_bytes < connection->request->length || connection->framing == HTTP1_UNTIL_CLOSE)
		load_connection_close(worker, connection);
	else if (connection->keep_alive && !worker->options->close)
		set_state(worker, connection, CONNECTION_IDLE);
	else
		set_state(worker, connection, CONNECTION_LINGERING);
	connection->since_ns = now_ns;
}

static void received(struct worker *worker, struct connection *connection, int result, uint64_t now_ns)
{
	int taken = 0;

	if (connection->state != CONNECTION_BUSY) {
		load_connection_close(worker, connection);
		return;
	}
	if (result <= 0) {
		if (result == 0 && connection->head_done && connection->framing == HTTP1_UNTIL_CLOSE)
			answered(worker, connection, now_ns);
		else
			load_connection_fail(worker, connection, TAILOR_LOAD_CUT);
		return;
	}
	connection->filled += (size_t)result;
	if (!connection->head_done)
		taken = take_head(worker, connection);
	if (connection->head_done && taken >= 0)
		taken = take_body(connection);
	if (taken < 0)
		load_connection_fail(worker, connection, TAILOR_LOAD_INVALID);
	else if (taken > 0)
		answered(worker, connection, now_ns);
	if (connection->state != CONNECTION_CLOSING && connection->state != CONNECTION_FREE)
		receive_more(worker, connection, connection->state != CONNECTION_BUSY);
}

static void sent(struct worker *worker, struct connection *connection, int result)
{
	if (connection->state != CONNECTION_BUSY)
		return;
	if (result < 0) {
		/* The server may have answered before it closed; the receive that is under way will tell. */
		return;
	}
	connection->sent_bytes += (size_t)result;
	if (connection->sent_bytes < connection->request->length)
		send_rest(worker, connection);
}

static void connected(struct worker *worker, struct connection *connection, int result, uint64_t now_ns)
{
	if (result < 0) {
		load_connection_close(worker, connection);
		load_worker_connect_failed(worker, result, now_ns);
		return;
	}
	worker->retry_wait_ns = 0;
	worker->current->opened++;
	connection->filled = 0;
	set_state(worker, connection, CONNECTION_IDLE);
	receive_more(worker, connection, true);
}

void load_connection_complete(struct worker *worker, const struct tailor_completion *completion, uint64_t now_ns)
{
	struct connection *connection = &worker->connections[TAILOR_TOKEN_SLOT(completion->token)];
	uint8_t operation = TAILOR_TOKEN_OPERATION(completion->token);

	if (operation == OPERATION_CANCEL ||
	    TAILOR_TOKEN_GENERATION(completion->token) != (connection->generation & 0xffffff))
		return;
	connection->pending &= (uint8_t)~operation;
	if (connection->state == CONNECTION_CLOSING) {
		release_when_quiet(worker, connection);
		return;
	}
	switch (operation) {
	case OPERATION_CONNECT: connected(worker, connection, completion->result, now_ns); break;
	case OPERATION_SEND: sent(worker, connection, completion->result); break;
	case OPERATION_RECEIVE: received(worker, connection, completion->result, now_ns); break;
	default: assert(!"an operation that no connection starts"); break;
	}
}
