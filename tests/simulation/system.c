/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System and library calls of the proxy that go around the ring: the linker sends them here (--wrap, see
 * CMakeLists.txt). Descriptors that are none of the simulation's go on to the real call.
 */
#include "system.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

int __real_clock_gettime(clockid_t clock, struct timespec *to);
int __real_close(int fd);
ssize_t __real_write(int fd, const void *memory, size_t bytes);
int __wrap_clock_gettime(clockid_t clock, struct timespec *to);
int __wrap_close(int fd);
ssize_t __wrap_write(int fd, const void *memory, size_t bytes);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_listen(int fd, int backlog);
int __wrap_eventfd(unsigned int value, int flags);
ssize_t __wrap_getrandom(void *memory, size_t bytes, unsigned int flags);
int __wrap_usleep(useconds_t us);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_sem_wait(sem_t *semaphore);

static struct descriptor **descriptors;
static size_t descriptor_count, descriptor_size;
static unsigned int open_descriptors;
unsigned int kernel_accepted, kernel_accepted_most;
uint64_t kernel_sends_submitted;

uint64_t system_clock_ns(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TAILOR_NS_PER_S + (uint64_t)now.tv_nsec;
}

int kernel_descriptor_new(enum descriptor_kind kind)
{
	if (descriptor_count == descriptor_size) {
		descriptor_size = descriptor_size ? 2 * descriptor_size : 1024;
		descriptors = realloc(descriptors, descriptor_size * sizeof(*descriptors));
		world_check(descriptors, "out of memory");
	}
	descriptors[descriptor_count] = calloc(1, sizeof(struct descriptor));
	world_check(descriptors[descriptor_count], "out of memory");
	descriptors[descriptor_count]->kind = kind;
	open_descriptors++;
	return KERNEL_FD_FIRST + (int)descriptor_count++;
}

struct descriptor *kernel_descriptor(int fd)
{
	if (fd < KERNEL_FD_FIRST || (size_t)(fd - KERNEL_FD_FIRST) >= descriptor_count)
		return NULL;
	return descriptors[fd - KERNEL_FD_FIRST];
}

unsigned int kernel_open_descriptors(void)
{
	return open_descriptors;
}

void kernel_close(int fd)
{
	struct descriptor *descriptor = kernel_descriptor(fd);

	world_check(descriptor && !descriptor->closed, "descriptor %d is closed twice", fd);
	descriptor->closed = true;
	open_descriptors--;
	if (descriptor->wire) {
		const struct wire *wire = descriptor->wire;

		world_check(!wire->receive && !wire->send && !wire->connect,
		            "descriptor %d is closed while an operation on it is under way", fd);
		kernel_accepted -= wire->accepted;
		wire_proxy_close(descriptor->wire);
	}
	for (size_t i = 0; i < descriptor->backlog_count; i++) {
		struct wire *wire = descriptor->backlog[i];

		wire_open++; /* the kernel accepted it, and throws it away */
		wire->linger_reset = true;
		wire_proxy_close(wire);
	}
	descriptor->backlog_count = 0;
}

void kernel_free(void)
{
	for (size_t i = 0; i < descriptor_count; i++) {
		free(descriptors[i]->backlog);
		free(descriptors[i]);
	}
	free(descriptors);
	descriptors = NULL;
	descriptor_count = descriptor_size = 0;
	open_descriptors = kernel_accepted = kernel_accepted_most = 0;
	kernel_sends_submitted = 0;
}

bool kernel_knock(struct wire *wire)
{
	struct descriptor *listeners[TAILOR_PROXY_WORKERS_MAX];
	struct descriptor *listener;
	unsigned int count = 0;

	for (size_t i = 0; i < descriptor_count && count < TAILOR_PROXY_WORKERS_MAX; i++) {
		if (descriptors[i]->kind == DESCRIPTOR_LISTENER && !descriptors[i]->closed)
			listeners[count++] = descriptors[i];
		/* They are the first. */
		if (i > 2 * TAILOR_PROXY_WORKERS_MAX)
			break;
	}
	if (count == 0)
		return false;
	listener = listeners[world_below(count)];
	if (listener->backlog_count == listener->backlog_size) {
		listener->backlog_size = listener->backlog_size ? 2 * listener->backlog_size : 16;
		listener->backlog = realloc(listener->backlog, listener->backlog_size * sizeof(*listener->backlog));
		world_check(listener->backlog, "out of memory");
	}
	listener->backlog[listener->backlog_count++] = wire;
	kernel_acceptable(listener);
	return true;
}

void kernel_event_add(int fd, uint64_t value)
{
	struct descriptor *descriptor = kernel_descriptor(fd);

	descriptor->events += value;
	kernel_event_readable(descriptor);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *to)
{
	(void)clock;
	/* No two looks show the same. */
	world.now_ns += 30;
	to->tv_sec = (time_t)(world.now_ns / TAILOR_NS_PER_S);
	to->tv_nsec = (long)(world.now_ns % TAILOR_NS_PER_S);
	return 0;
}

int __wrap_close(int fd)
{
	const struct descriptor *descriptor = kernel_descriptor(fd);

	if (!descriptor)
		return __real_close(fd);
	/* Not by the ring: a connection for which there is not even a slot to refuse it in. */
	if (descriptor->wire && descriptor->wire->accepted) {
		world_check(kernel_accepted > world.options.connections_max || world.stopping,
		            "a connection was turned away, and there were only %u", kernel_accepted);
		descriptor->wire->turned_away = true;
	}
	kernel_close(fd);
	return 0;
}

