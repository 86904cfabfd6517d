/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/listen.h"

#define BACKLOG 4096

static const char *remedy(int error)
{
	switch (error) {
	case -EADDRINUSE: return "something else listens there; stop it or choose another address";
	case -EADDRNOTAVAIL: return "no interface of this host has that address";
	case -EEXIST: return "that file is no socket; choose another path";
	case -EACCES: return "ports below 1024 need root or CAP_NET_BIND_SERVICE, Unix paths a writable directory";
	default: return tailor_limits_remedy(error) ?: "check the listen address";
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

/* Whether they are where the configuration wants to listen. */
static bool is_at(const struct tailor_address *wanted, const struct tailor_address *there)
{
	uint8_t one[16], other[16];

	if (tailor_address_is_same(wanted, there))
		return true;
	if (wanted->storage.ss_family == AF_UNIX || there->storage.ss_family != wanted->storage.ss_family || tailor_address_port(wanted) != 0)
		return false;
	tailor_address_ip(wanted, one);
	tailor_address_ip(there, other);
	return memcmp(one, other, sizeof(one)) == 0;
}

static int duplicate(const struct tailor_address *address, unsigned int count, const int *sockets, unsigned int socket_count, int *ret_fds)
{
	for (unsigned int i = 0; i < count; i++) {
		if (address->storage.ss_family == AF_UNIX && i > 0)
			ret_fds[i] = ret_fds[0];
		else
			ret_fds[i] = fcntl(sockets[i % socket_count], F_DUPFD_CLOEXEC, 0);
		if (ret_fds[i] < 0)
			return -errno;
	}
	return 0;
}

int listen_adopt(struct tailor_address *address, unsigned int count, const int *sockets, unsigned int socket_count, int *ret_fds,
                 char *error, size_t error_size)
{
	struct tailor_address there = {.length = sizeof(there.storage)};
	char here_text[TAILOR_ADDRESS_TEXT_BYTES], there_text[TAILOR_ADDRESS_TEXT_BYTES];
	int ret;

	for (unsigned int i = 0; i < count; i++)
		ret_fds[i] = -1;
	if (socket_count == 0 || getsockname(sockets[0], (struct sockaddr *)&there.storage, &there.length) != 0) {
		snprintf(error, error_size, "no listening socket was handed over");
		return -EINVAL;
	}
	if (!is_at(address, &there)) {
		snprintf(error, error_size, "listen: is %s, and the running proxy listens on %s; only a restart can change that",
		         tailor_address_format(here_text, address), tailor_address_format(there_text, &there));
		return -EADDRNOTAVAIL;
	}
	if (socket_count > count) {
		snprintf(error, error_size, "workers: %u cannot serve the %u listening sockets of the running proxy; only a restart can lower it",
		         count, socket_count);
		return -EINVAL;
	}
	ret = duplicate(address, count, sockets, socket_count, ret_fds);
	if (ret == 0) {
		*address = there;
		return 0;
	}
	snprintf(error, error_size, "cannot duplicate the listening sockets: %s; raise the limit of open files (ulimit -n)", strerror(-ret));
	listen_close(address, count, ret_fds, true);
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
