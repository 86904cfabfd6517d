/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <tailor/channel.h>

#include "native_thread.h"
#include "notify.h"

/* Linux 6.3: says that the memory is never executed; a sysctl can make it a condition. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Set once by notify_open() and constant from then on, which is why callbacks need no lock to use it. */
static struct {
	struct tailor_jvm_page *page;
	struct tailor_channel channel;
	uint64_t bytes;
	uint32_t pid;
	int memory;
	int waker[TAILOR_JVM_WAKERS];
} notify = {.memory = -1};

void say(const char *format, ...)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	char line[400];
	va_list arguments;
	int length;

	strcpy(line, "tailor-agent: ");
	va_start(arguments, format);
	length = vsnprintf(line + 14, sizeof(line) - 15, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	if ((size_t)length > sizeof(line) - 16)
		length = sizeof(line) - 16;
	line[14 + length] = '\n';
	/* Nor to a pipe whose reader is gone: before the JVM has set its handlers that signal would end it. */
	if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) && !(out.revents & (POLLERR | POLLHUP)))
		if (write(STDERR_FILENO, line, (size_t)length + 15) < 0)
			return;
}

struct tailor_jvm_page *notify_page(void)
{
	return notify.page;
}

void notify_event(struct tailor_event *event, uint32_t tid, uint64_t time_ns, const char *text, uint64_t text_length)
{
	int cpu = sched_getcpu();

	event->cpu = cpu < 0 ? 0 : (uint16_t)cpu;
	event->time_ns = time_ns;
	event->pid = notify.pid;
	event->tid = tid;
	tailor_channel_write(&notify.channel, event, text, text_length);
}

void notify_wake(void)
{
	const uint64_t one = 1;
	int saved = errno;

	/* Pairs with the worker's fence between setting `sleeping` and its last look at the state. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		if (__atomic_load_n(&notify.page->waker[i].sleeping, __ATOMIC_RELAXED))
			/* Fails only with EAGAIN on a counter that is full, and then the worker is woken anyway. */
			if (write(notify.waker[i], &one, sizeof(one)) < 0)
				continue;
	errno = saved;
}

void notify_state(enum tailor_jvm_state state, uint64_t since_ns)
{
	uint64_t before = __atomic_load_n(&notify.page->state, __ATOMIC_RELAXED);

	/* At most two rounds: only VMDeath can come in between, once. */
	while (TAILOR_JVM_STATE_OF(before) != TAILOR_JVM_GONE)
		if (__atomic_compare_exchange_n(&notify.page->state, &before, TAILOR_JVM_STATE(state, since_ns), 0,
		                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return;
}

void notify_gone(void)
{
	notify_state(TAILOR_JVM_GONE, clock_ns());
	notify_wake();
}

bool notify_is_gone(void)
{
	return TAILOR_JVM_STATE_OF(__atomic_load_n(&notify.page->state, __ATOMIC_ACQUIRE)) == TAILOR_JVM_GONE;
}

int notify_hand_over(int fd)
{
	struct tailor_jvm_hello hello = {
	        .magic = TAILOR_JVM_MAGIC, .version = TAILOR_JVM_VERSION, .pid = notify.pid, .bytes = notify.bytes};
	struct iovec bytes = {.iov_base = &hello, .iov_len = sizeof(hello)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE((1 + TAILOR_JVM_WAKERS) * sizeof(int))];
	} control;
	struct msghdr message = {
	        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int descriptors[1 + TAILOR_JVM_WAKERS];
	struct cmsghdr *rights;

	memset(&control, 0, sizeof(control));
	descriptors[0] = notify.memory;
	memcpy(descriptors + 1, notify.waker, sizeof(notify.waker));
	rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(descriptors));
	memcpy(CMSG_DATA(rights), descriptors, sizeof(descriptors));
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void notify_forget_proxy(void)
{
	/* Otherwise every pause would write to the eventfds of workers that died asleep, and a collection would come that nobody keeps
	 * requests from. */
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		__atomic_store_n(&notify.page->waker[i].sleeping, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&notify.page->wants, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&notify.page->wish, 0, __ATOMIC_RELAXED);
}

/*
 * Memory that nobody can truncate under the JVM (that would be SIGBUS in a callback) and that is there before the first
 * pause.
 */
static int create_memory(uint64_t bytes, const char *socket, const char **ret_what)
{
	char name[sizeof(TAILOR_JVM_MEMORY) + NATIVE_THREAD_PATH_BYTES];
	void *memory;

	snprintf(name, sizeof(name), "%s%s", TAILOR_JVM_MEMORY, socket);
	*ret_what = "memfd_create";
	notify.memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (notify.memory < 0 && errno == EINVAL)
		notify.memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (notify.memory < 0)
		return -errno;
	*ret_what = "reserving shared memory";
	if (ftruncate(notify.memory, (off_t)bytes) < 0 || fallocate(notify.memory, 0, 0, (off_t)bytes) < 0)
		return -errno;
	*ret_what = "sealing shared memory";
	if (fcntl(notify.memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	*ret_what = "mapping shared memory";
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, notify.memory, 0);
	if (memory == MAP_FAILED)
		return -errno;
	notify.page = memory;
	notify.bytes = bytes;
	return 0;
}

static int create(uint64_t slots, const char *socket, const char **ret_what)
{
	const uint64_t head_offset = 4096, slots_offset = head_offset + sizeof(struct tailor_channel_head);
	const uint64_t bytes = (slots_offset + slots * sizeof(struct tailor_event) + 4095) & ~UINT64_C(4095);
	struct tailor_jvm_page *page;
	int result;

	notify.pid = (uint32_t)getpid();
	result = create_memory(bytes, socket, ret_what);
	if (result < 0)
		return result;
	*ret_what = "eventfd";
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++) {
		notify.waker[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (notify.waker[i] < 0)
			return -errno;
	}

	page = notify.page;
	page->magic = TAILOR_JVM_MAGIC;
	page->version = TAILOR_JVM_VERSION;
	page->pid = notify.pid;
	page->bytes = bytes;
	page->head_offset = head_offset;
	page->slots_offset = slots_offset;
	page->slots = slots;
	page->started_ns = clock_ns();
	page->state = TAILOR_JVM_STATE(TAILOR_JVM_RUNNING, page->started_ns);
	page->heartbeat_ns = page->started_ns;
	notify.channel.head = (struct tailor_channel_head *)(void *)((char *)page + head_offset);
	notify.channel.slots = (struct tailor_event *)(void *)((char *)page + slots_offset);
	notify.channel.mask = slots - 1;
	return 0;
}

int notify_open(uint64_t slots, const char *socket, const char **ret_what)
{
	int result;

	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		notify.waker[i] = -1;
	result = create(slots, socket, ret_what);
	if (result < 0)
		notify_close();
	return result;
}

void notify_close(void)
{
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		if (notify.waker[i] >= 0)
			close(notify.waker[i]);
	if (notify.page)
		munmap(notify.page, notify.bytes);
	if (notify.memory >= 0)
		close(notify.memory);
	notify.page = NULL;
	notify.memory = -1;
}
