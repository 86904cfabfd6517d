/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/ring.h"

#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define BUFFER_GROUP 0
/* Completions may come in bursts (accepts, a pause's end): room for several per submission. */
#define COMPLETIONS_PER_ENTRY 4

struct tailor_ring {
	struct io_uring uring;
	unsigned int ready; /* completions of the last wait not yet taken */
	struct io_uring_buf_ring *buffer_ring;
	size_t buffer_ring_bytes;
	char *buffers;
	size_t buffers_bytes;
	unsigned int buffer_count;
	unsigned int buffer_bytes;
	unsigned int buffer_headroom;
};

_Static_assert(sizeof(struct tailor_ring_deadline) == sizeof(struct __kernel_timespec),
               "a deadline is the kernel's timespec");

static void buffers_close(struct tailor_ring *ring)
{
	if (ring->buffer_ring)
		munmap(ring->buffer_ring, ring->buffer_ring_bytes);
	if (ring->buffers)
		munmap(ring->buffers, ring->buffers_bytes);
}

static void *map_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int buffers_open(struct tailor_ring *ring, const struct tailor_ring_options *options)
{
	struct io_uring_buf_reg registration = {.ring_entries = options->buffers, .bgid = BUFFER_GROUP};
	int ret;

	if (options->buffers == 0)
		return 0;
	if (options->buffers > 32768 || (options->buffers & (options->buffers - 1)) || options->buffer_bytes == 0)
		return -EINVAL;
	ring->buffer_count = options->buffers;
	ring->buffer_bytes = options->buffer_bytes;
	ring->buffer_headroom = options->buffer_headroom;
	ring->buffer_ring_bytes = options->buffers * sizeof(struct io_uring_buf);
	ring->buffers_bytes = options->buffers * ((size_t)options->buffer_headroom + options->buffer_bytes);
	ring->buffer_ring = map_memory(ring->buffer_ring_bytes);
	ring->buffers = map_memory(ring->buffers_bytes);
	if (!ring->buffer_ring || !ring->buffers)
		return -ENOMEM;
	registration.ring_addr = (uintptr_t)ring->buffer_ring;
	ret = io_uring_register_buf_ring(&ring->uring, &registration, 0);
	if (ret < 0)
		return ret;
	io_uring_buf_ring_init(ring->buffer_ring);
	for (unsigned int i = 0; i < options->buffers; i++)
		tailor_ring_buffer_return(ring, (uint16_t)i);
	return 0;
}

int tailor_ring_open(const struct tailor_ring_options *options, struct tailor_ring **ret_ring)
{
	struct io_uring_params parameters = {
	        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE |
	                 IORING_SETUP_CLAMP,
	        .cq_entries = options->entries * COMPLETIONS_PER_ENTRY,
	};
	struct tailor_ring *ring = calloc(1, sizeof(*ring));
	int ret;

	if (!ring)
		return -ENOMEM;
	ret = io_uring_queue_init_params(options->entries, &ring->uring, &parameters);
	if (ret < 0) {
		free(ring);
		return ret;
	}
	/* Saves the look-up of the ring's descriptor on each enter; without it everything works the same. */
	(void)io_uring_register_ring_fd(&ring->uring);
	ret = buffers_open(ring, options);
	if (ret < 0) {
		tailor_ring_close(ring);
		return ret;
	}
	*ret_ring = ring;
	return 0;
}

void tailor_ring_close(struct tailor_ring *ring)
{
	struct io_uring_sync_cancel_reg everything = {
	        .flags = IORING_ASYNC_CANCEL_ALL | IORING_ASYNC_CANCEL_ANY,
	        .fd = -1,
	        .timeout = {.tv_sec = -1, .tv_nsec = -1},
	};

	if (!ring)
		return;
	/* Memory of operations under way belongs to the kernel: wait until it has let go of all of it. */
	(void)io_uring_submit(&ring->uring);
	(void)io_uring_register_sync_cancel(&ring->uring, &everything);
	(void)io_uring_get_events(&ring->uring);
	io_uring_queue_exit(&ring->uring);
	buffers_close(ring);
	free(ring);
}

/* The next free submission entry; submits first when there is none. */
static struct io_uring_sqe *next_entry(struct tailor_ring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

	while (!sqe) {
		/* -EBUSY means that completions overflowed; flushing them makes room. They stay queued for the next
		 * wait. */
		if (io_uring_submit(&ring->uring) < 0)
			(void)io_uring_get_events(&ring->uring);
		sqe = io_uring_get_sqe(&ring->uring);
	}
	return sqe;
}

/* liburing clears the token in each prepare function: it goes in afterwards. */
#define QUEUE(ring, token, prepare, ...)                                                                               \
	({                                                                                                             \
		struct io_uring_sqe *sqe_ = next_entry(ring);                                                          \
		prepare(sqe_, __VA_ARGS__);                                                                            \
		sqe_->user_data = (token);                                                                             \
		sqe_;                                                                                                  \
	})

void tailor_ring_accept(struct tailor_ring *ring, int fd, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_multishot_accept, fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void tailor_ring_connect(struct tailor_ring *ring, int fd, const struct sockaddr *address, socklen_t length,
                         uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_connect, fd, address, length);
}

void tailor_ring_receive(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_recv, fd, memory, bytes, 0);
}

void tailor_ring_receive_later(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_recv, fd, memory, bytes, 0)->ioprio |= IORING_RECVSEND_POLL_FIRST;
}

