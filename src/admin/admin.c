/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/admin.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/listen.h"

#define CONNECTIONS_MAX 16
#define TIMEOUT_S 10

struct tailor_admin {
	struct MHD_Daemon *daemon;
	struct tailor_address address;
	int fd; /* listening; the daemon's, once there is one */
	tailor_admin_handler *handler;
	void *context;
};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
	static int seen;
	struct tailor_admin *admin = context;
	struct tailor_admin_reply reply = {.status = 500, .content_type = "text/plain; charset=utf-8"};
	struct MHD_Response *response;
	enum MHD_Result result;

	(void)version;
	(void)upload;
	/* The first call comes before the body, later ones with parts of it; a body means nothing here. */
	if (!*request) {
		*request = &seen;
		return MHD_YES;
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	admin->handler(admin->context, method, path, &reply);
	if (!reply.body)
		reply.body = strdup("out of memory\n");
	if (!reply.body)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(reply.body), reply.body, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(reply.body);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.content_type);
	if (reply.allow)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, reply.allow);
	result = MHD_queue_response(connection, reply.status, response);
	MHD_destroy_response(response);
	return result;
}

int tailor_admin_open(const struct tailor_address *address, struct tailor_admin **ret_admin, char *error, size_t error_size)
{
	char text[TAILOR_ADDRESS_TEXT_BYTES];
	struct tailor_admin *admin;
	int fd = tailor_listen(address, SOCK_STREAM, TAILOR_LISTEN_OWNER);

	if (fd < 0) {
		snprintf(error, error_size, "admin.listen: cannot listen on %s: %s; %s", tailor_address_format(text, address), strerror(-fd),
		         fd == -EADDRINUSE ? "stop what uses it, or choose another"
		         : fd == -EEXIST   ? "that file is no socket; choose another path"
		                           : "check the path and its rights");
		return fd;
	}
	admin = calloc(1, sizeof(*admin));
	if (!admin) {
		snprintf(error, error_size, "admin: out of memory");
		close(fd);
		return -ENOMEM;
	}
	*admin = (struct tailor_admin){.address = *address, .fd = fd};
	*ret_admin = admin;
	return 0;
}

int tailor_admin_start(struct tailor_admin *admin, tailor_admin_handler *handler, void *context, char *error, size_t error_size)
{
	admin->handler = handler;
	admin->context = context;
	admin->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL, answer, admin,
	                                 MHD_OPTION_LISTEN_SOCKET, admin->fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
	                                 MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, MHD_OPTION_END);
	if (admin->daemon)
		return 0;
	snprintf(error, error_size, "admin: cannot start its thread: %s", strerror(errno));
	return errno ? -errno : -ENOMEM;
}

void tailor_admin_stop(struct tailor_admin *admin)
{
	if (!admin)
		return;
	if (admin->daemon)
		MHD_stop_daemon(admin->daemon); /* closes the socket */
	else
		close(admin->fd);
	if (admin->address.storage.ss_family == AF_UNIX)
		unlink(((struct sockaddr_un *)&admin->address.storage)->sun_path);
	free(admin);
}
