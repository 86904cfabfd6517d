/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/jvm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG 64
/* Peers that have connected but not yet said hello. An agent says it at once, so beyond these the oldest must go. */
#define SILENT_MAX 32
/* Bytes of a hand-over at most: the agent's own limit is 256 MiB of slots. */
#define BYTES_MAX (UINT64_C(1) << 30)
#define DESCRIPTORS (1 + TAILOR_JVM_WAKERS)

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
	struct sockaddr_un address;
	dev_t device; /* of the socket file, so that only our own is removed */
	ino_t inode;
	struct peer *peers; /* newest first */
};

struct tailor_jvm *tailor_jvm_ref(struct tailor_jvm *jvm)
{
	__atomic_fetch_add(&jvm->references, 1, __ATOMIC_RELAXED);
	return jvm;
}

void tailor_jvm_unref(struct tailor_jvm *jvm)
{
	if (!jvm || __atomic_sub_fetch(&jvm->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		if (jvm->wakers[i] >= 0)
			close(jvm->wakers[i]);
	munmap(jvm->page, jvm->bytes);
	free(jvm);
}

/* --- what a peer hands over ------------------------------------------------------------------------ */

/* NULL, or why the memory is not one of ours to map: it could be truncated under us, or is of another size than said. */
static const char *memory_fault(int fd, uint64_t bytes)
{
	struct stat status;
	int seals;

	if (bytes < sizeof(struct tailor_jvm_page) + sizeof(struct tailor_channel_head) + sizeof(struct tailor_event) ||
	    bytes > BYTES_MAX)
		return "hello states an impossible size";
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || (uint64_t)status.st_size != bytes)
		return "memory is not of the size that the hello states";
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return "memory is not sealed against shrinking";
	return NULL;
}

/* NULL, or why a worker could block on the waker or spin on it. */
static const char *waker_fault(int fd)
{
	char link[40], target[40];
	ssize_t length;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || !(flags & O_NONBLOCK))
		return "a waker blocks";
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target) - 1);
	if (length < 0)
		return "a waker cannot be looked at: /proc is needed";
	target[length] = 0;
	return strcmp(target, "anon_inode:[eventfd]") == 0 ? NULL : "a waker is no eventfd";
}

/* Whether [offset, offset + size) lies behind the page and inside the memory, on cache lines of its own. */
static int lies_within(uint64_t offset, uint64_t size, uint64_t bytes)
{
	return offset % 64 == 0 && offset >= sizeof(struct tailor_jvm_page) && offset <= bytes && size <= bytes - offset;
}

/* Checks a copy of the page's constants; NULL or what is wrong with them. */
static const char *page_fault(const struct tailor_jvm_page *page, const struct tailor_jvm_hello *hello)
{
	const uint64_t head_bytes = sizeof(struct tailor_channel_head), slot_bytes = sizeof(struct tailor_event);

	if (page->magic != TAILOR_JVM_MAGIC || page->version != TAILOR_JVM_VERSION)
		return "page is not of this version";
	if (page->bytes != hello->bytes || page->pid != hello->pid)
		return "page and hello differ";
	if (!page->slots || (page->slots & (page->slots - 1)) || page->slots > BYTES_MAX / slot_bytes)
		return "number of slots is no power of two, or too big";
	if (!lies_within(page->head_offset, head_bytes, hello->bytes) ||
	    !lies_within(page->slots_offset, page->slots * slot_bytes, hello->bytes))
		return "channel lies outside the memory";
	if (page->head_offset < page->slots_offset + page->slots * slot_bytes &&
	    page->slots_offset < page->head_offset + head_bytes)
		return "channel's head and slots overlap";
	return NULL;
}

/* Maps checked memory. Returns the JVM with one reference and without wakers, or NULL and the reason. */
static struct tailor_jvm *map_jvm(const struct tailor_jvm_hello *hello, int memory, const char **ret_reason)
{
	struct tailor_jvm_page constants;
	struct tailor_jvm *jvm;
	void *page;

