/* SPDX-License-Identifier: Apache-2.0 */
/* From the first complete response head to the client's socket: framing, buffers, back-pressure. */
#ifndef TAILOR_PROXY_RESPONSE_H
#define TAILOR_PROXY_RESPONSE_H

#include "proxy/worker.h"

/* `bytes` more have come on the attempt's connection. */
void response_received(struct worker *worker, struct upstream *upstream, uint32_t bytes);

/* The attempt's connection has ended; what came before may still wait. */
void response_ended(struct worker *worker, struct upstream *upstream);

/* Sends what there is to send to the client; ends the exchange after its last byte. */
void response_pump(struct worker *worker, struct client *client);

/* A send to the client has completed with `result` > 0. */
void response_sent(struct worker *worker, struct client *client, uint32_t bytes);

/* A send to the client has completed with -EAGAIN: nothing of it was taken. It is sent again, and waits this time. */
void response_waits(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_RESPONSE_H */
