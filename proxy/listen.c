/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/listen.h"

#define BACKLOG 4096

static const char *remedy(int error)
{
	switch (error) {
	case -EADDRINUSE: return "something else listens there; stop it or choose another address";
	case -EADDRNOTAVAIL: return "no interface of this host has that address";
	case -EEXIST: return "that file is no socket; choose another path";
	case -EACCES: return "ports below 1024 need root or CAP_NET_BIND_SERVICE, Unix paths a writable directory";
	case -EMFILE: return "raise the limit of open files (ulimit -n)";
	default: return "check the listen address";
	}
}

static int open_one(const struct tailor_address *address, bool share_port, int *ret_fd)
{
	cleanup_close int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (share_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address->storage, address->length) != 0)
		return -errno;
	if (listen(fd, BACKLOG) != 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int open_unix(const struct tailor_address *address, unsigned int count, int *ret_fds)
{
	int ret = open_one(address, false, &ret_fds[0]);

	if (ret == -EADDRINUSE) {
		/* A socket file that nobody listens on any more is in nobody's way. */
		ret = tailor_listen_probe(address, SOCK_STREAM);
		if (ret == 0)
			unlink(((const struct sockaddr_un *)&address->storage)->sun_path);
		if (ret == 0)
			ret = open_one(address, false, &ret_fds[0]);
	}
	for (unsigned int i = 1; ret == 0 && i < count; i++)
		ret_fds[i] = ret_fds[0];
	return ret;
}

static int open_tcp(struct tailor_address *address, unsigned int count, int *ret_fds)
{
	int ret = 0;

	if (tailor_address_port(address) != 0) {
		int probe = -1;

		/* Sockets that share a port do so with those of other processes of this user too, another Tailor
		 * among them: one that does not share finds out. */
		ret = open_one(address, false, &probe);
		if (ret < 0)
			return ret;
		close(probe);
	}
	for (unsigned int i = 0; i < count; i++) {
		ret = open_one(address, true, &ret_fds[i]);
		if (ret < 0)
			return ret;
		address->length = sizeof(address->storage);
		if (getsockname(ret_fds[i], (struct sockaddr *)&address->storage, &address->length) != 0)
			return -errno;
	}
	return ret;
}

int listen_open(struct tailor_address *address, unsigned int count, int *ret_fds, char *error, size_t error_size)
{
	char text[TAILOR_ADDRESS_TEXT_BYTES];
	int ret;

	for (unsigned int i = 0; i < count; i++)
		ret_fds[i] = -1;
	tailor_address_format(text, address);
	if (address->storage.ss_family == AF_UNIX)
		ret = open_unix(address, count, ret_fds);
	else
		ret = open_tcp(address, count, ret_fds);
	if (ret == 0)
		return 0;
	snprintf(error, error_size, "cannot listen on %s: %s; %s", text, strerror(-ret), remedy(ret));
	for (unsigned int i = 0; i < count; i++) {
		if (ret_fds[i] >= 0 && (i == 0 || ret_fds[i] != ret_fds[0]))
			close(ret_fds[i]);
	}
	return ret;
}

void listen_close(const struct tailor_address *address, unsigned int count, int *fds, bool shared)
{
	bool is_unix = address->storage.ss_family == AF_UNIX;

	if (is_unix && count > 0 && fds[0] >= 0 && !shared)
		unlink(((const struct sockaddr_un *)&address->storage)->sun_path);
	for (unsigned int i = 0; i < count; i++) {
		if (fds[i] < 0 || (is_unix && i > 0))
			continue;
		/* An accept under way keeps the socket open beyond its descriptor. */
		if (!shared)
			(void)shutdown(fds[i], SHUT_RDWR);
		close(fds[i]);
	}
	for (unsigned int i = 0; i < count; i++)
		fds[i] = -1;
}