	*ret_reason = memory_fault(memory, hello->bytes);
	if (*ret_reason)
		return NULL;
	*ret_reason = "no memory";
	page = mmap(NULL, hello->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
	if (page == MAP_FAILED)
		return NULL;
	/* The peer can change the page at any time: copied once, checked, and only the copy is believed. */
	memcpy(&constants, page, sizeof(constants));
	*ret_reason = page_fault(&constants, hello);
	jvm = *ret_reason ? NULL : calloc(1, sizeof(*jvm));
	if (!jvm) {
		munmap(page, hello->bytes);
		return NULL;
	}
	jvm->page = page;
	jvm->bytes = hello->bytes;
	jvm->own_pid = constants.pid;
	jvm->channel.head = (struct tailor_channel_head *)(void *)((char *)page + constants.head_offset);
	jvm->channel.slots = (struct tailor_event *)(void *)((char *)page + constants.slots_offset);
	jvm->channel.mask = constants.slots - 1;
	jvm->references = 1;
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		jvm->wakers[i] = -1;
	return jvm;
}

/* As map_jvm(), from the descriptors of a hello; those that the JVM keeps are taken out of `descriptors`. */
static struct tailor_jvm *take_jvm(const struct tailor_jvm_hello *hello, int *descriptors, size_t count, const char **ret_reason)
{
	struct tailor_jvm *jvm;

	*ret_reason = "hello without its memory and wakers";
	if (count != DESCRIPTORS)
		return NULL;
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++) {
		*ret_reason = waker_fault(descriptors[1 + i]);
		if (*ret_reason)
			return NULL;
	}
	jvm = map_jvm(hello, descriptors[0], ret_reason);
	for (int i = 0; jvm && i < TAILOR_JVM_WAKERS; i++)
		jvm->wakers[i] = take_fd(&descriptors[1 + i]);
	return jvm;
}

/* Stores up to `size` descriptors of a message, which are the caller's to close; closes the rest. Returns how many came. */
static size_t received_descriptors(struct msghdr *message, int *descriptors, size_t size)
{
	size_t count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
			if (count < size)
				descriptors[count] = fd;
			else
				close(fd);
			count++;
		}
	}
	return count;
}

enum heard {
	HEARD_NOTHING,
	HEARD_HELLO,
	HEARD_END,
	HEARD_NONSENSE,
};

/* Reads one message of the peer; on HEARD_HELLO *ret_jvm has what it handed over, on HEARD_NONSENSE *ret_reason why not. */
static enum heard hear(const struct peer *peer, struct tailor_jvm **ret_jvm, const char **ret_reason)
{
	struct tailor_jvm_hello hello;
	struct iovec bytes = {.iov_base = &hello, .iov_len = sizeof(hello)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control;
	struct msghdr message = {
	        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int descriptors[DESCRIPTORS];
	size_t count;
	ssize_t length;

