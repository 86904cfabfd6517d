/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a load generator or a proxy is measured against: an HTTP/1.1 server that answers every request at once with the
 * same few bytes, on one thread. Requests may come in pieces, many in one piece, and with a body (Content-Length only).
 * It answers HEAD like GET: not meant for it.
 *
 *   server [PORT [BYTES]]    on 127.0.0.1; without PORT or with 0 on a free one. BYTES: of each answer's body (2), at
 *                            most 1048576. Prints the port, and ends with its parent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_FORMAT "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n"
#define BODY_BYTES_MAX (1024 * 1024)
#define RESPONSES_AT_ONCE_MAX 256
#define BYTES_AT_ONCE_MAX (256 * 1024)
#define HEAD_BYTES_MAX 16384
#define EVENTS 256

struct connection {
	int fd;
	bool last;     /* request came: it asked for the end, or its side has ended */
	bool writing;  /* waits for room to write instead of for requests */
	uint64_t skip; /* bytes of a request's body that are still to come */
	size_t owed;   /* bytes of answers; all answers are the same, so they need not be kept */
	size_t have;   /* in bytes[] */
	char bytes[HEAD_BYTES_MAX];
};

/* The same answer several times in a row. */
static char *responses;
static size_t response_bytes;
/* Of all of them. One that sends requests but reads no answers is not read from any more beyond that. */
static size_t owed_max;
static int epoll_fd, listener;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The value of a header field of a head without its last empty line, or NULL. */
static const char *field(const char *head, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	for (const char *line = head; (line = memchr(line, '\n', length - (size_t)(line - head))) != NULL;) {
		line++;
		if ((size_t)(head + length - line) <= name_length)
			return NULL;
		if (strncasecmp(line, name, name_length) == 0 && line[name_length] == ':')
			return line + name_length + 1 + strspn(line + name_length + 1, " \t");
	}
	return NULL;
}

/* Takes the whole requests out of bytes[]; what is left of one moves to the front. Returns 0, or -1 to give up. */
static int take_requests(struct connection *connection)
{
	char *next = connection->bytes, *end = connection->bytes + connection->have;

	while (!connection->last && connection->owed < owed_max) {
		size_t skipped = (size_t)(end - next) < connection->skip ? (size_t)(end - next) : connection->skip;
		const char *head_end, *value;
		size_t length;

		next += skipped;
		connection->skip -= skipped;
		if (connection->skip > 0)
			break;
		head_end = memmem(next, (size_t)(end - next), "\r\n\r\n", 4);
		if (!head_end) {
			if (next == connection->bytes && connection->have == sizeof(connection->bytes))
				return -1;
			break;
		}
		/* With the end of the last line: a value is followed by it. */
		length = (size_t)(head_end - next) + 2;
		if (field(next, length, "Transfer-Encoding"))
			return -1;
		value = field(next, length, "Content-Length");
		connection->skip = value ? strtoull(value, NULL, 10) : 0;
		value = field(next, length, "Connection");
		connection->last = value && strncasecmp(value, "close", 5) == 0;
		connection->owed += response_bytes;
		next += length + 2;
	}
	connection->have = (size_t)(end - next);
	memmove(connection->bytes, next, connection->have);
	return 0;
}

/* Returns 0 with everything written or no more room, or -1. */
static int write_owed(struct connection *connection)
{
	while (connection->owed > 0) {
		size_t offset = (response_bytes - connection->owed % response_bytes) % response_bytes;
		size_t length = owed_max - offset;
		ssize_t written;

		if (length > connection->owed)
			length = connection->owed;
		written = send(connection->fd, responses + offset, length, MSG_NOSIGNAL);
		if (written < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -1;
		connection->owed -= (size_t)written;
	}
	return 0;
}

static void watch(int operation, int fd, uint32_t events, void *what)
{
	struct epoll_event event = {.events = events, .data.ptr = what};

	if (epoll_ctl(epoll_fd, operation, fd, &event) < 0)
		fail("epoll_ctl");
}

static void end_connection(struct connection *connection)
{
	close(connection->fd);
	free(connection);
}

static void serve(struct connection *connection)
{
	/* Before anything is read: what was left behind when too much was owed. */
	bool left = connection->writing;
	ssize_t count = 0;

	if (!connection->writing) {
		count = recv(connection->fd, connection->bytes + connection->have,
		             sizeof(connection->bytes) - connection->have, 0);
		if (count < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (count < 0)
			goto end;
		connection->last |= count == 0;
		connection->have += (size_t)count;
		left = true;
	}
	while (left) {
		if (!connection->last && take_requests(connection) < 0)
			goto end;
		left = connection->owed >= owed_max;
		if (write_owed(connection) < 0)
			goto end;
		left = left && connection->owed == 0;
	}
	if (connection->owed == 0 && connection->last)
		goto end;
	if (connection->writing != (connection->owed > 0)) {
		connection->writing = connection->owed > 0;
		watch(EPOLL_CTL_MOD, connection->fd, connection->writing ? EPOLLOUT : EPOLLIN, connection);
	}
	return;
end:
	end_connection(connection);
}

static void accept_all(void)
{
	int fd, on = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct connection *connection = malloc(sizeof(*connection));

		if (!connection) {
			close(fd);
			continue;
		}
		connection->fd = fd;
		connection->last = connection->writing = false;
		connection->skip = connection->owed = connection->have = 0;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		watch(EPOLL_CTL_ADD, fd, EPOLLIN, connection);
	}
}

static uint16_t listen_on(uint16_t port)
{
	struct sockaddr_in address = {
	        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int on = 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		fail("socket");
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 4096) < 0)
		fail("bind and listen");
	if (getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		fail("getsockname");
	return ntohs(address.sin_port);
}

static void prepare_responses(size_t body_bytes)
{
	char head[64];
	size_t head_bytes = (size_t)snprintf(head, sizeof(head), HEAD_FORMAT, body_bytes), count;

	response_bytes = head_bytes + body_bytes;
	count = BYTES_AT_ONCE_MAX / response_bytes;
	count = count < 1 ? 1 : count > RESPONSES_AT_ONCE_MAX ? RESPONSES_AT_ONCE_MAX : count;
	owed_max = count * response_bytes;
	responses = malloc(owed_max);
	if (!responses)
		fail("malloc");
	for (size_t i = 0; i < count; i++) {
		memcpy(responses + i * response_bytes, head, head_bytes);
		memset(responses + i * response_bytes + head_bytes, 'x', body_bytes);
	}
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];
	size_t body_bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 2;
	pid_t parent = getppid();
	uint16_t port;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return 1;
	if (body_bytes > BODY_BYTES_MAX)
		return 2;
	prepare_responses(body_bytes);
	port = listen_on(argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		fail("epoll_create1");
	watch(EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
	printf("%u\n", port);
	if (fflush(stdout) != 0)
		fail("standard output");
	for (;;) {
		int count = epoll_wait(epoll_fd, events, EVENTS, -1);

		if (count < 0 && errno != EINTR)
			fail("epoll_wait");
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr)
				serve(events[i].data.ptr);
			else
				accept_all();
		}
	}
}
