/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/open_records.h"
#include "collect/tail.h"
#include "collect/text.h"

struct tailor_requests {
	size_t tail_count;
	struct tailor_tail *tails; /* one a worker */
	struct open_records open;
	void (*stopped)(void *context, size_t worker, const struct tailor_stopped *stopped); /* NULL: nobody asks */
	void *stopped_context;
};

int tailor_requests_open(const struct tailor_channel *channels, size_t count, size_t open_max, struct tailor_requests **ret_requests)
{
	struct tailor_requests *requests = calloc(1, sizeof(*requests));
	int error;

	if (!requests)
		return -ENOMEM;
	requests->tail_count = count;
	requests->tails = calloc(count, sizeof(*requests->tails));
	error = open_records_init(&requests->open, 2 * (open_max ? open_max : 1));
	if (error || !requests->tails) {
		tailor_requests_close(requests);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		tailor_tail_open(&requests->tails[i], &channels[i], 1);
		snprintf(requests->tails[i].last_loss.channel, sizeof(requests->tails[i].last_loss.channel), "worker%zu", i);
	}
	*ret_requests = requests;
	return 0;
}

void tailor_requests_close(struct tailor_requests *requests)
{
	if (!requests)
		return;
	free(requests->tails);
	open_records_free(&requests->open);
	free(requests);
}

static void begin(struct tailor_requests *requests, const struct tailor_event *event, uint64_t begin_ns, uint64_t client)
{
	struct tailor_record *record = open_records_add(&requests->open, event->request, begin_ns);

	record->worker_pid = event->pid;
	record->worker_tid = event->tid;
	record->client_ip = TAILOR_CLIENT_IP(client);
	record->client_port = TAILOR_CLIENT_PORT(client);
	record->answered = -1;
}

/* The attempt that the event is about; NULL when the number is beyond what a record holds. */
static struct tailor_attempt *attempt_of(struct tailor_record *record, const struct tailor_event *event)
{
	unsigned int number = TAILOR_ATTEMPT_NUMBER(event->extra);
	struct tailor_attempt *attempt;

	if (number >= TAILOR_ATTEMPTS_MAX)
		return NULL;
	if (number >= record->attempts)
		record->attempts = (uint8_t)(number + 1);
	attempt = &record->attempt[number];
	attempt->server = TAILOR_ATTEMPT_SERVER(event->extra);
	attempt->reason = TAILOR_ATTEMPT_REASON(event->extra);
	if (event->arg[0])
		attempt->port = (uint16_t)event->arg[0];
	return attempt;
}

static void apply_to_attempt(struct tailor_attempt *attempt, const struct tailor_event *event)
{
	switch ((enum tailor_event_kind)event->kind) {
	case TAILOR_EVENT_ATTEMPT_BEGIN: attempt->begin_ns = event->time_ns; break;
	case TAILOR_EVENT_ATTEMPT_SEND:
		attempt->send_ns = event->time_ns;
		if (event->arg[1])
			attempt->begin_ns = event->time_ns;
		break;
	case TAILOR_EVENT_ATTEMPT_SENT: attempt->sent_ns = event->time_ns; break;
	case TAILOR_EVENT_RESPONSE_BEGIN: attempt->response_begin_ns = event->time_ns; break;
	case TAILOR_EVENT_RESPONSE_END:
		attempt->response_end_ns = event->time_ns;
		if (event->arg[2] & TAILOR_RESPONSE_BEGAN)
			attempt->response_begin_ns = event->time_ns;
		break;
	case TAILOR_EVENT_ATTEMPT_END:
		attempt->end_ns = event->time_ns;
		attempt->end = (uint8_t)event->arg[1];
		break;
	default: break;
	}
}

static void end(struct tailor_record *record, const struct tailor_event *event)
{
	struct tailor_request *request = &record->request;
	unsigned int number = TAILOR_ATTEMPT_NUMBER(event->arg[2]);

	request->end_ns = event->time_ns;
	request->status = TAILOR_ENDED_STATUS(event->extra);
	request->response_bytes = event->arg[0];
	request->end = (uint8_t)event->arg[1];
	request->attempts = record->attempts;
	record->refusal = (uint8_t)TAILOR_ENDED_REFUSAL(event->extra);
	if (number < record->attempts && record->attempt[number].response_begin_ns) {
		record->answered = (int8_t)number;
		request->failover = record->attempt[number].reason;
	}
}

