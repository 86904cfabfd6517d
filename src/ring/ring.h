/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam to the kernel: asynchronous operations of one thread. ring.c is the only file that knows
 * liburing; a fake with the same functions replaces it in tests.
 *
 * A ring belongs to one thread, which alone calls these functions (IORING_SETUP_SINGLE_ISSUER |
 * DEFER_TASKRUN). Operations are queued and go to the kernel together at the next tailor_ring_wait().
 * Memory given to an operation belongs to the kernel until the operation's completion.
 *
 * Every operation carries a token. Completions of an older generation of the slot are for the caller to count
 * and ignore.
 */
#ifndef TAILOR_RING_RING_H
#define TAILOR_RING_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct tailor_ring;

/* Slot, generation and operation in the 64 bits that io_uring hands back. */
#define TAILOR_TOKEN(slot, generation, operation)                                                   \
	(((uint64_t)(uint32_t)(slot) << 32) | ((uint64_t)((generation) & 0xffffff) << 8) | (uint8_t)(operation))
#define TAILOR_TOKEN_SLOT(token) ((uint32_t)((token) >> 32))
#define TAILOR_TOKEN_GENERATION(token) ((uint32_t)((token) >> 8) & 0xffffff)
#define TAILOR_TOKEN_OPERATION(token) ((uint8_t)(token))

struct tailor_ring_options {
	unsigned int entries;       /* submission queue, power of two, for example 1024 */
	unsigned int buffers;       /* receive buffers shared by all multishot receives, power of two; 0: none */
	unsigned int buffer_bytes;  /* size of each */
	unsigned int buffer_headroom; /* in front of each, for the caller: the kernel never writes there */
};

#define TAILOR_RING_MORE 1   /* the multishot operation goes on */
#define TAILOR_RING_BUFFER 2 /* `buffer` is valid and must be given back */

struct tailor_completion {
	uint64_t token;
	int result; /* bytes, descriptor or 0; negative errno */
	uint32_t flags;
	uint16_t buffer;
};

/*
 * Opens a ring for the calling thread. Returns 0 or a negative errno: -EPERM (kernel.io_uring_disabled or
 * seccomp), -ENOSYS (kernel without io_uring), -EINVAL (kernel older than 6.1), -ENOMEM.
 */
int tailor_ring_open(const struct tailor_ring_options *options, struct tailor_ring **ret_ring);
/* Cancels what is under way, waits for it and frees; NULL is allowed. */
void tailor_ring_close(struct tailor_ring *ring);

/* Says in one line, with the remedy, why tailor_ring_open() returned `error`. Static string. */
const char *tailor_ring_explain(int error);

/*
 * Queue an operation. None of them fails: when the submission queue is full, it is submitted first.
 */
void tailor_ring_accept(struct tailor_ring *ring, int fd, uint64_t token); /* multishot; result: descriptor (non-blocking, close-on-exec) */
void tailor_ring_connect(struct tailor_ring *ring, int fd, const struct sockaddr *address, socklen_t length, uint64_t token); /* address must live until completion */
void tailor_ring_receive(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token);
/* The same for a socket that has most likely nothing to read yet: waits first, and so saves the vain attempt. */
void tailor_ring_receive_later(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token);
/*
 * Receives into ring buffers, one completion a piece, until one comes without TAILOR_RING_MORE. -ENOBUFS ends it when no
 * buffer is free: at the start, or when there is something to read.
 */
void tailor_ring_receive_multishot(struct tailor_ring *ring, int fd, uint64_t token);
void tailor_ring_send(struct tailor_ring *ring, int fd, const void *memory, size_t bytes, int flags, uint64_t token); /* flags: MSG_MORE, MSG_DONTWAIT (-EAGAIN where it would have to wait) or 0; MSG_NOSIGNAL always; may be short */
/* Sends all of it, and completes only if that fails: for few bytes, in memory that outlives the ring's operations. */
void tailor_ring_send_whole(struct tailor_ring *ring, int fd, const void *memory, size_t bytes, uint64_t token);
void tailor_ring_shutdown(struct tailor_ring *ring, int fd, int how, uint64_t token);
void tailor_ring_close_fd(struct tailor_ring *ring, int fd, uint64_t token);
void tailor_ring_read(struct tailor_ring *ring, int fd, void *memory, size_t bytes, uint64_t token); /* eventfds */
void tailor_ring_poll(struct tailor_ring *ring, int fd, uint64_t token); /* multishot: completes each time that fd has become readable */
/* Completes with -ETIME at deadline_ns (CLOCK_MONOTONIC), or -ECANCELED. *deadline_storage holds the kernel's copy until completion. */
struct tailor_ring_deadline { long long seconds, nanoseconds; };
void tailor_ring_timeout(struct tailor_ring *ring, struct tailor_ring_deadline *storage, uint64_t deadline_ns, uint64_t token);
/* Cancels the operation with that token; it completes with -ECANCELED or its own result. `token` completes too. */
void tailor_ring_cancel(struct tailor_ring *ring, uint64_t target, uint64_t token);
/* Completes on another ring with `result` and `token` there (IORING_OP_MSG_RING); no completion here unless it fails. */
void tailor_ring_message(struct tailor_ring *ring, struct tailor_ring *other, uint64_t token, int result);

/* Submits what is queued now, and returns at once. What that completes, or fails to submit, is for the next tailor_ring_wait(). */
void tailor_ring_submit(struct tailor_ring *ring);

/*
 * Submits what is queued and waits until a completion is there or deadline_ns has passed (0: do not wait,
 * UINT64_MAX: no deadline). Returns the number of completions to take, or a negative errno (-EINTR is
 * handled inside).
 */
int tailor_ring_wait(struct tailor_ring *ring, uint64_t deadline_ns);

/* Takes the next completion. Returns 1, or 0 when there is none left. */
int tailor_ring_next(struct tailor_ring *ring, struct tailor_completion *ret_completion);

/* Memory of a ring buffer (options.buffer_bytes long, and the headroom in front of it), and giving it back to the kernel.
 * Until then all of it is the caller's, whatever was received. */
void *tailor_ring_buffer(struct tailor_ring *ring, uint16_t buffer);
void tailor_ring_buffer_return(struct tailor_ring *ring, uint16_t buffer);

#endif /* TAILOR_RING_RING_H */
