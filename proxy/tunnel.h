/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that changes its protocol (RFC 9110, 7.8). Where the config allows it the server is asked; if it agrees
 * with 101, the request has ended with that answer, and what follows are bytes both ways, through the same bounded buffers as
 * bodies: to the server as a request's body without end, to the client as a response's until the close. Each side may
 * end before the other. Such a request is sent to one server only, on a connection of its own.
 */
#ifndef TAILOR_PROXY_TUNNEL_H
#define TAILOR_PROXY_TUNNEL_H

#include "proxy/worker.h"

/* Which of the allowed protocols the request asks for: its index + 1, or 0. */
unsigned int tunnel_asked(const struct tailor_proxy_options *options, const struct http1_head *head);

/* Its name; NULL for 0. */
const char *tunnel_protocol(const struct tailor_proxy_options *options, unsigned int asked);

/* Whether a response agrees to that. */
bool tunnel_agreed(const struct tailor_proxy_options *options, unsigned int asked, const struct http1_head *head);

/* The response was chosen and its head written: bytes from here on. */
void tunnel_begin(struct worker *worker, struct upstream *upstream);

/* To be called when anything has moved: passes the end of one side on to the other, and ends the tunnel after both. */
void tunnel_advance(struct worker *worker, struct client *client);

/* Nothing has moved either way for timeouts.idle. */
void tunnel_idle(struct worker *worker, struct client *client);

/* The client's connection ends, for whatever reason. */
void tunnel_closed(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_TUNNEL_H */
