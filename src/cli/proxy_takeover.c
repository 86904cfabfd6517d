/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor proxy --take-over`: the side of the process that takes over. See takeover_wire.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/peer.h"
#include "cli/proxy_run.h"

/* The old process answers between two turns of its loop, but lets go of its admin interface and agents first. */
#define ANSWER_S 30

static const char *remedy(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED: return "no proxy listens there for another to take over; start without --take-over";
	case -EACCES: return "run as root or as that proxy's user";
	case -EAGAIN: return "the running proxy does not answer; look what it does, or stop it and start without --take-over";
	case -ECONNRESET: return "the running proxy has ended, or another one is taking over; look, and try again";
	case -EPROTO: return "the running proxy is of another version, from which this one cannot take over; stop it and start this one";
	default: return "stop the running proxy and start without --take-over";
	}
}

static int complain(const char *what, int error)
{
	proxy_say("cannot take over: %s: %s; %s", what, strerror(-error), remedy(error));
	return error;
}

/* Who listens there must be somebody whose sockets we may trust: what root takes over, root serves on. */
static int connect_to(const char *path, const struct tailor_config *config)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = ANSWER_S};
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct tailor_peer peer;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return -errno;
	if (tailor_peer_get(fd, &peer) != 0 || (!tailor_peer_is_trusted(&peer) && !(config->has_user && peer.uid == config->user)))
		return -EACCES;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return take_fd(&fd);
}

/* Waits for the answer that is due. */
static int expect(struct proxy_predecessor *from, enum takeover_kind kind, struct takeover_message *message)
{
	struct takeover_descriptors *offered = kind == TAKEOVER_OFFER ? &from->offered : NULL;
	int error = takeover_receive(from->fd, message, offered);

	/* Who turns us away and closes may not have read what we sent: that is told before what it says. */
	if (error == -ECONNRESET)
		error = takeover_receive(from->fd, message, offered);
	if (error)
		return complain("waiting for the running proxy", error);
	from->pid = (pid_t)message->pid;
	if (message->kind == (uint32_t)kind)
		return 0;
	if (message->kind != TAKEOVER_FAILED)
		return complain("waiting for the running proxy", -EPROTO);
	proxy_say("cannot take over from pid %d: it says: %s", (int)from->pid, message->text);
	return -ECONNREFUSED;
}

/* Files, sockets and rights are the same user's before and after: what the old one owned, it may have to go on with. */
static int check_user(const struct tailor_config *config, uid_t theirs)
{
	uid_t ours = config->has_user ? config->user : geteuid();

	if (ours == theirs)
		return 0;
	proxy_say("cannot take over: the running proxy runs as user %u, this one would as %u; only a restart can change `user`",
	          (unsigned int)theirs, (unsigned int)ours);
	return -EPERM;
}

int proxy_takeover_begin(struct proxy_run *run)
{
	struct proxy_predecessor *from = &run->predecessor;
	struct takeover_message message;
	char derived[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *path = from->path;
	int error;

	if (!path[0]) {
		error = takeover_path(&run->config, derived, sizeof(derived));
		if (error)
			return complain(run->config.timelines_path, error);
		path = derived;
	}
	from->fd = connect_to(path, &run->config);
	/* So that the same command starts the first one. If there is another one after all, it holds the port. */
	if (path == derived && (from->fd == -ENOENT || from->fd == -ECONNREFUSED)) {
		proxy_say("nobody to take over from at %s: starting as the first one", path);
		from->path = NULL;
		from->fd = -1;
		return 0;
	}
	if (from->fd < 0)
		return complain(path, from->fd);
	error = takeover_send(from->fd, TAKEOVER_HELLO, 0, TAILOR_VERSION, NULL);
	/* Turned away before we spoke: why, it has said. */
	if (error && error != -EPIPE)
		return complain("speaking to the running proxy", error);
	error = expect(from, TAKEOVER_OFFER, &message);
	return error ? error : check_user(&run->config, message.uid);
}

int proxy_takeover_take(struct proxy_run *run, enum takeover_part part, const struct tailor_address *address)
{
	struct proxy_predecessor *from = &run->predecessor;
	struct tailor_address there = {.length = sizeof(there.storage)};
	int fd = from->offered.part[part];

	if (fd < 0)
		return -1;
	if (address) {
		if (getsockname(fd, (struct sockaddr *)&there.storage, &there.length) != 0 || !tailor_address_is_same(address, &there))
			return -1;
	}
	from->offered.part[part] = -1;
	from->taken |= 1u << part;
	return fd;
}

int proxy_takeover_claim(struct proxy_run *run)
{
	struct proxy_predecessor *from = &run->predecessor;
	struct takeover_message message;
	int error;

	if (from->fd < 0)
		return 0;
	error = takeover_send(from->fd, TAKEOVER_READY, from->taken, NULL, NULL);
	return error ? complain("speaking to the running proxy", error) : expect(from, TAKEOVER_YOURS, &message);
}

int proxy_takeover_check(const struct proxy_run *run)
{
	sigset_t pending;

	if (run->predecessor.fd < 0 || sigpending(&pending) != 0 || (!sigismember(&pending, SIGTERM) && !sigismember(&pending, SIGINT)))
		return 0;
	proxy_say("told to stop before it served");
	return -EINTR;
}

void proxy_takeover_finish(struct proxy_run *run)
{
	struct proxy_predecessor *from = &run->predecessor;

	if (from->fd < 0)
		return;
	if (from->taken & 1u << TAKEOVER_ADMIN)
		tailor_admin_leave(run->admin, false);
	if (from->taken & 1u << TAKEOVER_AGENTS)
		tailor_jvm_hub_leave(run->hub, false);
	run->successor.borrowed = false;
	if (takeover_send(from->fd, TAKEOVER_SERVING, 0, NULL, NULL) != 0)
		proxy_say("pid %d, from which this one takes over, has ended meanwhile", (int)from->pid);
	close(from->fd);
	from->fd = -1;
	takeover_descriptors_close(&from->offered);
}

void proxy_takeover_give_up(struct proxy_run *run)
{
	struct proxy_predecessor *from = &run->predecessor;

	takeover_descriptors_close(&from->offered);
	if (from->fd < 0)
		return;
	/* What was said last is why. */
	(void)takeover_send(from->fd, TAKEOVER_FAILED, 0, proxy_said_last(), NULL);
	close(from->fd);
	from->fd = -1;
	if (from->pid)
		proxy_say("pid %d goes on as before", (int)from->pid);
}
