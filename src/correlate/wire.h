/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel saw of one attempt on its TCP connection. */
#ifndef TAILOR_CORRELATE_WIRE_H
#define TAILOR_CORRELATE_WIRE_H

#include <tailor/window.h>

/* Times are 0 and events NULL where nothing was recorded. */
struct wire {
	/* Request, proxy to server. */
	uint64_t request_sent_ns;   /* its last byte was first transmitted */
	uint64_t request_resent_ns; /* the last retransmission before the server received it */
	const struct tailor_event *first_receive;
	const struct tailor_event *receive; /* from here on the server had the whole request */
	uint32_t receive_event;             /* index in the window */

	/* Response, server to proxy. */
	const struct tailor_event *first_write;
	const struct tailor_event *last_write;
	uint32_t last_write_event;   /* index in the window */
	uint64_t response_sent_ns;   /* its last byte was first transmitted; may be before last_write's time */
	uint64_t response_resent_ns; /* the last retransmission before the proxy had it all */
	uint64_t buffered_bytes;     /* of the response, not yet transmitted when the last write returned */
	uint8_t waited_for_ack;      /* evidence for Nagle: what went before was small and had just been transmitted */
};

/*
 * Collects the events of the attempt in one pass over the window and a second one for the response.
 * response_end_ns: when the proxy had the whole response, or gave up.
 */
void wire_read(const struct tailor_window *window, const struct tailor_attempt *attempt, uint64_t response_end_ns,
               struct wire *ret_wire);

#endif /* TAILOR_CORRELATE_WIRE_H */
