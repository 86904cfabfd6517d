/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/listen.h"
#include "base/peer.h"

/* Beyond these, the oldest one that has not asked anything yet has to go; libmicrohttpd itself would let the new ones wait. */
#define CONNECTIONS_MAX 16
#define CONNECTIONS_ROOM 64
#define TIMEOUT_S 5
/* How long requests under way may take to be answered when the thread is to end, and how often to look. */
#define REST_MS 200
#define REST_STEP_MS 10

/* Of the daemon's thread alone, which calls everything here. */
struct connection {
	struct connection *next;
	int fd;
	bool asked;   /* a request is here whole, and its answer under way */
	bool evicted; /* is told to end */
};

struct tailor_admin {
	struct connection *connections; /* newest first */
	struct MHD_Daemon *daemon;
	struct tailor_address address;
	int fd; /* listening */
	int daemon_fd; /* a duplicate, while there is a daemon: it may go without harm to the socket */
	bool left;
	tailor_admin_handler *handler;
	tailor_admin_refused *refused;
	void *context;
};

/* Whoever can open the socket's file may speak, but for that its mode may have been changed by hand. */
static bool is_expected(const struct tailor_admin *admin, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *information = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct tailor_peer peer = {0};

	if (admin->address.storage.ss_family != AF_UNIX)
		return true;
	if (information && tailor_peer_get(information->connect_fd, &peer) == 0 && tailor_peer_is_trusted(&peer))
		return true;
	admin->refused(admin->context, peer.pid, peer.uid);
	return false;
}

static struct connection *known(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *information = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return information ? information->socket_context : NULL;
}

/* Who keeps many connections open and asks nothing keeps nobody out. */
static void evict(struct tailor_admin *admin)
{
	struct connection *oldest = NULL;
	unsigned int count = 0;

	for (struct connection *connection = admin->connections; connection; connection = connection->next) {
		if (connection->evicted)
			continue;
		count++;
		if (!connection->asked || !oldest || oldest->asked)
			oldest = connection;
	}
	if (count <= CONNECTIONS_MAX || !oldest)
		return;
	oldest->evicted = true;
	/* The daemon finds it ended and closes it. */
	(void)shutdown(oldest->fd, SHUT_RDWR);
}

static void connected(void *context, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode what)
{
	struct tailor_admin *admin = context;
	const union MHD_ConnectionInfo *information = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *mine = *socket_context, **link = &admin->connections;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		mine = information ? calloc(1, sizeof(*mine)) : NULL;
		if (!mine)
			return;
		*mine = (struct connection){.next = admin->connections, .fd = information->connect_fd};
		*socket_context = admin->connections = mine;
		evict(admin);
		return;
	}
	while (*link && *link != mine)
		link = &(*link)->next;
	if (*link)
		*link = mine->next;
	free(mine);
	*socket_context = NULL;
}

static void answered(void *context, struct MHD_Connection *connection, void **request, enum MHD_RequestTerminationCode why)
{
	struct connection *mine = known(connection);

	(void)context;
	(void)request;
	(void)why;
	if (mine)
		mine->asked = false;
}

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
	if (known(connection))
		known(connection)->asked = true;
	if (is_expected(admin, connection))
		admin->handler(admin->context, method, path, &reply);
	else
		reply = (struct tailor_admin_reply){403, reply.content_type, strdup("only root and the proxy's own user may ask\n"), NULL};
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

int tailor_admin_adopt(const struct tailor_address *address, int fd, struct tailor_admin **ret_admin, char *error, size_t error_size)
{
	struct tailor_admin *admin = calloc(1, sizeof(*admin));

	if (!admin) {
		snprintf(error, error_size, "admin: out of memory");
		close(fd);
		return -ENOMEM;
	}
	*admin = (struct tailor_admin){.address = *address, .fd = fd, .left = true};
	*ret_admin = admin;
	return 0;
}

int tailor_admin_open(const struct tailor_address *address, struct tailor_admin **ret_admin, char *error, size_t error_size)
{
	char text[TAILOR_ADDRESS_TEXT_BYTES];
	int fd = tailor_listen(address, SOCK_STREAM, TAILOR_LISTEN_OWNER);

	if (fd >= 0) {
		int ret = tailor_admin_adopt(address, fd, ret_admin, error, error_size);

		if (ret == 0)
			(*ret_admin)->left = false;
		return ret;
	}
	snprintf(error, error_size, "admin.listen: cannot listen on %s: %s; %s", tailor_address_format(text, address), strerror(-fd),
	         fd == -EADDRINUSE ? "stop what uses it, or choose another"
	         : fd == -EEXIST   ? "that file is no socket; choose another path"
	                           : tailor_limits_remedy(fd) ?: "check the path and its rights");
	return fd;
}

int tailor_admin_listener(const struct tailor_admin *admin)
{
	return admin->fd;
}

int tailor_admin_start(struct tailor_admin *admin, tailor_admin_handler *handler, tailor_admin_refused *refused, void *context, char *error,
                       size_t error_size)
{
	int fd = fcntl(admin->fd, F_DUPFD_CLOEXEC, 0), ret;

	admin->handler = handler;
	admin->refused = refused;
	admin->context = context;
	if (fd >= 0)
		admin->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC, 0, NULL, NULL, answer, admin,
		                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_ROOM,
		                                 MHD_OPTION_NOTIFY_CONNECTION, connected, admin, MHD_OPTION_NOTIFY_COMPLETED, answered, admin,
		                                 MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, MHD_OPTION_END);
	admin->daemon_fd = fd;
	if (admin->daemon)
		return 0;
	ret = errno ? -errno : -ENOMEM;
	snprintf(error, error_size, "admin: cannot start its thread: %s; %s", strerror(-ret),
	         tailor_limits_remedy(ret) ?: "leave `admin` out, or give this process more memory");
	if (fd >= 0)
		close(fd);
	return ret;
}

static bool has_connections(struct MHD_Daemon *daemon)
{
	const union MHD_DaemonInfo *information = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return information && information->num_connections > 0;
}

void tailor_admin_rest(struct tailor_admin *admin)
{
	if (!admin->daemon)
		return;
	/* Alone, stopping would shut down the socket, for whoever else has it, too. */
	(void)MHD_quiesce_daemon(admin->daemon);
	for (int waited_ms = 0; waited_ms < REST_MS && has_connections(admin->daemon); waited_ms += REST_STEP_MS)
		usleep(REST_STEP_MS * 1000);
	MHD_stop_daemon(admin->daemon);
	close(admin->daemon_fd);
	admin->daemon = NULL;
}

void tailor_admin_leave(struct tailor_admin *admin, bool leave)
{
	admin->left = leave;
}

void tailor_admin_stop(struct tailor_admin *admin)
{
	if (!admin)
		return;
	tailor_admin_rest(admin);
	close(admin->fd);
	if (admin->address.storage.ss_family == AF_UNIX && !admin->left)
		unlink(((struct sockaddr_un *)&admin->address.storage)->sun_path);
	free(admin);
}
