/* SPDX-License-Identifier: Apache-2.0 */
/* What a client receives, byte by byte, and whether it is what it must be. */
#ifndef TAILOR_SIMULATION_REPLY_H
#define TAILOR_SIMULATION_REPLY_H

#include "traffic.h"

#define REPLY_HEAD_BYTES_MAX (80 * 1024)

enum reply_framing {
	REPLY_NONE,
	REPLY_LENGTH,
	REPLY_CHUNKED,
	REPLY_UNTIL_CLOSE,
};

struct reply {
	char *head;
	size_t head_length;
	bool in_body, done;
	bool continued; /* an interim response has come */
	bool close;     /* the connection ends with this one */
	enum reply_framing framing;
	bool refused;
	uint16_t status;
	uint32_t answer;
	uint64_t id;
	uint64_t left, offset;
	uint64_t bytes; /* of this response, interim ones included */
	struct unchunk unchunk;
};

/* Ready for the next response. */
void reply_begin(struct reply *reply);
void reply_free(struct reply *reply);
/* Takes bytes of the response to `request` (NULL: none is due) and checks them. Returns how many; reply->done at its end. */
size_t reply_take(struct reply *reply, const struct request *request, const char *data, size_t length);
/* The connection has ended, in order or not. Returns true when that is this response's proper end. */
bool reply_end(struct reply *reply, const struct request *request, bool in_order);

#endif /* TAILOR_SIMULATION_REPLY_H */
