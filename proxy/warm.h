/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that moves is to lose no time to connecting: connections wait for that at the server that would get those in flight, whose time
 * to be the active one may come once an hour. Looked at now and then, when requests have been sent; as many are made as those are, WARM_MAX
 * at most. All functions: the worker's thread.
 */
#ifndef TAILOR_PROXY_WARM_H
#define TAILOR_PROXY_WARM_H

#include "proxy/worker.h"

#define WARM_MAX 8

/* A request is sent to the server; connecting elsewhere for it has time until all is sent that there is. */
static inline void warm_note(struct worker *worker, unsigned int server)
{
	if (worker->now_ns >= worker->warm_ns)
		worker->warm_without = (int)server;
}

/* Once a turn, at its end. */
void warm_turn(struct worker *worker);

#endif /* TAILOR_PROXY_WARM_H */
