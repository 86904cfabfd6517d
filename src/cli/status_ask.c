/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/status_ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STATUS_BYTES_MAX (256 << 10)

/* The connection's end is the body's end: we ask for that. Returns the length or a negative errno. */
static ssize_t exchange(int fd, char *answer, size_t size)
{
	static const char request[] = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	size_t length = 0;
	ssize_t got;

	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(request) - 1)
		return -EPROTO;
	while ((got = read(fd, answer + length, size - length)) > 0)
		length += (size_t)got;
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return (ssize_t)length;
}

int status_ask(const struct tailor_address *address, json_t **ret_status)
{
	struct timeval timeout = {.tv_sec = 2};
	cleanup_close int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *answer, *body;
	ssize_t length;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (const struct sockaddr *)&address->storage, address->length) < 0)
		return errno == EAGAIN || errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	answer = calloc(1, STATUS_BYTES_MAX + 1);
	if (!answer)
		return -ENOMEM;
	length = exchange(fd, answer, STATUS_BYTES_MAX);
	body = length > 0 && strncmp(answer, "HTTP/1.1 200", 12) == 0 ? strstr(answer, "\r\n\r\n") : NULL;
	*ret_status = body ? json_loads(body + 4, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	free(answer);
	if (length < 0)
		return (int)length;
	return *ret_status ? 0 : -EPROTO;
}
