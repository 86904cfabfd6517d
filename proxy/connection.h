/* SPDX-License-Identifier: Apache-2.0 */
/* Operations under way and the orderly end of a connection. */
#ifndef TAILOR_PROXY_CONNECTION_H
#define TAILOR_PROXY_CONNECTION_H

#include "proxy/worker.h"

static inline uint64_t connection_token(const struct connection *connection, enum operation operation)
{
	return TAILOR_TOKEN(connection->slot, connection->generation, operation);
}

static inline bool connection_has(const struct connection *connection, enum operation operation)
{
	return connection->operations & (1u << operation);
}

/* Marks the operation as the kernel's and returns its token. */
static inline uint64_t connection_begin(struct connection *connection, enum operation operation)
{
	connection->operations |= (uint8_t)(1u << operation);
	return connection_token(connection, operation);
}

/*
 * Asks for more bytes, unless that is under way. Returns false when there is no room for more: a receive under way is
 * then stopped. `expected`: they are most likely there already.
 */
bool connection_receive(struct worker *worker, struct connection *connection, struct input *input, bool expected);

/* What a completion of the receive says about memory. Returns false when that is all it says: the receive has ended
 * because it was stopped, or for want of buffers, and may be asked for again. */
bool connection_received(struct worker *worker, struct connection *connection, struct input *input,
                         const struct tailor_completion *completion);

/* Cancels what is under way; closes and frees the connection once nobody holds its memory. Idempotent. */
void connection_close(struct worker *worker, struct connection *connection);

/* To be called whenever something that held the connection has let go. */
void connection_settle(struct worker *worker, struct connection *connection);

/* A hold on its memory by another connection's send ends. */
void connection_unhold(struct worker *worker, struct connection *connection);

#endif /* TAILOR_PROXY_CONNECTION_H */
