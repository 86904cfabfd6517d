/* SPDX-License-Identifier: Apache-2.0 */
/* A request's body: from what the client has sent to the buffer that servers are sent it from. */
#ifndef TAILOR_PROXY_BODY_H
#define TAILOR_PROXY_BODY_H

#include "proxy/worker.h"

/* Whether it is beyond body_bytes_max, as far as is known: also by a chunk of which no more than the size is here. */
bool body_is_too_long(const struct worker *worker, const struct exchange *exchange);

/* Moves what is there of the body to the buffer, as far as there is room. Returns 0, or the status to refuse the request with. */
unsigned int body_take(struct worker *worker, struct client *client);

/* Makes room for more body once the server has what is buffered, and returns true if it could; unless all of it can be kept,
 * the request cannot be sent again from then on. */
bool body_discard_sent(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_BODY_H */
