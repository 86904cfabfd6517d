/* SPDX-License-Identifier: Apache-2.0 */
#include "base/listen.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG 512

/* 1 when the path is a socket file that nobody listens on any more. */
static int is_stale(const struct tailor_address *address, int type)
{
	const struct sockaddr_un *unix_address = (const struct sockaddr_un *)&address->storage;
	cleanup_close int fd = -1;
	struct stat file;

	if (lstat(unix_address->sun_path, &file) != 0 || !S_ISSOCK(file.st_mode))
		return 0;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)&address->storage, address->length) != 0 && errno == ECONNREFUSED;
}

static int bind_unix(int fd, const struct tailor_address *address, int type)
{
	const struct sockaddr_un *unix_address = (const struct sockaddr_un *)&address->storage;

	/* Before bind(), which creates the file with the socket's mode: there is no moment when others may connect. */
	if (fchmod(fd, 0600) != 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address->storage, address->length) == 0)
		return 0;
	if (errno != EADDRINUSE || !is_stale(address, type))
		return -errno;
	if (unlink(unix_address->sun_path) != 0)
		return -errno;
	return bind(fd, (const struct sockaddr *)&address->storage, address->length) == 0 ? 0 : -errno;
}

int tailor_listen(const struct tailor_address *address, int type)
{
	cleanup_close int fd = socket(address->storage.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error, on = 1;

	if (fd < 0)
		return -errno;
	if (address->storage.ss_family == AF_UNIX) {
		error = bind_unix(fd, address, type);
		if (error)
			return error;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, (const struct sockaddr *)&address->storage, address->length) != 0)
			return -errno;
	}
	if (listen(fd, BACKLOG) != 0)
		return -errno;
	return take_fd(&fd);
}
