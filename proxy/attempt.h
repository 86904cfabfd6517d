/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange's attempts at servers: when one begins, and what follows when it fails or its server stops. What others
 * ask of it is in exchange.h.
 */
#ifndef TAILOR_PROXY_ATTEMPT_H
#define TAILOR_PROXY_ATTEMPT_H

#include "proxy/worker.h"

/*
 * Begins an attempt, at once or when the server has a place for it; `fresh`: on a new connection. Returns 0, -EBUSY when
 * the queue is full, or another negative errno when no connection could be had.
 */
int attempt_place(struct worker *worker, struct client *client, unsigned int server, enum tailor_failover_reason reason,
                  bool fresh);

#endif /* TAILOR_PROXY_ATTEMPT_H */
