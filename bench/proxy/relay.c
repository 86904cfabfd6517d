/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under a proxy: a relay on one thread that pairs each client's connection with one of its own to the server
 * and passes bytes on unparsed. What a proxy costs above it is what it does with HTTP; what this costs is the kernel's.
 *
 *   relay SERVER_PORT PORT [BUFFERS]    both ends on 127.0.0.1. BUFFERS, a power of two, should be no less than twice
 *                                       the connections. Ends with its parent.
 *
 * All sockets are in the ring's file table, never among the process's descriptors: pair N's client is in slot N, its
 * server PAIRS further. Each is read by one multishot receive for its whole life, into buffers that all share, and a
 * buffer is sent from where it is. So a request takes two sends, and nothing else is submitted for it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS 4096
#define ENTRIES 4096
#define BUFFERS 256
#define BUFFERS_MAX 32768
/* A response of 16 KiB with its head goes through in one piece. */
#define BUFFER_BYTES (20 * 1024)
#define NONE UINT16_MAX

enum operation { ACCEPT, CONNECT, RECEIVE, SEND, SHUTDOWN, CLOSE };

/* One end of a pair. Its peer is the other one. */
struct end {
	bool starved;   /* its receive ended for want of a buffer */
	bool ended;     /* nothing more comes from it */
	bool shut;      /* nothing more goes to it */
	uint8_t shutdowns; /* under way: they run in another thread, in no order with what is submitted after them */
	/* What is to be sent to it: a list, its first one under way. */
	uint16_t first, last;
	uint32_t sent; /* of the first one */
};

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static char *buffers;
static unsigned int buffer_count = BUFFERS;
static uint16_t next_buffer[BUFFERS_MAX]; /* of the list that it is in */
static uint32_t buffer_used[BUFFERS_MAX];
static struct end ends[2 * PAIRS];
static unsigned int starved_count;
static struct sockaddr_in server = {.sin_family = AF_INET};
static int listener;

static void fail(const char *what, int error)
{
	fprintf(stderr, "relay: %s: %s\n", what, strerror(error));
	exit(1);
}

static unsigned int peer_of(unsigned int slot)
{
	return slot < PAIRS ? slot + PAIRS : slot - PAIRS;
}

static struct io_uring_sqe *entry(void)
{
	struct io_uring_sqe *sqe;

	while ((sqe = io_uring_get_sqe(&ring)) == NULL) {
		int ret = io_uring_submit(&ring);

		if (ret < 0 && ret != -EBUSY && ret != -EAGAIN && ret != -EINTR)
			fail("io_uring_submit", -ret);
	}
	return sqe;
}

/* The prepare functions clear the token: it goes in afterwards. */
static void finish(struct io_uring_sqe *sqe, enum operation operation, unsigned int slot, unsigned int flags)
{
	sqe->flags |= (uint8_t)flags;
	sqe->user_data = (uint64_t)slot << 8 | operation;
}

static void start_accepting(void)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_multishot_accept_direct(sqe, listener, NULL, NULL, 0);
	finish(sqe, ACCEPT, 0, 0);
}

static void start_receiving(unsigned int slot)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_recv_multishot(sqe, (int)slot, NULL, 0, 0);
	finish(sqe, RECEIVE, slot, IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT);
	sqe->buf_group = 0;
}

static char *buffer_at(unsigned int buffer)
{
	return buffers + (size_t)buffer * BUFFER_BYTES;
}

static void return_buffer(unsigned int buffer)
{
	io_uring_buf_ring_add(buffer_ring, buffer_at(buffer), BUFFER_BYTES, (uint16_t)buffer,
	                      io_uring_buf_ring_mask(buffer_count), 0);
	io_uring_buf_ring_advance(buffer_ring, 1);
}

/* MSG_WAITALL: the kernel itself goes on after a short write. */
static void send_first(unsigned int slot)
{
	struct io_uring_sqe *sqe = entry();
	struct end *end = &ends[slot];

	io_uring_prep_send(sqe, (int)slot, buffer_at(end->first) + end->sent, buffer_used[end->first] - end->sent,
	                   MSG_NOSIGNAL | MSG_WAITALL);
	finish(sqe, SEND, slot, IOSQE_FIXED_FILE);
}

