/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two processes of `tailor proxy` say to each other when one takes over from the other (SOCK_SEQPACKET on a Unix socket):
 *
 *   new: HELLO
 *   old: OFFER    with its descriptors; it goes on as before
 *   new: READY    all is open that can fail to open; which of the descriptors it goes on with
 *   old: YOURS    it has let go of what only one can have: the store, the agents, the admin interface
 *   new: SERVING  it accepts; from here on the old one does not, and ends what it has in flight
 *
 * Either says FAILED and why instead, or closes: then the old one takes back what it had let go of, and goes on. The new one uses nothing
 * of that before YOURS, so there are never two who write the store.
 */
#ifndef TAILOR_CLI_TAKEOVER_WIRE_H
#define TAILOR_CLI_TAKEOVER_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum takeover_kind {
	TAKEOVER_HELLO = 1,
	TAKEOVER_OFFER,
	TAKEOVER_READY,
	TAKEOVER_YOURS,
	TAKEOVER_SERVING,
	TAKEOVER_FAILED,
};

/* What there is at most one of; in this order behind the clients' listening sockets. */
enum takeover_part {
	TAKEOVER_ADMIN,  /* listening */
	TAKEOVER_AGENTS, /* listening */
	TAKEOVER_SOCKET, /* the one that this is spoken on, listening */
	TAKEOVER_LOCK,   /* of the timeline store: the file's lock is the descriptor's */
	TAKEOVER_PARTS,
};

/*
 * Where the running proxy of this configuration listens for another that takes over: in the directory of timelines, since that
 * is one process's alone. Returns 0 or -ENAMETOOLONG.
 */
int takeover_path(const struct tailor_config *config, char *path, size_t size);

#define TAKEOVER_LISTENERS_MAX 16
#define TAKEOVER_VERSION 1
#define TAKEOVER_TEXT_BYTES 400

struct takeover_message {
	uint64_t magic;
	uint32_t version;
	uint32_t kind;
	uint32_t parts; /* bits 1 << enum takeover_part: OFFER: descriptors behind the listeners; READY: which are gone on with */
	uint32_t listeners; /* OFFER */
	uint32_t uid;       /* OFFER: as whom the old process runs */
	uint32_t pid;       /* who sends this: a listening socket that was handed over names who first listened */
	char text[TAKEOVER_TEXT_BYTES]; /* FAILED: one line; else who it is */
};
_Static_assert(sizeof(struct takeover_message) == 432, "the same in every version");

/* -1: not there. */
struct takeover_descriptors {
	int listener[TAKEOVER_LISTENERS_MAX];
	unsigned int listeners;
	int part[TAKEOVER_PARTS];
};

void takeover_descriptors_init(struct takeover_descriptors *descriptors);
/* Closes what is there. */
void takeover_descriptors_close(struct takeover_descriptors *descriptors);

/*
 * Sends a message; text and descriptors (for an OFFER) may be NULL. Does not wait. Returns 0 or a negative errno (-EPIPE: the
 * other one is gone).
 */
int takeover_send(int fd, enum takeover_kind kind, uint32_t parts, const char *text, const struct takeover_descriptors *descriptors);

/*
 * Receives one; of an OFFER the descriptors, too, to be closed by the caller (others are closed here). Returns 0, -EAGAIN (none is
 * there, or none came in the socket's time), -ECONNRESET (the other one is gone), -EPROTO (it is no message of this version).
 */
int takeover_receive(int fd, struct takeover_message *ret_message, struct takeover_descriptors *ret_descriptors);

#endif /* TAILOR_CLI_TAKEOVER_WIRE_H */
