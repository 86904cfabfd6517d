/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory to keep a request's body whole, so that it can be sent to another server: up to replay_bytes of each, and
 * replay_bytes_total of all workers' together. A short body fits into the buffer that every request has, and needs none
 * of it. Bodies that are not kept pass all the same, through that buffer.
 */
#ifndef TAILOR_PROXY_REPLAY_H
#define TAILOR_PROXY_REPLAY_H

#include "proxy/worker.h"

/* After worker->forward_bytes is set. Returns 0 or -ENOMEM. */
int replay_open(struct worker *worker);
void replay_close(struct worker *worker);

/* Where the request is, as servers get it, and how much fits there. */
static inline char *replay_forward(const struct client *client)
{
	return client->replay ? client->replay : client->forward;
}

static inline uint32_t replay_forward_bytes(const struct worker *worker, const struct client *client)
{
	return client->replay ? worker->replay_bytes : worker->forward_bytes;
}

/* The head is in the buffer: judges whether the body can be kept at all. */
void replay_begin(struct worker *worker, struct client *client);

/* More of the body has come than fits. Returns true when there is more room now. What is being sent may go on. */
bool replay_grow(struct worker *worker, struct client *client);

/* Nobody sends from it any more. */
void replay_end(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_REPLAY_H */
