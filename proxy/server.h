/* SPDX-License-Identifier: Apache-2.0 */
/* Which server gets a request. */
#ifndef TAILOR_PROXY_SERVER_H
#define TAILOR_PROXY_SERVER_H

#include "proxy/worker.h"

/* Its JVM is inside a collection; looks at the page itself, so that a request never starts towards a stopped server. */
bool server_is_paused(const struct worker *worker, unsigned int server);
/* It did not take connections lately. */
bool server_is_down(const struct worker *worker, unsigned int server);
/* Connecting failed: not tried again for 100 ms, doubling to 2 s. */
void server_mark_down(struct worker *worker, unsigned int server);
void server_mark_up(struct worker *worker, unsigned int server);

/* The server for a new request, or -1 when all are down and there is no idle connection to any. */
int server_choose(const struct worker *worker);

#endif /* TAILOR_PROXY_SERVER_H */
