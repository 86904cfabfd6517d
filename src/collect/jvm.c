/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/jvm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/listen.h"
#include "base/peer.h"
#include "collect/jvm_handover.h"

/* Peers accepted at once, so that those that are there get their turn. */
#define ACCEPTS_MAX 64
/* Peers that have connected but not yet said hello. An agent says it at once, so beyond these the oldest must go. */
#define SILENT_MAX 32

struct peer {
	int fd;
	pid_t pid;
	struct tailor_jvm *jvm; /* NULL until its hello was accepted */
	struct peer *next;
};

struct tailor_jvm_hub {
	int epoll_fd;
	int listen_fd;
	int spare_fd; /* given up for a moment to turn a peer away when the process has no descriptor left */
	struct tailor_jvm_events events;
	struct tailor_address address;
	gid_t group; /* whose members are expected, too; TAILOR_LISTEN_OWNER: none */
	dev_t device; /* of the socket file, so that only our own is removed */
	ino_t inode;
	bool left; /* to another process */
	struct peer *peers; /* newest first */
};

/* --- peers ----------------------------------------------------------------------------------------- */

static void drop_peer(struct tailor_jvm_hub *hub, struct peer *peer)
{
	for (struct peer **at = &hub->peers; *at; at = &(*at)->next)
		if (*at == peer) {
			*at = peer->next;
			break;
		}
	close(peer->fd); /* which takes it out of the epoll set: the descriptor was never duplicated */
	if (peer->jvm) {
		if (hub->events.detached)
			hub->events.detached(hub->events.context, peer->jvm);
		tailor_jvm_unref(peer->jvm);
	}
	free(peer);
}

static void refuse_peer(struct tailor_jvm_hub *hub, pid_t pid, const char *reason)
{
	if (hub->events.refused)
		hub->events.refused(hub->events.context, pid, reason);
}

static void serve_peer(struct tailor_jvm_hub *hub, struct peer *peer)
{
	struct tailor_jvm *jvm;
	const char *reason;

	switch (tailor_jvm_hear(peer->fd, peer->jvm != NULL, &jvm, &reason)) {
	case TAILOR_JVM_HEARD_NOTHING: return;
	case TAILOR_JVM_HEARD_HELLO:
		jvm->pid = peer->pid;
		peer->jvm = jvm;
		if (hub->events.attached)
			hub->events.attached(hub->events.context, jvm);
		return;
	case TAILOR_JVM_HEARD_NONSENSE:
		refuse_peer(hub, peer->pid, reason);
		drop_peer(hub, peer);
		return;
	case TAILOR_JVM_HEARD_END: drop_peer(hub, peer); return;
	}
}

/* Makes room for one more silent peer at the cost of the one that has been silent longest. */
static void limit_silent_peers(struct tailor_jvm_hub *hub)
{
	struct peer *oldest = NULL;
	unsigned int silent = 0;

	for (struct peer *peer = hub->peers; peer; peer = peer->next)
		if (!peer->jvm) {
			oldest = peer;
			silent++;
		}
	if (silent < SILENT_MAX)
		return;
	refuse_peer(hub, oldest->pid, "connected and said nothing");
	drop_peer(hub, oldest);
}

/*
 * Root, who may open any socket, and we ourselves are expected, and so are those for whom the configuration opened the
 * socket. Others can only have come because somebody changed its mode by hand. (They can hand over nothing that harms us, but
 * they could lie about pauses.)
 */
static int is_expected(const struct tailor_jvm_hub *hub, int fd, const struct tailor_peer *peer)
{
	return tailor_peer_is_trusted(peer) || (hub->group != TAILOR_LISTEN_OWNER && tailor_peer_in_group(fd, peer, hub->group));
}

