/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps collections away from requests (options->predict): the first worker looks at the servers' heaps now and then, the less the farther
 * the next collection is, and does what drain.h decides. The others see the lease in struct shared. All functions: the worker's thread;
 * those of the other workers do nothing, unless it is said.
 */
#ifndef TAILOR_PROXY_KEEPER_H
#define TAILOR_PROXY_KEEPER_H

#include "proxy/worker.h"

void keeper_open(struct worker *worker);

/* A server's JVM is there; or will not be any more, and its page is not to be used once this has returned. */
void keeper_attached(struct worker *worker, unsigned int server);
void keeper_detaching(struct worker *worker, unsigned int server);

/* The settings are others, or the worker stops. */
void keeper_changed(struct worker *worker);

/* Looks, if it is time, or a server is drained. Once a turn. */
void keeper_look(struct worker *worker);
static inline void keeper_turn(struct worker *worker)
{
	if (worker->now_ns >= worker->keeper.next_ns || worker->keeper.lease)
		keeper_look(worker);
}

/* So many requests of this worker were in flight at the server when a collection of its began. Any worker. */
void keeper_met(struct worker *worker, unsigned int server, uint32_t requests);

#endif /* TAILOR_PROXY_KEEPER_H */
