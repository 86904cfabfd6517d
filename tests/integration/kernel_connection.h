/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of socket events share: a connection whose other end is a traced child, and the tag that joins it to a request. */
#ifndef TAILOR_TESTS_KERNEL_CONNECTION_H
#define TAILOR_TESTS_KERNEL_CONNECTION_H

#include "base/address.h"
#include "tests/integration/kernel_harness.h"

/* What the server's child does next; the number of bytes is in the lower bits. */
#define DO_RECEIVE (1 << 16)
#define DO_PEEK (2 << 16)
#define DO_WRITE (3 << 16)
#define DO_NAP (4 << 16)
#define DO_WRITE_TWICE (5 << 16) /* so many bytes, and one more than so many */
#define DO_CORK (6 << 16)        /* switches it on or off */
#define DO_NODELAY (7 << 16)
#define DO_WRITE_MORE (8 << 16) /* MSG_MORE */
#define DO_BYTES 0xffff

/* One connection between this process, which plays the proxy, and a traced child, the server. */
struct connection {
	struct tailor_kernel *kernel; /* the caller's */
	struct child server;
	int fd;
	uint16_t server_port;
	uint16_t port;
	struct tailor_tag *tag;
};

/* Opens the kernel; prints what is missing and exits 77 where it does not tell what sockets send and receive. */
struct tailor_kernel *connection_kernel(void);

/* `listen_at` may be a wildcard, `connect_to` is the server as the proxy knows it; its port is the listener's. The server is traced, and the
 * tag names it, but no request yet. */
void connection_open(struct connection *connection, struct tailor_kernel *kernel, const char *listen_at, const char *connect_to);
/* segment: the most bytes that the server may send in one; 0: the kernel's choice. */
void connection_open_with(struct connection *connection, struct tailor_kernel *kernel, const char *listen_at, const char *connect_to,
                          int segment);
void connection_close(struct connection *connection);

void fill_tag(struct tailor_tag *tag, const struct tailor_address *own, const struct tailor_address *server);
void set_request(const struct connection *connection, uint64_t request);
/* Sends a request of `bytes` and has the server read it; then the server writes `answer` bytes and this reads them. */
void exchange(const struct connection *connection, size_t bytes, size_t answer);

/* The events' ports as each end has them. */
uint32_t server_ports(const struct connection *connection);
uint32_t proxy_ports(const struct connection *connection);

/* The first event of that kind and end of the connection that carries the request; NULL when there is none. */
const struct tailor_event *find(const struct recording *recording, enum tailor_event_kind kind, uint32_t ports, uint64_t request);

#endif /* TAILOR_TESTS_KERNEL_CONNECTION_H */
