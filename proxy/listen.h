/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_PROXY_LISTEN_H
#define TAILOR_PROXY_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

/*
 * Opens `count` listening sockets on one address, which the kernel spreads connections over; a port of 0 is chosen by
 * it and stored in *address. For a Unix address all of them are the same socket. Returns 0, or a negative errno with
 * one line and the remedy in `error` and nothing left open.
 */
int listen_open(struct tailor_address *address, unsigned int count, int *ret_fds, char *error, size_t error_size);

/* As tailor_proxy_adopt(). */
int listen_adopt(struct tailor_address *address, unsigned int count, const int *sockets, unsigned int socket_count, int *ret_fds,
                 char *error, size_t error_size);

/*
 * Closes them, which may have been closed before. `shared`: another process listens on the same sockets, and goes on. If
 * not, whoever connects is refused from here on, although an accept may still be under way, and a Unix socket's file goes.
 */
void listen_close(const struct tailor_address *address, unsigned int count, int *fds, bool shared);

#endif /* TAILOR_PROXY_LISTEN_H */
