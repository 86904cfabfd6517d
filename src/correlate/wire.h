/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel saw of one attempt on its TCP connection. */
#ifndef TAILOR_CORRELATE_WIRE_H
#define TAILOR_CORRELATE_WIRE_H

#include <tailor/window.h>

/* The last retransmission of a direction, before its bytes had come. */
struct resent {
	uint64_t time_ns; /* 0: there was none */
	uint32_t sequence;
	uint32_t bytes;
	uint32_t times; /* how often these bytes were sent again */
};

/* Times are 0 and events NULL where nothing was recorded. */
struct wire {
	/* Request, proxy to server. */
	uint64_t request_sent_ns;   /* its last byte was first transmitted */
	uint32_t request_sequence;  /* of the first byte sent; with request_sent_ns */
	struct resent request_resent;
	const struct tailor_event *first_receive;
	const struct tailor_event *receive; /* from here on the server had the whole request */
	uint32_t receive_event;             /* index in the window */

	/* Response, server to proxy. */
	const struct tailor_event *first_write;
	const struct tailor_event *last_write;
	uint32_t last_write_event;   /* index in the window */
	uint64_t response_sent_ns;   /* its last byte was first transmitted; may be before last_write's time */
	struct resent response_resent;
	uint64_t buffered_bytes;     /* of the response, not yet transmitted when the last write returned */
	enum tailor_unsent unsent;   /* why TCP kept them, as the kernel said then; NONE: it did not say */
	uint8_t waited_for_ack;      /* evidence for Nagle: what went before was small and had just been transmitted */
};

/*
 * Collects the events of the attempt in one pass over the window and a second one for the response.
 * response_end_ns: when the proxy had the whole response, or gave up.
 */
void wire_read(const struct tailor_window *window, const struct tailor_attempt *attempt, uint64_t response_end_ns,
               struct wire *ret_wire);

#endif /* TAILOR_CORRELATE_WIRE_H */