ssize_t __wrap_write(int fd, const void *memory, size_t bytes)
{
	uint64_t value;

	if (!kernel_descriptor(fd))
		return __real_write(fd, memory, bytes);
	world_check(kernel_descriptor(fd)->kind == DESCRIPTOR_EVENT && bytes == sizeof(value), "write to no eventfd");
	memcpy(&value, memory, sizeof(value));
	kernel_event_add(fd, value);
	return (ssize_t)bytes;
}

int __wrap_socket(int domain, int type, int protocol)
{
	(void)protocol;
	world_check(domain == AF_INET && (type & SOCK_NONBLOCK) && (type & SOCK_CLOEXEC), "socket of another kind");
	if (fiber_current() && world.kernel_faults > 0 && world_below(20000) < world.kernel_faults) {
		world.last_refused_ns = world.now_ns;
		errno = EMFILE;
		return -1;
	}
	return kernel_descriptor_new(DESCRIPTOR_SOCKET);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct descriptor *descriptor = kernel_descriptor(fd);

	world_check(descriptor && !descriptor->closed, "setsockopt on descriptor %d, which is closed", fd);
	if (level == SOL_SOCKET && name == SO_LINGER && descriptor->wire) {
		world_check(length == sizeof(struct linger), "SO_LINGER of another size");
		descriptor->wire->linger_reset = ((const struct linger *)value)->l_onoff &&
		                                 ((const struct linger *)value)->l_linger == 0;
	}
	return 0;
}

/* TCP's state as no TCP would tell it: nothing that is made of it may leave its bounds. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	const struct descriptor *descriptor = kernel_descriptor(fd);
	struct tcp_info info = {0};

	world_check(descriptor && !descriptor->closed && descriptor->wire, "getsockopt on descriptor %d", fd);
	world_check(level == IPPROTO_TCP && name == TCP_INFO && *length == sizeof(info), "getsockopt of something else");
	if (world_chance(100)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	info.tcpi_rwnd_limited = world_chance(500) ? world_random() : 0;
	info.tcpi_sndbuf_limited = world_chance(500) ? world_random() : 0;
	info.tcpi_notsent_bytes = (uint32_t)world_below(2);
	info.tcpi_snd_wnd = (uint32_t)world_below(100000);
	memcpy(value, &info, sizeof(info));
	return 0;
}

static void set_address(uint16_t port, struct sockaddr *address, socklen_t *length)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(address, &in, *length < sizeof(in) ? *length : sizeof(in));
	*length = sizeof(in);
}

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct descriptor *descriptor = kernel_descriptor(fd);

	world_check(descriptor && !descriptor->closed && descriptor->wire, "getpeername on descriptor %d", fd);
	if (descriptor->wire->in.reset) {
		errno = ENOTCONN;
		return -1;
	}
	set_address(descriptor->wire->port, address, length);
	return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	struct descriptor *descriptor = kernel_descriptor(fd);

	world_check(descriptor && !descriptor->closed, "getsockname on descriptor %d, which is closed", fd);
	set_address(descriptor->wire ? descriptor->wire->port : KERNEL_LISTEN_PORT, address, length);
	return 0;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)address;
	(void)length;
	world_check(kernel_descriptor(fd), "bind on descriptor %d", fd);
	return 0;
}

int __wrap_listen(int fd, int backlog)
{
	(void)backlog;
	kernel_descriptor(fd)->kind = DESCRIPTOR_LISTENER;
	return 0;
}

int __wrap_eventfd(unsigned int value, int flags)
{
	int fd = kernel_descriptor_new(DESCRIPTOR_EVENT);

	(void)flags;
	kernel_descriptor(fd)->events = value;
	return fd;
}

ssize_t __wrap_getrandom(void *memory, size_t bytes, unsigned int flags)
{
	uint64_t value = world_random();

	(void)flags;
	world_check(bytes == sizeof(value), "getrandom of %zu bytes", bytes);
	memcpy(memory, &value, sizeof(value));
	return (ssize_t)bytes;
}

int __wrap_usleep(useconds_t us)
{
	fiber_sleep(fiber_current(), world.now_ns + us * US);
	return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	(void)attributes;
	*thread = (pthread_t)(uintptr_t)fiber_start(start, argument);
	return 0;
}

/* Time goes on until another thread has done it. */
#define LIVE_UNTIL(condition, what)                                                                                    \
	do {                                                                                                           \
		world_check(!fiber_current(), "a worker waits for another thread");                                    \
		for (uint64_t steps_ = 0; !(condition); steps_++)                                                      \
			world_check(world_step() && steps_ < 20000000, "%s waits for ever", what);                     \
	} while (0)

int __wrap_pthread_join(pthread_t thread, void **result)
{
	const struct fiber *fiber = (const struct fiber *)(uintptr_t)thread;

	(void)result;
	LIVE_UNTIL(fiber_finished(fiber), "pthread_join");
	return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
	return 0;
}

int __wrap_sem_wait(sem_t *semaphore)
{
	LIVE_UNTIL(sem_trywait(semaphore) == 0, "sem_wait");
	return 0;
}
