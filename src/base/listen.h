/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_LISTEN_H
#define TAILOR_BASE_LISTEN_H

#include <sys/types.h>

#include "base/address.h"

/* For tailor_listen(): nobody but this user (and root) may connect to a Unix socket. */
#define TAILOR_LISTEN_OWNER ((gid_t)-1)

/*
 * Opens a listening socket (non-blocking, close-on-exec). type: SOCK_STREAM or, for Unix addresses,
 * SOCK_SEQPACKET. A Unix socket file gets mode 0600, or with a group that group and mode 0660; there is no moment at which
 * others may connect. One that a dead process left behind is replaced, one that somebody listens on is not, and a file
 * that is no socket is never touched.
 * Returns the descriptor, or a negative errno: -EADDRINUSE (somebody listens there), -EEXIST (the path is another kind of
 * file), -EADDRNOTAVAIL, -EACCES, -EPERM (this user may not give files to that group), -ENOENT (no such directory).
 */
int tailor_listen(const struct tailor_address *address, int type, gid_t group);

/*
 * What a Unix address whose path is taken holds: 0 for a socket file that nobody listens on any more (or nothing at all by
 * now), -EADDRINUSE if somebody listens, -EEXIST if it is no socket, or another negative errno.
 */
int tailor_listen_probe(const struct tailor_address *address, int type);

#endif /* TAILOR_BASE_LISTEN_H */
