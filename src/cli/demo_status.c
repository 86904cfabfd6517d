/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/demo.h"

#define STATUS_BYTES_MAX 65536

json_t *demo_status(const char *socket_path)
{
	static const char request[] = "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval timeout = {.tv_sec = 2};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[STATUS_BYTES_MAX + 1], *body;
	size_t length = 0;
	ssize_t got;

	if (fd < 0 || strlen(socket_path) >= sizeof(address.sun_path))
		return NULL;
	strcpy(address.sun_path, socket_path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return NULL;
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(request) - 1)
		return NULL;
	/* The connection's end is the body's end: we asked for that. */
	while (length < STATUS_BYTES_MAX && (got = read(fd, answer + length, STATUS_BYTES_MAX - length)) > 0)
		length += (size_t)got;
	answer[length] = '\0';
	if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
		return NULL;
	body = strstr(answer, "\r\n\r\n");
	return body ? json_loads(body + 4, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}
