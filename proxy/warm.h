/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that moves is to lose no time to connecting: connections wait for that at the server that would get those in flight, whose time
 * to be the active one may come once an hour. Looked at now and then, when requests have been sent; as many are made as those are, WARM_MAX
 * at most. Where none can serve them, and whole batches wait for the first to go on, it is looked at for each of them, and as many are made as
 * wait, WARM_WAITING_MAX at most, all workers together: they move at one moment, and a stopped process's kernel connects, until the queue of
 * those that it has not accepted is full (50 where a Java program does not say). All functions: the worker's thread.
 */
#ifndef TAILOR_PROXY_WARM_H
#define TAILOR_PROXY_WARM_H

#include "proxy/worker.h"

#define WARM_MAX 8
#define WARM_WAITING_MAX 32

/* A request is sent to the server, or waits there; connecting elsewhere for it has time until all is sent that there is. */
static inline void warm_note(struct worker *worker, unsigned int server)
{
	if (worker->now_ns >= worker->warm_ns || worker->server[server].standing.lasting)
		worker->warm_without = (int)server;
}

/* One that waits stands. */
void warm_made(struct worker *worker);

/* Once a turn, at its end. */
void warm_turn(struct worker *worker);

#endif /* TAILOR_PROXY_WARM_H */