static void pass_to(unsigned int slot, uint16_t buffer)
{
	struct end *end = &ends[slot];

	next_buffer[buffer] = NONE;
	if (end->first == NONE) {
		end->first = end->last = buffer;
		end->sent = 0;
		send_first(slot);
	} else {
		next_buffer[end->last] = buffer;
		end->last = buffer;
	}
}

static void shut(unsigned int slot, int how)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_shutdown(sqe, (int)slot, how);
	finish(sqe, SHUTDOWN, slot, IOSQE_FIXED_FILE);
	ends[slot].shutdowns++;
}

static void close_slot(unsigned int slot)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_close_direct(sqe, slot);
	finish(sqe, CLOSE, slot, 0);
}

/* Hands on what one end's end means for the other, and lets go of a pair that is over. */
static void settle(unsigned int slot)
{
	unsigned int client = slot % PAIRS, other = client + PAIRS;

	for (unsigned int i = client; i <= other; i += PAIRS) {
		struct end *to = &ends[peer_of(i)];

		if (ends[i].ended && to->first == NONE && !to->shut) {
			to->shut = true;
			shut(peer_of(i), SHUT_WR);
		}
	}
	if (ends[client].ended && ends[other].ended && ends[client].shut && ends[other].shut &&
	    ends[client].shutdowns == 0 && ends[other].shutdowns == 0) {
		close_slot(other);
		/* Last, since with it the pair's number is free to be given to a new client. */
		close_slot(client);
	}
}

/* Nothing goes to this end any more; what comes from either end is over with it. */
static void broken(unsigned int slot)
{
	struct end *end = &ends[slot];

	while (end->first != NONE) {
		uint16_t buffer = end->first;

		end->first = next_buffer[buffer];
		return_buffer(buffer);
	}
	shut(slot, SHUT_RDWR);
	shut(peer_of(slot), SHUT_RDWR);
}

static void accepted(const struct io_uring_cqe *cqe)
{
	int fd, on = 1, ret;
	struct io_uring_sqe *sqe;
	unsigned int slot;

	if (!(cqe->flags & IORING_CQE_F_MORE))
		start_accepting();
	if (cqe->res < 0)
		return;
	slot = (unsigned int)cqe->res + PAIRS;
	ends[cqe->res] = ends[slot] = (struct end){.first = NONE};
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail("socket", errno);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	ret = io_uring_register_files_update(&ring, slot, &fd, 1);
	if (ret < 0)
		fail("io_uring_register_files_update", -ret);
	close(fd);
	sqe = entry();
	io_uring_prep_connect(sqe, (int)slot, (struct sockaddr *)&server, sizeof(server));
	finish(sqe, CONNECT, slot, IOSQE_FIXED_FILE);
}

static void connected(unsigned int slot, int result)
{
	if (result < 0)
		fail("cannot connect to the server", -result);
	start_receiving(slot);
	start_receiving(peer_of(slot));
}

static void received(unsigned int slot, const struct io_uring_cqe *cqe)
{
	struct end *end = &ends[slot];

	if (cqe->res > 0) {
		uint16_t buffer = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);

		buffer_used[buffer] = (uint32_t)cqe->res;
		if (ends[peer_of(slot)].shut)
			return_buffer(buffer);
		else
			pass_to(peer_of(slot), buffer);
		if (!(cqe->flags & IORING_CQE_F_MORE))
			start_receiving(slot);
		return;
	}
	if (cqe->flags & IORING_CQE_F_BUFFER)
		return_buffer(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
	if (cqe->res == -ENOBUFS) {
		end->starved = true;
		starved_count++;
		return;
	}
	end->ended = true;
	settle(slot);
}

static void sent(unsigned int slot, int result)
{
	struct end *end = &ends[slot];
	uint16_t buffer = end->first;

	if (result <= 0) {
		broken(slot);
		settle(slot);
		return;
	}
	end->sent += (uint32_t)result;
	if (end->sent < buffer_used[buffer]) {
		send_first(slot);
		return;
	}
	end->first = next_buffer[buffer];
	end->sent = 0;
	return_buffer(buffer);
	if (end->first != NONE)
		send_first(slot);
	else if (ends[peer_of(slot)].ended)
		settle(slot);
}

