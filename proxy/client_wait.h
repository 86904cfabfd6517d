/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that takes no more of its response for now: since when, why as TCP sees it, and the event that tells it. A send is first tried
 * without waiting; only one that the socket took nothing of waits, so that what did not wait costs nothing here.
 */
#ifndef TAILOR_PROXY_CLIENT_WAIT_H
#define TAILOR_PROXY_CLIENT_WAIT_H

#include "proxy/worker.h"

/* Whether the next send must be one that waits; if not, it must complete with -EAGAIN instead. */
static inline bool client_waits(const struct client *client)
{
	return client->wait.since_ns != 0;
}

/* The socket took nothing of what was sent. Asks TCP for its state, once. */
void client_wait_begin(struct worker *worker, struct client *client);
/*
 * It goes on, or never will: the wait is added to those before it, which are told by TAILOR_EVENT_CLIENT_WAIT first where they are apart and
 * were TAILOR_PROXY_CLIENT_WAIT_NS or longer in sum. Does nothing where nobody waits.
 */
void client_wait_end(struct worker *worker, struct client *client);
/* The response has ended: nobody waits any more, and what has not been told is. */
void client_wait_finish(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_CLIENT_WAIT_H */
