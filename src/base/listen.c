/* SPDX-License-Identifier: Apache-2.0 */
#include "base/listen.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG 512

static const char *path_of(const struct tailor_address *address)
{
	return ((const struct sockaddr_un *)&address->storage)->sun_path;
}

static int bind_to(int fd, const struct tailor_address *address)
{
	return bind(fd, (const struct sockaddr *)&address->storage, address->length) == 0 ? 0 : -errno;
}

int tailor_listen_probe(const struct tailor_address *address, int type)
{
	cleanup_close int fd = -1;
	struct stat file;

	if (lstat(path_of(address), &file) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(file.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address->storage, address->length) != 0 &&
	    (errno == ECONNREFUSED || errno == ENOENT))
		return 0;
	return -EADDRINUSE;
}

static int bind_unix(int fd, const struct tailor_address *address, int type, gid_t group)
{
	int error;

	/* Before bind(), which creates the file with the socket's mode: there is no moment when others may connect. */
	if (fchmod(fd, 0600) != 0)
		return -errno;
	error = bind_to(fd, address);
	if (error == -EADDRINUSE) {
		error = tailor_listen_probe(address, type);
		if (error == 0 && unlink(path_of(address)) != 0 && errno != ENOENT)
			error = -errno;
		if (error == 0)
			error = bind_to(fd, address);
	}
	if (error || group == TAILOR_LISTEN_OWNER)
		return error;
	if (lchown(path_of(address), (uid_t)-1, group) == 0 && chmod(path_of(address), 0660) == 0)
		return 0;
	error = -errno;
	unlink(path_of(address));
	return error;
}

int tailor_listen(const struct tailor_address *address, int type, gid_t group)
{
	cleanup_close int fd = socket(address->storage.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error, on = 1;

	if (fd < 0)
		return -errno;
	if (address->storage.ss_family == AF_UNIX) {
		error = bind_unix(fd, address, type, group);
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		error = bind_to(fd, address);
	}
	if (error)
		return error;
	if (listen(fd, BACKLOG) != 0)
		return -errno;
	return take_fd(&fd);
}
