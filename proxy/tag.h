/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the tag table (tailor/tag.h). Two connections towards different servers may have the same local port, in one
 * worker or in two: an entry belongs to whoever claimed it, process-wide.
 */
#ifndef TAILOR_PROXY_TAG_H
#define TAILOR_PROXY_TAG_H

#include <stdint.h>
#include <tailor/tag.h>

#include "base/address.h"

/* Claims the entry of the local address's port for a connection from there to `server` at `address`. Returns it, or NULL
 * when another connection has it. Any thread. */
struct tailor_tag *tag_claim(struct tailor_tag *tags, const struct tailor_address *local, unsigned int server,
                             const struct tailor_address *address);

/* The connection carries `request` from now on, and the server does nothing for the one before any more. */
static inline void tag_store(struct tailor_tag *tag, uint64_t request)
{
	__atomic_store_n(&tag->request, request, __ATOMIC_RELEASE);
}

/* Gives the entry back. Call before the connection is closed: afterwards its port may be somebody else's. */
static inline void tag_release(struct tailor_tag *tag)
{
	tag_store(tag, 0);
	__atomic_store_n(&tag->server_port, 0, __ATOMIC_RELEASE);
}

#endif /* TAILOR_PROXY_TAG_H */
