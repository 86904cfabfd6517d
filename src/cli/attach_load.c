/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/printable.h"

#define REPLY_BYTES 4096
#define WAIT_MS 20

/* Milliseconds until then, at most `most`; 0 when it has passed. */
static int left_ms(uint64_t deadline_ns, int most)
{
	uint64_t now_ns = tailor_clock_ns(), left;

	if (now_ns >= deadline_ns)
		return 0;
	left = (deadline_ns - now_ns + TAILOR_NS_PER_MS - 1) / TAILOR_NS_PER_MS;
	return left < (uint64_t)most ? (int)left : most;
}

static int say_silent(const struct attach_jvm *jvm, const char *what, char *error, size_t error_size)
{
	snprintf(error, error_size, "JVM %d %s in time%s", (int)jvm->pid, what,
	         attach_jvm_is_stopped(jvm->pid) ? "; it is stopped, and SIGCONT lets it go on" : "");
	return -ETIMEDOUT;
}

/* The descriptor is readable when the process has ended. */
static int has_ended(const struct attach_jvm *jvm, int wait_ms, char *error, size_t error_size)
{
	struct pollfd end = {.fd = jvm->fd, .events = POLLIN};

	if (poll(&end, 1, wait_ms) <= 0)
		return 0;
	snprintf(error, error_size, "JVM %d has ended meanwhile", (int)jvm->pid);
	return 1;
}

/*
 * Connects to the JVM's socket in the working directory, its /tmp. Whoever may write there can make a socket of that
 * name: it must be the JVM's own. Returns the descriptor; -ENOENT or -ECONNREFUSED where it does not listen.
 */
static int connect_to_jvm(const struct attach_jvm *jvm, char *error, size_t error_size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int r;

	snprintf(address.sun_path, sizeof(address.sun_path), ".java_pid%d", (int)jvm->own_pid);
	r = fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		r = -errno;
	if (r == 0 && peer.pid != jvm->pid) {
		snprintf(error, error_size, "the socket /tmp/%s belongs to process %d, not to JVM %d; remove it",
		         address.sun_path, (int)peer.pid, (int)jvm->pid);
		return -EPERM;
	}
	if (r < 0) {
		snprintf(error, error_size, "cannot connect to /tmp/%s of JVM %d: %s", address.sun_path, (int)jvm->pid,
		         strerror(-r));
		return r;
	}
	return take_fd(&fd);
}