	length = recvmsg(peer->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (length < 0)
		return errno == EAGAIN || errno == EINTR ? HEARD_NOTHING : HEARD_END;
	count = received_descriptors(&message, descriptors, DESCRIPTORS);

	*ret_jvm = NULL;
	if (peer->jvm)
		*ret_reason = "spoke after its hello";
	else if (length != sizeof(hello) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || hello.magic != TAILOR_JVM_MAGIC)
		*ret_reason = "not an agent";
	else if (hello.version != TAILOR_JVM_VERSION)
		*ret_reason = "agent of another version: use the one that came with this proxy";
	else
		*ret_jvm = take_jvm(&hello, descriptors, count, ret_reason);
	for (size_t i = 0; i < count && i < DESCRIPTORS; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	if (length == 0)
		return HEARD_END;
	return *ret_jvm ? HEARD_HELLO : HEARD_NONSENSE;
}

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

	switch (hear(peer, &jvm, &reason)) {
	case HEARD_NOTHING:
		return;
	case HEARD_HELLO:
		jvm->pid = peer->pid;
		peer->jvm = jvm;
		if (hub->events.attached)
			hub->events.attached(hub->events.context, jvm);
		return;
	case HEARD_NONSENSE:
		refuse_peer(hub, peer->pid, reason);
		drop_peer(hub, peer);
		return;
	case HEARD_END:
		drop_peer(hub, peer);
		return;
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
 * Takes ownership of fd. The socket's mode decides who may connect. Root, who may open any socket, and we ourselves are
 * expected; others can only have come because an administrator changed the mode, which we honour only where we are root and could
 * look into their processes anyway. (They can hand over nothing that harms us, but they could lie about pauses.)
 */
static void admit_peer(struct tailor_jvm_hub *hub, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct ucred credentials = {0};
	socklen_t length = sizeof(credentials);
	struct peer *peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0 ||
	    (credentials.uid != 0 && credentials.uid != geteuid() && geteuid() != 0)) {
		refuse_peer(hub, credentials.pid, "runs as another user than the proxy");
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
	for (int i = 0; i < BACKLOG; i++) {
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

/* 0 if the socket file is left over from a dead proxy, -EADDRINUSE if somebody listens, -EEXIST if it is no socket. */
static int probe_stale(const struct sockaddr_un *address)
{
	cleanup_close int fd = -1;
	struct stat status;

	if (lstat(address->sun_path, &status) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 && (errno == ECONNREFUSED || errno == ENOENT))
		return 0;
	return -EADDRINUSE;
}

static int bind_and_listen(int fd, const struct sockaddr_un *address)
{
	int result;

	/* Before bind: the socket's own mode is what the file gets, so there is no moment at which others could connect. */
	if (fchmod(fd, 0600) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		if (errno != EADDRINUSE)
			return -errno;
		result = probe_stale(address);
		if (result < 0)
			return result;
		if ((unlink(address->sun_path) < 0 && errno != ENOENT) ||
		    bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
			return -errno;
	}
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

static const char *remedy(int error)
{
	switch (error) {
	case -EADDRINUSE: return "another proxy listens there; stop it, or give this one a path of its own";
	case -EEXIST: return "the file there is no socket; remove it, or choose another path";
	case -EACCES:
	case -EPERM: return "choose a directory this user may write to, or run as its owner";
	case -ENOENT: return "create its directory first";
	case -ENAMETOOLONG: return "a socket's path has at most 107 bytes; choose a shorter one";
	case -EMFILE:
	case -ENFILE: return "raise RLIMIT_NOFILE";
	default: return "see unix(7)";
	}
}

static int open_hub(const char *path, struct tailor_jvm_hub *hub)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	struct stat status;
	int result;

	if (strlen(path) >= sizeof(hub->address.sun_path))
		return -ENAMETOOLONG;
	if (!path[0])
		return -ENOENT;
	hub->address.sun_family = AF_UNIX;
	strcpy(hub->address.sun_path, path);

	hub->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	hub->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	hub->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (hub->epoll_fd < 0 || hub->listen_fd < 0)
		return -errno;
	result = bind_and_listen(hub->listen_fd, &hub->address);
	if (result < 0)
		return result;
	if (lstat(path, &status) < 0)
		return -errno;
	hub->device = status.st_dev;
	hub->inode = status.st_ino;
	return epoll_ctl(hub->epoll_fd, EPOLL_CTL_ADD, hub->listen_fd, &event) < 0 ? -errno : 0;
}

int tailor_jvm_hub_open(const char *path, const struct tailor_jvm_events *events, struct tailor_jvm_hub **ret_hub,
                        char *error, size_t error_size)
{
	struct tailor_jvm_hub *hub = calloc(1, sizeof(*hub));
	int result = -ENOMEM;

	if (hub) {
		hub->epoll_fd = hub->listen_fd = hub->spare_fd = -1;
		hub->events = *events;
		result = open_hub(path, hub);
		if (result == 0) {
			*ret_hub = hub;
			return 0;
		}
		tailor_jvm_hub_close(hub);
	}
	if (error_size)
		snprintf(error, error_size, "cannot listen for JVM agents on %s: %s; %s", path, strerror(-result), remedy(result));
	return result;
}

void tailor_jvm_hub_close(struct tailor_jvm_hub *hub)
{
	struct stat status;

	while (hub->peers)
		drop_peer(hub, hub->peers);
	if (hub->inode && lstat(hub->address.sun_path, &status) == 0 && status.st_dev == hub->device &&
	    status.st_ino == hub->inode)
		unlink(hub->address.sun_path);
	if (hub->listen_fd >= 0)
		close(hub->listen_fd);
	if (hub->epoll_fd >= 0)
		close(hub->epoll_fd);
	if (hub->spare_fd >= 0)
		close(hub->spare_fd);
	free(hub);
}
