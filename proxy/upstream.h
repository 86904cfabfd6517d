/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to servers: opening, the pool of idle ones, sending the request of an attempt. */
#ifndef TAILOR_PROXY_UPSTREAM_H
#define TAILOR_PROXY_UPSTREAM_H

#include "proxy/worker.h"

/*
 * Gives attempt `index` of the client's exchange a connection to its server, idle or new (`fresh`: new in any case),
 * and writes ATTEMPT_BEGIN. Returns 0, or a negative errno when there is none to be had: then nothing has happened.
 */
int upstream_begin(struct worker *worker, struct client *client, unsigned int index, bool fresh);

/* Sends what the exchange's forward buffer holds beyond what was sent. Does nothing while a send is under way. */
void upstream_send(struct worker *worker, struct upstream *upstream);

/* Asks for more of the response, if there is room. */
void upstream_receive(struct worker *worker, struct upstream *upstream);

/* Its server has nothing more to do for the request, which does not count among those in flight there any more. Idempotent. */
void upstream_answered(struct worker *worker, struct upstream *upstream);

/* Takes the connection off its attempt: closed, or back to the pool when it can carry another exchange. */
void upstream_drop(struct worker *worker, struct upstream *upstream);
void upstream_release(struct worker *worker, struct upstream *upstream);

/*
 * Takes the connection off its attempt, whose answer nobody wants any more: it is awaited and thrown away, after which the connection can
 * be used again. Where that cannot be, or turns out to be too much, it is closed.
 */
void upstream_discard(struct worker *worker, struct upstream *upstream);

/* Begins a connection to the server that is for nobody yet, and idle when it stands. Returns false when none could be begun. */
bool upstream_open_spare(struct worker *worker, unsigned int server);

/* From the loop. */
void upstream_complete(struct worker *worker, struct upstream *upstream, enum operation operation, int result);
void upstream_alarm(struct worker *worker, struct upstream *upstream);
void upstream_closed(struct worker *worker, struct upstream *upstream);
/* Closes the pool, and what was to come back to it. */
void upstream_close_idle(struct worker *worker);

#endif /* TAILOR_PROXY_UPSTREAM_H */
