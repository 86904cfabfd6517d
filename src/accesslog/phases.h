/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/accesslog only: where a request's time went, as far as the proxy itself saw it. */
#ifndef TAILOR_ACCESSLOG_PHASES_H
#define TAILOR_ACCESSLOG_PHASES_H

#include <tailor/window.h>

/* They follow each other; a phase that was not reached is 0. ns. */
struct phases {
	uint64_t head;     /* first byte read to head parsed */
	uint64_t connect;  /* until the connection that answered was ready; earlier attempts included */
	uint64_t server;   /* from there to the response's first byte */
	uint64_t response; /* to its last byte */
	uint64_t client;   /* until the client's socket had taken all of it */
	uint64_t total;
};

static inline uint64_t phases_between(uint64_t from_ns, uint64_t to_ns)
{
	return from_ns && to_ns > from_ns ? to_ns - from_ns : 0;
}

static inline struct phases phases_of(const struct tailor_record *record)
{
	const struct tailor_request *request = &record->request;
	struct phases phases = {
	        .total = phases_between(request->begin_ns, request->end_ns),
	        .head = phases_between(request->begin_ns, record->parsed_ns ? record->parsed_ns : request->end_ns),
	};
	const struct tailor_attempt *attempt;

	if (record->answered < 0)
		return phases;
	attempt = &record->attempt[record->answered];
	phases.connect = phases_between(record->parsed_ns, attempt->send_ns);
	phases.server = phases_between(attempt->send_ns, attempt->response_begin_ns);
	phases.response = phases_between(attempt->response_begin_ns, attempt->response_end_ns);
	phases.client = phases_between(attempt->response_end_ns, request->end_ns);
	return phases;
}

#endif /* TAILOR_ACCESSLOG_PHASES_H */