/* Waits that are farther apart are not told as one. */
#define APART_NS UINT64_C(1000000)

static uint64_t apart_ns(const struct tailor_client_wait *wait)
{
	return wait[1].start_ns > wait[0].end_ns ? wait[1].start_ns - wait[0].end_ns : 0;
}

static uint64_t waited_ns(const struct tailor_client_wait *wait)
{
	return wait->waited_us ? (uint64_t)wait->waited_us * 1000 : wait->end_ns - wait->start_ns;
}

static uint32_t capped(uint64_t us)
{
	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* This one and the next as one. */
static struct tailor_client_wait joined(const struct tailor_client_wait *wait)
{
	return (struct tailor_client_wait){
	        .start_ns = wait[0].start_ns < wait[1].start_ns ? wait[0].start_ns : wait[1].start_ns,
	        .end_ns = wait[0].end_ns > wait[1].end_ns ? wait[0].end_ns : wait[1].end_ns,
	        .bytes = wait[0].bytes > wait[1].bytes ? wait[0].bytes : wait[1].bytes,
	        .window_us = capped((uint64_t)wait[0].window_us + wait[1].window_us),
	        .buffer_us = capped((uint64_t)wait[0].buffer_us + wait[1].buffer_us),
	        .waited_us = capped((waited_ns(&wait[0]) + waited_ns(&wait[1])) / 1000),
	};
}

/* One less of so many: the two nearest to each other are told as one, if that is waiting for the most part; else the shortest is left out. */
static void thin_waits(struct tailor_client_wait *waits, unsigned int count)
{
	unsigned int nearest = count, shortest = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct tailor_client_wait both;

		if (waited_ns(&waits[i]) < waited_ns(&waits[shortest]))
			shortest = i;
		if (i + 1 == count || apart_ns(&waits[i]) > APART_NS ||
		    (nearest < count && apart_ns(&waits[i]) >= apart_ns(&waits[nearest])))
			continue;
		both = joined(&waits[i]);
		if (2 * waited_ns(&both) >= both.end_ns - both.start_ns)
			nearest = i;
	}
	if (nearest < count) {
		waits[nearest] = joined(&waits[nearest]);
		shortest = nearest + 1;
	}
	memmove(&waits[shortest], &waits[shortest + 1], (count - 1 - shortest) * sizeof(*waits));
}

/* In the order in which they were. */
static void add_client_wait(struct tailor_record *record, const struct tailor_event *event)
{
	const struct tailor_client_wait wait = {
	        .start_ns = event->arg[0],
	        .end_ns = event->time_ns,
	        .bytes = event->arg[1],
	        .window_us = TAILOR_CLIENT_WAIT_WINDOW_US(event->arg[2]),
	        .buffer_us = TAILOR_CLIENT_WAIT_BUFFER_US(event->arg[2]),
	        .waited_us = event->extra,
	};
	struct tailor_client_wait waits[TAILOR_CLIENT_WAITS_MAX + 1];

	if (wait.start_ns >= wait.end_ns)
		return;
	if (record->client_waits < TAILOR_CLIENT_WAITS_MAX) {
		record->client_wait[record->client_waits++] = wait;
		return;
	}
	memcpy(waits, record->client_wait, sizeof(record->client_wait));
	waits[TAILOR_CLIENT_WAITS_MAX] = wait;
	thin_waits(waits, TAILOR_CLIENT_WAITS_MAX + 1);
	memcpy(record->client_wait, waits, sizeof(record->client_wait));
}

void tailor_requests_watch_stops(struct tailor_requests *requests,
                                 void (*stopped)(void *context, size_t worker, const struct tailor_stopped *stopped), void *context)
{
	requests->stopped = stopped;
	requests->stopped_context = context;
}

