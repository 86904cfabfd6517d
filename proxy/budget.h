/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many requests may be sent a second time because a server stands still: a part of all requests, and in any case some a second, so
 * that servers which are slow for being loaded are not loaded more. What is not used is kept, for a while: it fades with a time constant of
 * BUDGET_NS, so that there is at most what so long a time brings. Shared by all workers; nobody waits for anybody.
 */
#ifndef TAILOR_PROXY_BUDGET_H
#define TAILOR_PROXY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy/worker.h"

#define BUDGET_NS (10 * TAILOR_NS_PER_S)

/* A new one has what it would have after a long time without requests. The floor is a second's. */
void budget_open(struct budget *budget, uint64_t now_ns, uint64_t requests, unsigned int floor);

/*
 * Takes one, if there is one. `requests` is how many requests there have been in all so far, by a counter that only grows; what it says
 * a little late is made up for the next time.
 */
bool budget_take(struct budget *budget, uint64_t now_ns, uint64_t requests, double part, unsigned int floor);
/* Gives back one that was not used after all. */
void budget_give(struct budget *budget);

/* Opens those of all servers. Before the workers run. */
void budget_open_all(struct shared *shared, const struct tailor_proxy_options *options, uint64_t now_ns);
/* Takes one for a request at that server, of what the server's requests allow and of what all do; neither, or both. */
bool budget_take_for(struct worker *worker, unsigned int server);
void budget_give_for(struct worker *worker, unsigned int server);

#endif /* TAILOR_PROXY_BUDGET_H */
