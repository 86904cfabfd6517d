/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that nobody wants, as another server's has won, is read and thrown away, so that its connection can carry another request.
 */
#ifndef TAILOR_PROXY_DISCARD_H
#define TAILOR_PROXY_DISCARD_H

#include "proxy/worker.h"

/* More than this is not read only to keep a connection. */
#define DISCARD_BYTES_MAX (64 * 1024)

/* What comes on that connection is the answer to a request of that method; its head may have begun. */
void discard_begin(struct upstream *upstream, enum http1_method method);

/* Throws away what has come. Returns 1 at its end, 0 when there is more to come, -1 when the connection is of no use behind it. */
int discard_take(struct worker *worker, struct upstream *upstream);

#endif /* TAILOR_PROXY_DISCARD_H */