/* Takes ownership of fd. */
static void admit_peer(struct tailor_jvm_hub *hub, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct tailor_peer credentials = {0};
	struct peer *peer;

	if (tailor_peer_get(fd, &credentials) != 0 || !is_expected(hub, fd, &credentials)) {
		refuse_peer(hub, credentials.pid, "runs as another user than the proxy: name a group of theirs as agent.group");
		close(fd);
		return;
	}
	limit_silent_peers(hub);
	peer = calloc(1, sizeof(*peer));
	event.data.ptr = peer;
	if (!peer || epoll_ctl(hub->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		refuse_peer(hub, credentials.pid, "no memory");
		free(peer);
		close(fd);
		return;
	}
	peer->fd = fd;
	peer->pid = credentials.pid;
	peer->next = hub->peers;
	hub->peers = peer;
}

static void accept_peers(struct tailor_jvm_hub *hub)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(hub->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			admit_peer(hub, fd);
			continue;
		}
		if ((errno == EMFILE || errno == ENFILE) && hub->spare_fd >= 0) {
			/* Left in the queue it would keep us readable for ever; turned away, the agent comes back. */
			close(hub->spare_fd);
			fd = accept4(hub->listen_fd, NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0)
				close(fd);
			hub->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
			refuse_peer(hub, 0, "no file descriptor left: raise the proxy's RLIMIT_NOFILE");
			continue;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

void tailor_jvm_hub_dispatch(struct tailor_jvm_hub *hub)
{
	struct epoll_event ready[64];
	int count = epoll_wait(hub->epoll_fd, ready, 64, 0), listening = 0;

	/* Peers first: an agent that comes back leaves before it comes, and accepting may drop a peer. */
	for (int i = 0; i < count; i++) {
		if (ready[i].data.ptr)
			serve_peer(hub, ready[i].data.ptr);
		else
			listening = 1;
	}
	if (listening)
		accept_peers(hub);
}

int tailor_jvm_hub_fd(const struct tailor_jvm_hub *hub)
{
	return hub->epoll_fd;
}

/* --- the socket ------------------------------------------------------------------------------------ */

static const char *remedy(int error)
{
	switch (error) {
	case -EADDRINUSE: return "another proxy listens there; stop it, or give this one a path of its own";
	case -EEXIST: return "the file there is no socket; remove it, or choose another path";
	case -EACCES: return "choose a directory this user may write to, or run as its owner";
	case -EPERM: return "only root or a member of the group may open the socket to it";
	case -ENOENT: return "create its directory first";
	case -ENAMETOOLONG: return "a socket's path has at most 107 bytes; choose a shorter one";
	default: return tailor_limits_remedy(error) ?: "see unix(7)";
	}
}

static int open_hub(const char *path, gid_t group, struct tailor_jvm_hub *hub)
{
	struct stat status;
	struct sockaddr_un *address = (struct sockaddr_un *)&hub->address.storage;

	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	if (!path[0])
		return -ENOENT;
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	hub->address.length = sizeof(*address);
	hub->group = group;

	hub->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	hub->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (hub->epoll_fd < 0)
		return -errno;
	if (hub->listen_fd < 0)
		hub->listen_fd = tailor_listen(&hub->address, SOCK_SEQPACKET, group);
	if (hub->listen_fd < 0)
		return hub->listen_fd;
	if (lstat(path, &status) < 0)
		return -errno;
	hub->device = status.st_dev;
	hub->inode = status.st_ino;
	return tailor_jvm_hub_resume(hub);
}

int tailor_jvm_hub_adopt(int listener, const char *path, gid_t group, const struct tailor_jvm_events *events,
                         struct tailor_jvm_hub **ret_hub, char *error, size_t error_size)
{
	struct tailor_jvm_hub *hub = calloc(1, sizeof(*hub));
	int result = -ENOMEM;

	if (hub) {
		hub->epoll_fd = hub->spare_fd = -1;
		hub->listen_fd = listener;
		hub->left = listener >= 0;
		hub->events = *events;
		result = open_hub(path, group, hub);
		if (result == 0) {
			*ret_hub = hub;
			return 0;
		}
		tailor_jvm_hub_close(hub);
	} else if (listener >= 0) {
		close(listener);
	}
	if (error_size)
		snprintf(error, error_size, "cannot listen for JVM agents on %s: %s; %s", path, strerror(-result),
		         remedy(result));
	return result;
}

int tailor_jvm_hub_open(const char *path, gid_t group, const struct tailor_jvm_events *events,
                        struct tailor_jvm_hub **ret_hub, char *error, size_t error_size)
{
	return tailor_jvm_hub_adopt(-1, path, group, events, ret_hub, error, error_size);
}

int tailor_jvm_hub_listener(const struct tailor_jvm_hub *hub)
{
	return hub->listen_fd;
}

void tailor_jvm_hub_rest(struct tailor_jvm_hub *hub)
{
	(void)epoll_ctl(hub->epoll_fd, EPOLL_CTL_DEL, hub->listen_fd, NULL);
	while (hub->peers)
		drop_peer(hub, hub->peers);
}

int tailor_jvm_hub_resume(struct tailor_jvm_hub *hub)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

	return epoll_ctl(hub->epoll_fd, EPOLL_CTL_ADD, hub->listen_fd, &event) < 0 ? -errno : 0;
}

void tailor_jvm_hub_leave(struct tailor_jvm_hub *hub, bool leave)
{
	hub->left = leave;
}

void tailor_jvm_hub_close(struct tailor_jvm_hub *hub)
{
	const char *path = ((const struct sockaddr_un *)&hub->address.storage)->sun_path;
	struct stat status;

	while (hub->peers)
		drop_peer(hub, hub->peers);
	if (hub->inode && !hub->left && lstat(path, &status) == 0 && status.st_dev == hub->device &&
	    status.st_ino == hub->inode)
		unlink(path);
	if (hub->listen_fd >= 0)
		close(hub->listen_fd);
	if (hub->epoll_fd >= 0)
		close(hub->epoll_fd);
	if (hub->spare_fd >= 0)
		close(hub->spare_fd);
	free(hub);
}