static void tell_stop(const struct tailor_requests *requests, size_t worker, uint64_t position, const struct tailor_event *event)
{
	struct tailor_stopped stopped = {
	        .server = TAILOR_STOPPED_SERVER(event->extra),
	        .kind = (enum tailor_stop_kind)TAILOR_STOPPED_KIND(event->extra),
	        .begin_ns = event->arg[0],
	        .end_ns = event->time_ns,
	        .noticed_ns = (uint64_t)TAILOR_STOP_NOTICED_US(event->arg[1]) * 1000,
	        .replayed_ns = (uint64_t)TAILOR_STOP_REPLAYED_US(event->arg[1]) * 1000,
	        .in_flight = TAILOR_STOPPED_IN_FLIGHT(event->extra),
	        .moved = TAILOR_STOP_MOVED(event->arg[2]),
	        .not_moved = TAILOR_STOP_NOT_MOVED(event->arg[2]),
	        .why_not = TAILOR_STOP_WHY_NOT(event->arg[2]),
	};

	if (!requests->stopped || stopped.begin_ns > stopped.end_ns)
		return;
	tailor_text_read(&requests->tails[worker].channel, position, event, stopped.cause, sizeof(stopped.cause));
	requests->stopped(requests->stopped_context, worker, &stopped);
}

/* Returns the record when this event ended it. */
static struct tailor_record *apply(struct tailor_requests *requests, const struct tailor_channel *channel, uint64_t position,
                                   const struct tailor_event *event)
{
	struct tailor_record *record;
	struct tailor_attempt *attempt;

	if (event->request == 0)
		return NULL;
	if (event->kind == TAILOR_EVENT_REQUEST_BEGIN) {
		begin(requests, event, event->time_ns, TAILOR_CLIENT(event->arg[0], event->arg[1]));
		return NULL;
	}
	if (event->kind == TAILOR_EVENT_REQUEST_PARSED && event->arg[1])
		begin(requests, event, event->arg[1], event->arg[2]);
	record = open_records_find(&requests->open, event->request);
	if (!record)
		return NULL; /* its beginning was lost */
	switch ((enum tailor_event_kind)event->kind) {
	case TAILOR_EVENT_REQUEST_PARSED:
		record->parsed_ns = event->time_ns;
		record->minor = (uint8_t)event->arg[0];
		tailor_text_read(channel, position, event, record->request.target, sizeof(record->request.target));
		break;
	case TAILOR_EVENT_REQUEST_QUEUED: record->queued_ns = event->time_ns; break;
	case TAILOR_EVENT_REPLY_BEGIN: record->reply_begin_ns = event->time_ns; break;
	case TAILOR_EVENT_CLIENT_WAIT: add_client_wait(record, event); break;
	case TAILOR_EVENT_REQUEST_LATE:
		record->late_from_ns = event->arg[0];
		record->late_there_ns = event->arg[1];
		break;
	case TAILOR_EVENT_REQUEST_END: end(record, event); return record;
	default:
		if (event->kind == TAILOR_EVENT_RESPONSE_END && (event->arg[2] & TAILOR_RESPONSE_REPLIED))
			record->reply_begin_ns = event->time_ns;
		attempt = attempt_of(record, event);
		if (attempt)
			apply_to_attempt(attempt, event);
	}
	return NULL;
}

size_t tailor_requests_poll(struct tailor_requests *requests, uint64_t now_ns,
                            void (*ended)(void *context, size_t worker, const struct tailor_record *record), void *context)
{
	struct tailor_event event;
	uint64_t position;
	size_t count = 0;

	for (size_t i = 0; i < requests->tail_count; i++) {
		while (tailor_tail_next(&requests->tails[i], now_ns, &event, &position)) {
			struct tailor_record *record = apply(requests, &requests->tails[i].channel, position, &event);

			count++;
			if (event.kind == TAILOR_EVENT_SERVER_STOPPED)
				tell_stop(requests, i, position, &event);
			if (record) {
				ended(context, i, record);
				open_records_remove(&requests->open, record);
			}
		}
	}
	return count;
}

uint64_t tailor_requests_lost(const struct tailor_requests *requests, size_t worker)
{
	return requests->tails[worker].lost;
}

uint64_t tailor_requests_lost_by(const struct tailor_requests *requests, size_t worker, enum tailor_lost reason)
{
	return requests->tails[worker].lost_by[reason];
}

struct tailor_loss tailor_requests_last_loss(const struct tailor_requests *requests, size_t worker)
{
	return requests->tails[worker].last_loss;
}

uint64_t tailor_requests_oldest(const struct tailor_requests *requests, uint64_t after_ns)
{
	return open_records_oldest(&requests->open, after_ns);
}
