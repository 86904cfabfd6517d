/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many connections each client address has, over all workers. The memory is taken once: as many entries as there
 * can be connections. Any thread; a short lock, taken once when a connection comes and once when it goes.
 */
#ifndef TAILOR_PROXY_ADDRESSES_H
#define TAILOR_PROXY_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct addresses;

/* For at most `connections` at once, `per_address` of them from one. Returns 0 and *ret_addresses, or -ENOMEM. */
int addresses_open(unsigned int connections, unsigned int per_address, struct addresses **ret_addresses);
void addresses_close(struct addresses *addresses);

/* Counts a connection from that IP (16 bytes, IPv4 as ::ffff:a.b.c.d). Returns false, and has not, when it has all it may have. */
bool addresses_enter(struct addresses *addresses, const uint8_t ip[16]);

/* A counted one has gone. */
void addresses_leave(struct addresses *addresses, const uint8_t ip[16]);

#endif /* TAILOR_PROXY_ADDRESSES_H */
