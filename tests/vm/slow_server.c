/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_server PORT MS: one thread, one connection at a time, that sleeps MS before each answer. For a machine that has nothing
 * but a kernel, this is all of a server that a timeline needs.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void serve(int connection, long ms)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\nok\n";
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	char request[8192];
	size_t used = 0;
	ssize_t got;

	while ((got = recv(connection, request + used, sizeof(request) - 1 - used, 0)) > 0) {
		used += (size_t)got;
		request[used] = '\0';
		if (!strstr(request, "\r\n\r\n"))
			continue;
		nanosleep(&pause, NULL);
		if (send(connection, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
			return;
		used = 0;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), connection, on = 1;

	if (argc != 3) {
		fprintf(stderr, "usage: slow_server PORT MS\n");
		return 2;
	}
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 16) != 0) {
		perror("slow_server");
		return 1;
	}
	while ((connection = accept(listener, NULL, NULL)) >= 0) {
		serve(connection, atol(argv[2]));
		close(connection);
	}
	return 1;
}