void tailor_ring_receive_multishot(struct tailor_ring *ring, int fd, uint64_t token)
{
	struct io_uring_sqe *sqe = QUEUE(ring, token, io_uring_prep_recv_multishot, fd, NULL, 0, 0);

	/*
	 * Not IORING_RECVSEND_POLL_FIRST: when bytes and a reset are there at once, the one wake-up at the start would be used
	 * up by the bytes, and the reset never be told (Linux 6.18).
	 */
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = BUFFER_GROUP;
}

void tailor_ring_send(struct tailor_ring *ring, int fd, const void *memory, size_t bytes, int flags, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_send, fd, memory, bytes, flags | MSG_NOSIGNAL);
}

void tailor_ring_send_whole(struct tailor_ring *ring, int fd, const void *memory, size_t bytes, uint64_t token)
{
	/* MSG_WAITALL: the kernel itself goes on after a short write. */
	QUEUE(ring, token, io_uring_prep_send, fd, memory, bytes, MSG_NOSIGNAL | MSG_WAITALL)->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

void tailor_ring_shutdown(struct tailor_ring *ring, int fd, int how, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_shutdown, fd, how);
}

void tailor_ring_close_fd(struct tailor_ring *ring, int fd, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_close, fd);
}

void tailor_ring_read(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_read, fd, memory, (unsigned int)bytes, (uint64_t)-1);
}

void tailor_ring_poll(struct tailor_ring *ring, int fd, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_poll_multishot, fd, POLLIN);
}

void tailor_ring_timeout(struct tailor_ring *ring, struct tailor_ring_deadline *storage, uint64_t deadline_ns,
                         uint64_t token)
{
	if (deadline_ns > INT64_MAX)
		deadline_ns = INT64_MAX;
	storage->seconds = (long long)(deadline_ns / TAILOR_NS_PER_S);
	storage->nanoseconds = (long long)(deadline_ns % TAILOR_NS_PER_S);
	QUEUE(ring, token, io_uring_prep_timeout, (struct __kernel_timespec *)(void *)storage, 0, IORING_TIMEOUT_ABS);
}

void tailor_ring_cancel(struct tailor_ring *ring, uint64_t target, uint64_t token)
{
	QUEUE(ring, token, io_uring_prep_cancel64, target, 0);
}

void tailor_ring_message(struct tailor_ring *ring, struct tailor_ring *other, uint64_t token, int result)
{
	struct io_uring_sqe *sqe =
	        QUEUE(ring, token, io_uring_prep_msg_ring, other->uring.ring_fd, (unsigned int)result, token, 0);

	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

void tailor_ring_submit(struct tailor_ring *ring)
{
	(void)io_uring_submit(&ring->uring);
}

/* Submits and waits at most `timeout`, NULL for as long as it takes. */
static int submit_and_wait(struct tailor_ring *ring, struct __kernel_timespec *timeout)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_submit_and_wait_timeout(&ring->uring, &cqe, 1, timeout, NULL);

	return ret < 0 ? ret : 0;
}

int tailor_ring_wait(struct tailor_ring *ring, uint64_t deadline_ns)
{
	int ret;

	do {
		struct __kernel_timespec timeout = {0};
		uint64_t now;

		if (deadline_ns == UINT64_MAX) {
			ret = submit_and_wait(ring, NULL);
		} else if (deadline_ns == 0 || deadline_ns <= (now = tailor_clock_ns())) {
			ret = io_uring_submit_and_get_events(&ring->uring);
		} else {
			timeout.tv_sec = (long long)((deadline_ns - now) / TAILOR_NS_PER_S);
			timeout.tv_nsec = (long long)((deadline_ns - now) % TAILOR_NS_PER_S);
			ret = submit_and_wait(ring, &timeout);
		}
	} while (ret == -EINTR);
	/* -EBUSY and -EAGAIN: the kernel wants completions taken, or memory back, before it accepts more; what was
	 * queued stays queued for the next call. */
	if (ret < 0 && ret != -ETIME && ret != -EBUSY && ret != -EAGAIN)
		return ret;
	ring->ready = io_uring_cq_ready(&ring->uring);
	return (int)ring->ready;
}

int tailor_ring_next(struct tailor_ring *ring, struct tailor_completion *ret_completion)
{
	struct io_uring_cqe *cqe;

	if (ring->ready == 0)
		return 0;
	ring->ready--;
	if (io_uring_peek_cqe(&ring->uring, &cqe) != 0)
		return 0;
	ret_completion->token = cqe->user_data;
	ret_completion->result = cqe->res;
	ret_completion->flags = 0;
	ret_completion->buffer = 0;
	if (cqe->flags & IORING_CQE_F_MORE)
		ret_completion->flags |= TAILOR_RING_MORE;
	if (cqe->flags & IORING_CQE_F_BUFFER) {
		ret_completion->flags |= TAILOR_RING_BUFFER;
		ret_completion->buffer = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
	}
	io_uring_cqe_seen(&ring->uring, cqe);
	return 1;
}

void *tailor_ring_buffer(struct tailor_ring *ring, uint16_t buffer)
{
	return ring->buffers + buffer * ((size_t)ring->buffer_headroom + ring->buffer_bytes) + ring->buffer_headroom;
}

void tailor_ring_buffer_return(struct tailor_ring *ring, uint16_t buffer)
{
	io_uring_buf_ring_add(ring->buffer_ring, tailor_ring_buffer(ring, buffer), ring->buffer_bytes, buffer,
	                      io_uring_buf_ring_mask(ring->buffer_count), 0);
	io_uring_buf_ring_advance(ring->buffer_ring, 1);
}
