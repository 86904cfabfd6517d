/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/kernel_connection.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tailor/timeline.h>
#include <unistd.h>

struct tailor_kernel *connection_kernel(void)
{
	struct tailor_kernel *kernel = harness_open(16384);

	if (!(tailor_kernel_missing(kernel) & TAILOR_MISSING_WRITE))
		return kernel;
	fprintf(stderr, "skipped: this kernel has no sock_recv_length and sock_send_length tracepoints (Linux 6.3)\n");
	tailor_kernel_close(kernel);
	exit(77);
}

static int set_option(int fd, int option, int value)
{
	return setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

static void serve(int control, void *context)
{
	int fd = accept(*(int *)context, NULL, NULL);
	char buffer[DO_BYTES] = "";

	if (fd < 0)
		_exit(1);
	for (;;) {
		int64_t order = control_hear(control);
		size_t bytes = (size_t)order & DO_BYTES;
		ssize_t done = 0;

		switch (order & ~DO_BYTES) {
		case DO_RECEIVE: done = read(fd, buffer, bytes); break;
		case DO_PEEK: done = recv(fd, buffer, bytes, MSG_PEEK); break;
		case DO_WRITE: done = write(fd, buffer, bytes); break;
		case DO_WRITE_TWICE: done = write(fd, buffer, bytes) + write(fd, buffer, bytes + 1); break;
		case DO_CORK: done = set_option(fd, TCP_CORK, (int)bytes); break;
		case DO_NODELAY: done = set_option(fd, TCP_NODELAY, (int)bytes); break;
		case DO_WRITE_MORE: done = send(fd, buffer, bytes, MSG_MORE); break;
		case DO_NAP: done = usleep(1000); break;
		default: _exit(1);
		}
		control_tell(control, done);
	}
}

void fill_tag(struct tailor_tag *tag, const struct tailor_address *own, const struct tailor_address *server)
{
	uint32_t words[4];

	memset(tag, 0, sizeof(*tag));
	tailor_address_ip(server, tag->address);
	tailor_address_ip(own, (uint8_t *)words);
	tag->proxy = tailor_tag_fold(words);
	tag->server_port = tailor_address_port(server);
}

void connection_open_with(struct connection *connection, struct tailor_kernel *kernel, const char *listen_at, const char *connect_to,
                          int segment)
{
	struct tailor_address address, own;
	int one = 1;
	int listener;

	connection->kernel = kernel;
	assert_int_equal(tailor_address_parse(listen_at, &address), 0);
	listener = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address.storage, address.length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address.storage, &address.length), 0);
	connection->server_port = tailor_address_port(&address);
	connection->server = child_start("server", serve, &listener);

	assert_int_equal(tailor_address_parse(connect_to, &address), 0);
	if (address.storage.ss_family == AF_INET)
		((struct sockaddr_in *)&address.storage)->sin_port = htons(connection->server_port);
	else
		((struct sockaddr_in6 *)&address.storage)->sin6_port = htons(connection->server_port);
	connection->fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (segment)
		assert_int_equal(set_option(connection->fd, TCP_MAXSEG, segment), 0);
	assert_int_equal(connect(connection->fd, (struct sockaddr *)&address.storage, address.length), 0);
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(listener);
	own.length = sizeof(own.storage);
	assert_int_equal(getsockname(connection->fd, (struct sockaddr *)&own.storage, &own.length), 0);
	connection->port = tailor_address_port(&own);
	connection->tag = &tailor_kernel_tags(kernel)[connection->port];
	tailor_tag_serves(tailor_kernel_tags(kernel), connection->server_port);
	fill_tag(connection->tag, &own, &address);
	assert_int_equal(tailor_kernel_trace(kernel, connection->server.pid, TAILOR_TRACED_SERVER), 0);
	child_ask(&connection->server, DO_NAP); /* it has accepted */
}

void connection_open(struct connection *connection, struct tailor_kernel *kernel, const char *listen_at, const char *connect_to)
{
	connection_open_with(connection, kernel, listen_at, connect_to, 0);
}

void connection_close(struct connection *connection)
{
	memset(connection->tag, 0, sizeof(*connection->tag));
	tailor_kernel_untrace(connection->kernel, connection->server.pid);
	close(connection->fd);
	child_stop(&connection->server);
}

void set_request(const struct connection *connection, uint64_t request)
{
	__atomic_store_n(&connection->tag->request, request, __ATOMIC_RELEASE);
}

void exchange(const struct connection *connection, size_t bytes, size_t answer)
{
	char buffer[DO_BYTES] = "";

	assert_int_equal(send(connection->fd, buffer, bytes, 0), bytes);
	assert_int_equal(child_ask(&connection->server, DO_RECEIVE | DO_BYTES), bytes);
	if (answer == 0)
		return;
	assert_int_equal(child_ask(&connection->server, DO_WRITE | (int64_t)answer), answer);
	assert_int_equal(recv(connection->fd, buffer, answer, MSG_WAITALL), answer);
}

uint32_t server_ports(const struct connection *connection)
{
	return TAILOR_PORTS(connection->server_port, connection->port);
}

uint32_t proxy_ports(const struct connection *connection)
{
	return TAILOR_PORTS(connection->port, connection->server_port);
}

const struct tailor_event *find(const struct recording *recording, enum tailor_event_kind kind, uint32_t ports, uint64_t request)
{
	const struct tailor_event *event;
	size_t index = 0;

	while ((event = recording_next(recording, &index, kind, 0))) {
		if (event->extra == ports && event->request == request)
			return event;
	}
	return NULL;
}