static int may_come(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

static int wait_for_socket(const struct attach_jvm *jvm, uint64_t deadline_ns, char *error, size_t error_size)
{
	for (;;) {
		int r = connect_to_jvm(jvm, error, error_size);

		/* -EAGAIN: others wait there, too. */
		if (r >= 0 || (!may_come(r) && r != -EAGAIN))
			return r;
		if (has_ended(jvm, left_ms(deadline_ns, WAIT_MS), error, error_size))
			return -ESRCH;
		if (tailor_clock_ns() >= deadline_ns)
			return say_silent(jvm, "did not begin to listen", error, error_size);
	}
}

/* What the JVM looks for when it gets the signal, to tell the wish to attach from the one for a thread dump. */
static int make_trigger(const struct attach_jvm *jvm, char *name, size_t size, char *error, size_t error_size)
{
	int fd;

	snprintf(name, size, ".attach_pid%d", (int)jvm->own_pid);
	fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	/* Somebody else attaches just now, or did not clear up: it serves us as well. */
	if (fd >= 0 || errno == EEXIST)
		return 0;
	snprintf(error, error_size, "cannot make /tmp/%s where JVM %d sees it: %s", name, (int)jvm->pid,
	         strerror(errno));
	return -errno;
}

/* Returns a connection to the JVM's listener, which the first one brings up. */
static int reach(const struct attach_jvm *jvm, uint64_t deadline_ns, char *error, size_t error_size)
{
	int pid = (int)jvm->pid, fd = connect_to_jvm(jvm, error, error_size);
	char trigger[32];

	if (!may_come(fd))
		return fd == -EAGAIN ? wait_for_socket(jvm, deadline_ns, error, error_size) : fd;
	if (attach_jvm_refuses_to_listen(jvm->pid)) {
		snprintf(error, error_size,
		         "JVM %d was started with -XX:+DisableAttachMechanism; restart it without, or with -agentpath",
		         pid);
		return -EPERM;
	}
	if (!attach_jvm_catches_quit(jvm->pid)) {
		snprintf(error, error_size,
		         "JVM %d does not take SIGQUIT, which would end it: it is only starting (try again), or was "
		         "started with -Xrs "
		         "(start it with -agentpath)",
		         pid);
		return -EPERM;
	}
	fd = make_trigger(jvm, trigger, sizeof(trigger), error, error_size);
	if (fd < 0)
		return fd;
	if (syscall(SYS_pidfd_send_signal, jvm->fd, SIGQUIT, NULL, 0) < 0) {
		fd = -errno;
		snprintf(error, error_size, "cannot send SIGQUIT to JVM %d: %s", pid, strerror(-fd));
	} else {
		fd = wait_for_socket(jvm, deadline_ns, error, error_size);
	}
	unlink(trigger);
	if (fd == -ETIMEDOUT)
		snprintf(error + strlen(error), error_size - strlen(error),
		         "; if it runs, it may be told not to (-XX:+DisableAttachMechanism, also in "
		         "JAVA_TOOL_OPTIONS): then start it with -agentpath");
	return fd;
}

/* Waits until the socket is ready for `events`. */
static int wait_for(const struct attach_jvm *jvm, int fd, short events, uint64_t deadline_ns, char *error,
                    size_t error_size)
{
	struct pollfd ready = {.fd = fd, .events = events};

	while (poll(&ready, 1, left_ms(deadline_ns, 1000)) <= 0)
		if (tailor_clock_ns() >= deadline_ns)
			return say_silent(jvm, "did not answer (and may yet do what it was asked)", error, error_size);
	return 0;
}

/* "1", "load" and three arguments, each with its end: version 1, which all JVMs speak. */
static int ask(const struct attach_jvm *jvm, int fd, const char *path, const char *options, uint64_t deadline_ns,
               char *error, size_t error_size)
{
	const char *const words[] = {"1", "load", path, "true", options};
	char request[2 * ATTACH_WORD_MAX + 32];
	size_t length = 0, sent = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t word = strlen(words[i]) + 1;

		if (word > ATTACH_WORD_MAX) {
			snprintf(error, error_size,
			         "the JVM takes no words of over %d bytes: shorten the path or the options",
			         ATTACH_WORD_MAX - 1);
			return -E2BIG;
		}
		memcpy(request + length, words[i], word);
		length += word;
	}
	while (sent < length) {
		ssize_t bytes = send(fd, request + sent, length - sent, MSG_NOSIGNAL);
		int r = 0;

		if (bytes >= 0)
			sent += (size_t)bytes;
		else if (errno == EAGAIN)
			r = wait_for(jvm, fd, POLLOUT, deadline_ns, error, error_size);
		else if (errno != EINTR) {
			r = -errno;
			snprintf(error, error_size, "JVM %d closed the connection: %s", (int)jvm->pid, strerror(-r));
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* Its whole answer, cut to the buffer. It closes the connection behind it. */
static int listen_to(const struct attach_jvm *jvm, int fd, char *reply, size_t size, uint64_t deadline_ns, char *error,
                     size_t error_size)
{
	size_t length = 0;

	for (;;) {
		char rest[256];
		int full = length == size - 1;
		ssize_t bytes = recv(fd, full ? rest : reply + length, full ? sizeof(rest) : size - 1 - length, 0);
		int r = 0;

		if (bytes == 0)
			break;
		if (bytes > 0)
			length += full ? 0 : (size_t)bytes;
		else if (errno == EAGAIN)
			r = wait_for(jvm, fd, POLLIN, deadline_ns, error, error_size);
		else if (errno == ECONNRESET)
			break;
		else if (errno != EINTR)
			r = -errno;
		if (r < 0)
			return r;
	}
	reply[length] = 0;
	return 0;
}

/* The first line is the operation's code, which JDK 21 and later leave at 0; what became of the library stands behind.
 */
static int judge(const struct attach_jvm *jvm, char *reply, char *error, size_t error_size)
{
	char *text = strchr(reply, '\n'), *code;
	int value;

	text = text ? text + 1 : reply + strlen(reply);
	code = strstr(text, "return code: ");
	if (code && sscanf(code, "return code: %d", &value) == 1) {
		if (value == 0)
			return 0;
		snprintf(error, error_size,
		         "the agent could not start in JVM %d; the line \"tailor-agent: ...\" on that JVM's stderr "
		         "says why",
		         (int)jvm->pid);
		return -EIO;
	}
	if (strstr(text, "Dynamic agent loading is not enabled")) {
		snprintf(error, error_size,
		         "JVM %d was started with -XX:-EnableDynamicAgentLoading; restart it without, or with "
		         "-agentpath",
		         (int)jvm->pid);
		return -EPERM;
	}
	for (size_t length = strlen(text); length > 0 && text[length - 1] == '\n'; length--)
		text[length - 1] = 0;
	if (*text)
		snprintf(error, error_size, "JVM %d says: %s", (int)jvm->pid, tailor_printable_line(text));
	else
		snprintf(error, error_size,
		         "JVM %d closed the connection without a word; is it another user's, or just ending?",
		         (int)jvm->pid);
	return -EIO;
}

int attach_load(const struct attach_jvm *jvm, const char *path, const char *options, uint64_t deadline_ns, char *error,
                size_t error_size)
{
	char reply[REPLY_BYTES];
	cleanup_close int fd = -1;
	int r;

	if (fchdir(jvm->tmp) < 0) {
		r = -errno;
		snprintf(error, error_size, "cannot enter the /tmp of JVM %d: %s", (int)jvm->pid, strerror(-r));
		return r;
	}
	fd = reach(jvm, deadline_ns, error, error_size);
	if (fd < 0)
		return fd;
	r = ask(jvm, fd, path, options, deadline_ns, error, error_size);
	r = r ?: listen_to(jvm, fd, reply, sizeof(reply), deadline_ns, error, error_size);
	return r ?: judge(jvm, reply, error, error_size);
}
