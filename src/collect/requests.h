/* SPDX-License-Identifier: Apache-2.0 */
/* Request channels -> records: puts the events of each request together until it has ended; and what workers did about stops of servers. */
#ifndef TAILOR_COLLECT_REQUESTS_H
#define TAILOR_COLLECT_REQUESTS_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/channel.h>
#include <tailor/jvm_page.h>
#include <tailor/stop.h>
#include <tailor/window.h>

#include "collect/hold.h"

struct tailor_requests;

/*
 * channels: one per worker, `count` of them, which must outlive this. open_max: requests that can be
 * open at once (client connections); beyond twice as many the oldest is forgotten, since its end was
 * lost. Returns 0 or -ENOMEM. One thread.
 */
int tailor_requests_open(const struct tailor_channel *channels, size_t count, size_t open_max, struct tailor_requests **ret_requests);
void tailor_requests_close(struct tailor_requests *requests);

/*
 * Reads what the workers wrote since the last call and calls `ended` for every request that ended; the
 * record is valid during the call. request.server is left empty: the caller knows the names. Returns the number of
 * events read. `now_ns` bounds how long a reserved but unpublished position is waited for (1 ms).
 */
size_t tailor_requests_poll(struct tailor_requests *requests, uint64_t now_ns,
                            void (*ended)(void *context, size_t worker, const struct tailor_record *record), void *context);

/* TAILOR_EVENT_SERVER_STOPPED, in full. */
struct tailor_stopped {
	unsigned int server;
	enum tailor_stop_kind kind; /* by which the worker noticed it first */
	uint64_t begin_ns;
	uint64_t end_ns;     /* not before begin_ns */
	uint64_t noticed_ns; /* from begin_ns; so is the next */
	uint64_t replayed_ns; /* 0: nothing was */
	unsigned int in_flight;
	unsigned int moved;
	unsigned int not_moved;
	unsigned int why_not; /* enum tailor_not_moved (proxy/proxy.h); with not_moved */
	char cause[TAILOR_JVM_CAUSE_BYTES]; /* "" unknown */
};

/* From the next poll on, `stopped` is called for each stop of a server, in the order in which its worker wrote it. Once, before the first one. */
void tailor_requests_watch_stops(struct tailor_requests *requests,
                                 void (*stopped)(void *context, size_t worker, const struct tailor_stopped *stopped), void *context);

/* Events lost so far in a worker's channel, in all and of one reason. */
uint64_t tailor_requests_lost(const struct tailor_requests *requests, size_t worker);
uint64_t tailor_requests_lost_by(const struct tailor_requests *requests, size_t worker, enum tailor_lost reason);

/* The most recent loss in a worker's channel as its time range; events == 0 when there was none. */
struct tailor_loss tailor_requests_last_loss(const struct tailor_requests *requests, size_t worker);

/* When the oldest of the requests began that are open and began after after_ns; UINT64_MAX: there is none. */
uint64_t tailor_requests_oldest(const struct tailor_requests *requests, uint64_t after_ns);

#endif /* TAILOR_COLLECT_REQUESTS_H */
