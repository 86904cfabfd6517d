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
 * It goes on, or never will: writes TAILOR_EVENT_CLIENT_WAIT if it was TAILOR_PROXY_CLIENT_WAIT_NS or longer; shorter ones are summed up.
 * Does nothing where nobody waits.
 */
void client_wait_end(struct worker *worker, struct client *client);
/* Writes one event for the short waits so far, if they were TAILOR_PROXY_CLIENT_WAIT_NS or longer in sum; there are none then. */
void client_wait_tell_short(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_CLIENT_WAIT_H */
