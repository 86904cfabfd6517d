/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the clients share: client.c talks, client_request.c decides what to ask. */
#ifndef TAILOR_SIMULATION_CLIENT_H
#define TAILOR_SIMULATION_CLIENT_H

#include "output.h"
#include "reply.h"
#include "wire.h"

#define REQUESTS_MAX 12 /* of one connection */

struct client {
	struct client *next;
	struct wire *wire;
	bool waiting, gone;
	/* Manners. */
	unsigned int requests, depth; /* how many in all, how many at once */
	uint8_t minor;
	bool keeps; /* HTTP/1.0 */
	bool hostile, half_closes, lingers, abandons;
	bool reads_slowly, writes_slowly;
	uint64_t abort_written, abort_read; /* after so many bytes */
	uint64_t stall_written, stall_read;
	bool resets, only_fin; /* how it aborts */
	/* Writing. */
	struct output out;
	size_t out_at;
	uint64_t written;
	size_t hold_at; /* a body that waits for 100 Continue begins here in `out`; SIZE_MAX: none */
	uint64_t hold_until_ns, think_until_ns, stalled_until_ns;
	bool fin;
	/* Requests and answers. */
	uint32_t request[REQUESTS_MAX];
	uint64_t end[REQUESTS_MAX]; /* when so many bytes are written, the request is */
	unsigned int made, answered;
	struct reply reply;
	uint64_t read;
	uint64_t read_stalled_until_ns;
	bool ending; /* a response has announced the end */
	uint64_t progress_ns;
};

/* Adds another request to client->out and to the table. */
void client_make_request(struct client *client);

#endif /* TAILOR_SIMULATION_CLIENT_H */