static void feed_starved(void)
{
	for (unsigned int slot = 0; slot < 2 * PAIRS && starved_count > 0; slot++) {
		if (ends[slot].starved) {
			ends[slot].starved = false;
			starved_count--;
			start_receiving(slot);
		}
	}
}

static void complete(const struct io_uring_cqe *cqe)
{
	unsigned int slot = (unsigned int)(cqe->user_data >> 8);

	switch ((enum operation)(cqe->user_data & 0xff)) {
	case ACCEPT: accepted(cqe); break;
	case CONNECT: connected(slot, cqe->res); break;
	case RECEIVE: received(slot, cqe); break;
	case SEND: sent(slot, cqe->res); break;
	case SHUTDOWN:
		ends[slot].shutdowns--;
		settle(slot);
		break;
	case CLOSE: break;
	}
}

static void open_buffers(void)
{
	struct io_uring_buf_reg registration = {.ring_entries = buffer_count, .bgid = 0};
	size_t ring_bytes = buffer_count * sizeof(struct io_uring_buf), bytes = (size_t)buffer_count * BUFFER_BYTES;
	int ret;

	buffer_ring = mmap(NULL, ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	buffers = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (buffer_ring == MAP_FAILED || buffers == MAP_FAILED)
		fail("mmap", errno);
	registration.ring_addr = (uintptr_t)buffer_ring;
	ret = io_uring_register_buf_ring(&ring, &registration, 0);
	if (ret < 0)
		fail("io_uring_register_buf_ring", -ret);
	io_uring_buf_ring_init(buffer_ring);
	for (unsigned int i = 0; i < buffer_count; i++)
		return_buffer(i);
}

static void open_ring(void)
{
	struct io_uring_params parameters = {
	        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
	        .cq_entries = 4 * ENTRIES,
	};
	struct rlimit limit;
	int ret;

	/* The file table may be no larger than the limit. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	ret = io_uring_queue_init_params(ENTRIES, &ring, &parameters);
	if (ret < 0)
		fail("io_uring_queue_init_params", -ret);
	ret = io_uring_register_ring_fd(&ring);
	if (ret < 0)
		fail("io_uring_register_ring_fd", -ret);
	ret = io_uring_register_files_sparse(&ring, 2 * PAIRS);
	if (ret == 0)
		ret = io_uring_register_file_alloc_range(&ring, 0, PAIRS);
	if (ret < 0)
		fail("file table of the ring", -ret);
	open_buffers();
}

static void listen_on(uint16_t port)
{
	struct sockaddr_in address = {
	        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Accepted connections inherit TCP_NODELAY. */
	if (listener < 0 || setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
	    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		fail("socket", errno);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 4096) < 0)
		fail("listen", errno);
}

int main(int argc, char **argv)
{
	pid_t parent = getppid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return 1;
	if (argc > 3)
		buffer_count = (unsigned int)strtoul(argv[3], NULL, 10);
	if (argc < 3 || buffer_count < 2 || buffer_count > BUFFERS_MAX || (buffer_count & (buffer_count - 1))) {
		fprintf(stderr, "usage: relay SERVER_PORT PORT [BUFFERS, a power of two]\n");
		return 2;
	}
	server.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	open_ring();
	listen_on((uint16_t)strtoul(argv[2], NULL, 10));
	start_accepting();
	for (;;) {
		struct io_uring_cqe *cqe;
		unsigned int head, count = 0;
		int ret = io_uring_submit_and_wait(&ring, 1);

		if (ret < 0 && ret != -EINTR && ret != -EBUSY && ret != -EAGAIN)
			fail("io_uring_submit_and_wait", -ret);
		io_uring_for_each_cqe(&ring, head, cqe) {
			complete(cqe);
			count++;
		}
		io_uring_cq_advance(&ring, count);
		if (starved_count > 0)
			feed_starved();
	}
}
