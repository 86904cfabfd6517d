/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_LISTEN_H
#define TAILOR_BASE_LISTEN_H

#include "base/address.h"

/*
 * Opens a listening socket (non-blocking, close-on-exec). type: SOCK_STREAM or, for Unix addresses,
 * SOCK_SEQPACKET. A Unix socket file gets mode 0600; one that a dead process left behind is replaced,
 * one that somebody listens on is not, and a file that is no socket is never touched.
 * Returns the descriptor, or a negative errno: -EADDRINUSE (somebody listens there, or the path is another kind of
 * file), -EADDRNOTAVAIL, -EACCES, -ENOENT (no such directory).
 */
int tailor_listen(const struct tailor_address *address, int type);

#endif /* TAILOR_BASE_LISTEN_H */
