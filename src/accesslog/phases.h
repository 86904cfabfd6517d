/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/accesslog only: where a request's time went, as far as the proxy itself saw it. */
#ifndef TAILOR_ACCESSLOG_PHASES_H
#define TAILOR_ACCESSLOG_PHASES_H

#include <tailor/window.h>

/* They follow each other; a phase that was not reached is 0. Where a server failed, the one that it was in ends with its attempt. ns. */
struct phases {
	uint64_t head;     /* first byte read to head parsed */
	uint64_t connect;  /* until the connection that answered, or failed, was ready; earlier attempts included */
	uint64_t server;   /* from there to the response's first byte */
	uint64_t response; /* to its last byte */
	uint64_t client;   /* until the client's socket had taken all of it, or of what the proxy answered instead */
	uint64_t total;
};

static inline uint64_t phases_between(uint64_t from_ns, uint64_t to_ns)
{
	return from_ns && to_ns > from_ns ? to_ns - from_ns : 0;
}

/* A point that it did not reach is its end: the phase before it lasted until then. */
static inline struct tailor_attempt phases_failed(struct tailor_attempt attempt)
{
	if (!attempt.send_ns)
		attempt.send_ns = attempt.end_ns;
	if (!attempt.response_begin_ns)
		attempt.response_begin_ns = attempt.end_ns;
	if (!attempt.response_end_ns)
		attempt.response_end_ns = attempt.end_ns;
	return attempt;
}

static inline struct phases phases_of(const struct tailor_record *record)
{
	const struct tailor_request *request = &record->request;
	struct phases phases = {
	        .total = phases_between(request->begin_ns, request->end_ns),
	        .head = phases_between(request->begin_ns, record->parsed_ns ? record->parsed_ns : request->end_ns),
	};
	int failed = tailor_failed_attempt(record);
	struct tailor_attempt attempt;

	if (record->answered >= 0)
		attempt = record->attempt[record->answered];
	else if (failed >= 0)
		attempt = phases_failed(record->attempt[failed]);
	else
		return phases;
	phases.connect = phases_between(record->parsed_ns, attempt.send_ns);
	phases.server = phases_between(attempt.send_ns, attempt.response_begin_ns);
	phases.response = phases_between(attempt.response_begin_ns, attempt.response_end_ns);
	phases.client = phases_between(attempt.response_end_ns, request->end_ns);
	return phases;
}

#endif /* TAILOR_ACCESSLOG_PHASES_H */
