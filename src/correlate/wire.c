/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/wire.h"

/*
 * Nagle (RFC 896) holds back a small segment while an earlier one is not acknowledged. A receiver delays the
 * acknowledgement of data below a full segment; 1448 bytes are a full one on Ethernet, and on loopback a full one is
 * larger still.
 */
#define SMALL_BYTES 1448

/* TCP sequence arithmetic is modulo 2^32 (RFC 9293, 3.4): how far `a` is ahead of `b`. */
static int32_t sequence_ahead(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

enum direction {
	DIRECTION_OTHER,
	DIRECTION_REQUEST,  /* sent by the proxy's end */
	DIRECTION_RESPONSE, /* sent by the server's end */
};

/* Whose bytes the event is about, when the sending end of them is the one that its ports are told from. */
static enum direction sender_of(const struct tailor_window *window, const struct tailor_attempt *attempt,
                                const struct tailor_event *event)
{
	uint16_t server_port = attempt->server < window->server_count ? window->servers[attempt->server].port : 0;
	uint16_t local = TAILOR_PORTS_LOCAL(event->extra), remote = TAILOR_PORTS_REMOTE(event->extra);

	if (event->request != 0 && event->request != window->record.request.id)
		return DIRECTION_OTHER;
	if (event->arg[1] == 0 || event->time_ns < attempt->send_ns) /* a bare acknowledgement; another exchange */
		return DIRECTION_OTHER;
	if ((attempt->port == 0 || remote == attempt->port) && (server_port == 0 || local == server_port))
		return DIRECTION_RESPONSE;
	if ((attempt->port == 0 || local == attempt->port) && (server_port == 0 || remote == server_port))
		return DIRECTION_REQUEST;
	return DIRECTION_OTHER;
}

static int by_server(const struct tailor_window *window, const struct tailor_attempt *attempt,
                     const struct tailor_event *event)
{
	uint32_t pid = attempt->server < window->server_count ? window->servers[attempt->server].pid : 0;

	return event->tid != 0 && event->request == window->record.request.id && (pid == 0 || event->pid == pid);
}

static void read_ends(const struct tailor_window *window, const struct tailor_attempt *attempt, struct wire *wire)
{
	uint32_t sent_until = 0;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;
		uint32_t until = (uint32_t)(event->arg[0] + event->arg[1]);
		enum direction sender;

		if (event->kind < TAILOR_EVENT_RECEIVE || event->kind > TAILOR_EVENT_TCP_TRANSMIT)
			continue;
		sender = sender_of(window, attempt, event);
		if (event->kind == TAILOR_EVENT_RECEIVE && sender == DIRECTION_RESPONSE &&
		    by_server(window, attempt, event)) {
			if (!wire->first_receive) {
				wire->first_receive = event;
				/* Nobody answers what he has not read: the connection's last response, whose write returned late. */
				wire->first_write = wire->last_write = NULL;
			}
			/* Bytes that came later were waited for; those that had been there were only read late. */
			if (!wire->receive || wire->receive->time_ns < wire->request_sent_ns) {
				wire->receive = event;
				wire->receive_event = (uint32_t)i;
			}
		} else if (event->kind == TAILOR_EVENT_SYSCALL_WRITE && sender == DIRECTION_RESPONSE &&
		           by_server(window, attempt, event)) {
			if (!wire->first_write)
				wire->first_write = event;
			wire->last_write = event;
			wire->last_write_event = (uint32_t)i;
		} else if (event->kind == TAILOR_EVENT_TCP_TRANSMIT && sender == DIRECTION_REQUEST &&
		           (wire->request_sent_ns == 0 || sequence_ahead(until, sent_until) > 0)) {
			if (wire->request_sent_ns == 0)
				wire->request_sequence = (uint32_t)event->arg[0];
			wire->request_sent_ns = event->time_ns;
			sent_until = until;
		}
	}
}

/* First transmission of the response's last byte, and how much was still to go when the last write returned. */
static void read_response(const struct tailor_window *window, const struct tailor_attempt *attempt, struct wire *wire)
{
	const struct tailor_event *write = wire->last_write;
	uint32_t end = (uint32_t)(write->arg[0] + write->arg[1]);
	uint32_t sent_until = (uint32_t)wire->first_write->arg[0];
	uint64_t last_bytes = 0;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;
		uint32_t until = (uint32_t)(event->arg[0] + event->arg[1]);

		if (event->kind != TAILOR_EVENT_TCP_TRANSMIT || sender_of(window, attempt, event) != DIRECTION_RESPONSE)
			continue;
		if (event->time_ns <= write->time_ns && sequence_ahead(until, sent_until) > 0) {
			sent_until = until;
			last_bytes = event->arg[1];
		}
		if (wire->response_sent_ns == 0 && (uint32_t)(end - 1 - (uint32_t)event->arg[0]) < event->arg[1])
			wire->response_sent_ns = event->time_ns;
	}
	if (sequence_ahead(end, sent_until) > 0)
		wire->buffered_bytes = (uint32_t)sequence_ahead(end, sent_until);
	if (TAILOR_UNSENT_WHY(write->arg[2]) <= TAILOR_UNSENT_OTHER && TAILOR_UNSENT_BYTES(write->arg[2]) > 0) {
		wire->unsent = (enum tailor_unsent)TAILOR_UNSENT_WHY(write->arg[2]);
		wire->buffered_bytes = TAILOR_UNSENT_BYTES(write->arg[2]);
	}
	wire->waited_for_ack = wire->buffered_bytes > 0 && last_bytes > 0 && last_bytes < SMALL_BYTES &&
	                       sent_until == (uint32_t)write->arg[0];
}

static void add_resent(struct resent *resent, const struct tailor_event *event)
{
	uint32_t sequence = (uint32_t)event->arg[0];

	resent->times = resent->time_ns && resent->sequence == sequence ? resent->times + 1 : 1;
	resent->time_ns = event->time_ns;
	resent->sequence = sequence;
	resent->bytes = (uint32_t)event->arg[1];
}

static void read_retransmissions(const struct tailor_window *window, const struct tailor_attempt *attempt,
                                 uint64_t response_end_ns, struct wire *wire)
{
	uint64_t received = wire->receive ? wire->receive->time_ns : response_end_ns;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;
		enum direction sender;

		if (event->kind != TAILOR_EVENT_TCP_RETRANSMIT)
			continue;
		sender = sender_of(window, attempt, event);
		if (sender == DIRECTION_REQUEST && event->time_ns < received)
			add_resent(&wire->request_resent, event);
		if (sender == DIRECTION_RESPONSE && event->time_ns < response_end_ns)
			add_resent(&wire->response_resent, event);
	}
}

void wire_read(const struct tailor_window *window, const struct tailor_attempt *attempt, uint64_t response_end_ns,
               struct wire *ret_wire)
{
	*ret_wire = (struct wire){0};
	if (attempt->send_ns == 0)
		return;
	read_ends(window, attempt, ret_wire);
	if (ret_wire->last_write)
		read_response(window, attempt, ret_wire);
	read_retransmissions(window, attempt, response_end_ns, ret_wire);
}
