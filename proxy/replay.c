/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/replay.h"

#include <string.h>

#include "proxy/head.h"

int replay_open(struct worker *worker)
{
	const struct tailor_proxy_options *options = worker->options;
	size_t bytes = options->head_bytes_max + HEAD_ADDED_BYTES + options->replay_bytes_max;
	uint64_t blocks;

	bytes = (bytes + 4095) / 4096 * 4096;
	if (bytes <= worker->forward_bytes)
		return 0;
	/* Which worker they come to is the kernel's choice, so that each may get all. Memory is taken when used. */
	blocks = options->replay_bytes_total / options->replay_bytes_max;
	if (blocks > worker->client_slots)
		blocks = worker->client_slots;
	if (blocks == 0)
		return 0;
	worker->replay_bytes = (uint32_t)bytes;
	return pool_open(&worker->replay_pool, (uint32_t)blocks, bytes);
}

void replay_close(struct worker *worker)
{
	pool_close(&worker->replay_pool);
}

void replay_begin(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	exchange->unkept = exchange->framing == HTTP1_LENGTH && exchange->body_left > worker->options->replay_bytes_max;
}

/* Takes a share of what all workers have together. */
static bool reserve(struct worker *worker)
{
	uint64_t bytes = worker->options->replay_bytes_max;

	if (__atomic_add_fetch(&worker->shared->replay_bytes, bytes, __ATOMIC_RELAXED) <= worker->options->replay_bytes_total)
		return true;
	__atomic_fetch_sub(&worker->shared->replay_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

bool replay_grow(struct worker *worker, struct client *client)
{
	struct exchange *exchange = &client->exchange;

	if (exchange->unkept || exchange->request_lost)
		return false;
	/* Nobody would send it again. */
	if (client->replay || !worker->replay_bytes || !exchange->replayable) {
		exchange->unkept = true;
		return false;
	}
	if (!reserve(worker)) {
		exchange->unkept = exchange->replay_full = true;
		return false;
	}
	client->replay = pool_take(&worker->replay_pool);
	/* From the old buffer a server's send may still read. */
	memcpy(client->replay, client->forward, exchange->forward_end);
	return true;
}

void replay_end(struct worker *worker, struct client *client)
{
	if (!client->replay)
		return;
	pool_give(&worker->replay_pool, client->replay);
	client->replay = NULL;
	__atomic_fetch_sub(&worker->shared->replay_bytes, worker->options->replay_bytes_max, __ATOMIC_RELAXED);
}
