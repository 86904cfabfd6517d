/* SPDX-License-Identifier: Apache-2.0 */
/* The request channel: what happened to a request, at the time of the call. */
#ifndef TAILOR_PROXY_RECORD_H
#define TAILOR_PROXY_RECORD_H

#include "proxy/worker.h"

/* In struct told. */
#define RECORD_RESPONSE_BEGIN 1
#define RECORD_RESPONSE_END 2
#define RECORD_REPLY_BEGIN 4

/* Writes what is told, if anything. */
void record_told(struct worker *worker);

static inline void record_at(struct worker *worker, uint64_t time_ns, enum tailor_event_kind kind, uint64_t request,
                             uint32_t extra, const uint64_t arg[3], const char *text, size_t text_length)
{
	struct tailor_event event = {
	        .kind = (uint8_t)kind,
	        .extra = extra,
	        .time_ns = time_ns,
	        .request = request,
	        .pid = worker->pid,
	        .tid = worker->tid,
	        .arg = {arg[0], arg[1], arg[2]},
	};

	if (worker->told.what)
		record_told(worker);
	tailor_channel_write_alone(&worker->options->channels[worker->index], &event, text, text_length);
}

/* The time of what is recorded now. */
static inline uint64_t record_ns(const struct worker *worker)
{
	return worker->step_ns ? worker->step_ns : tailor_clock_ns();
}

static inline void record(struct worker *worker, enum tailor_event_kind kind, const struct exchange *exchange,
                          uint32_t extra, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	const uint64_t arg[3] = {arg0, arg1, arg2};

	/* A refused connection's, or a tunnel's, whose request has ended. */
	if (exchange->id == 0)
		return;
	record_at(worker, record_ns(worker), kind, exchange->id, extra, arg, NULL, 0);
}

/*
 * Until record_step_end(), all that is recorded happens now: events of one step are less than the time apart that their
 * clock readings would take to matter. Only around what handles one connection's bytes and neither sleeps nor loops over others.
 * `now_ns`: the clock, if it has just been read; else 0.
 */
static inline void record_step_begin(struct worker *worker, uint64_t now_ns)
{
	if (worker->told.what)
		record_told(worker);
	worker->step_ns = now_ns ? now_ns : tailor_clock_ns();
}

static inline void record_step_end(struct worker *worker)
{
	if (worker->told.what)
		record_told(worker);
	worker->step_ns = 0;
}

static inline uint32_t record_attempt_number(const struct exchange *exchange, unsigned int index)
{
	return TAILOR_ATTEMPT(index, exchange->attempt[index].server, exchange->attempt[index].reason);
}

/* An event of attempt `index`, whose extra and arg[0] they all share. */
static inline void record_attempt(struct worker *worker, enum tailor_event_kind kind, const struct exchange *exchange,
                                  unsigned int index, uint64_t arg1)
{
	record(worker, kind, exchange, record_attempt_number(exchange, index), exchange->attempt[index].port, arg1, 0);
}

/*
 * The beginning or the end of an attempt's response, and the beginning of the reply that it makes possible. In a step they wait for
 * each other: of a response that came in one piece, one event tells all three.
 */
void record_response(struct worker *worker, uint8_t what, const struct exchange *exchange, unsigned int index);
void record_reply(struct worker *worker, const struct exchange *exchange);

#endif /* TAILOR_PROXY_RECORD_H */
