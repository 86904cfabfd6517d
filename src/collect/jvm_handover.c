/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/jvm_handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Bytes of a hand-over at most: the agent's own limit is 256 MiB of slots. */
#define BYTES_MAX (UINT64_C(1) << 30)
#define DESCRIPTORS (1 + TAILOR_JVM_WAKERS)

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

/* NULL, or why the memory must not be mapped: it could be truncated under us, or is of another size than said. */
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
	return offset % 64 == 0 && offset >= sizeof(struct tailor_jvm_page) && offset <= bytes &&
	       size <= bytes - offset;
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
	jvm->started_ns = constants.started_ns;
	jvm->channel.head = (struct tailor_channel_head *)(void *)((char *)page + constants.head_offset);
	jvm->channel.slots = (struct tailor_event *)(void *)((char *)page + constants.slots_offset);
	jvm->channel.mask = constants.slots - 1;
	jvm->references = 1;
	for (int i = 0; i < TAILOR_JVM_WAKERS; i++)
		jvm->wakers[i] = -1;
	return jvm;
}

/* As map_jvm(), from the descriptors of a hello; those that the JVM keeps are taken out of `descriptors`. */
static struct tailor_jvm *take_jvm(const struct tailor_jvm_hello *hello, int *descriptors, size_t count,
                                   const char **ret_reason)
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

/* Stores up to `size` descriptors of a message, which are the caller's to close; closes the rest. Returns how many
 * came. */
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

enum tailor_jvm_heard tailor_jvm_hear(int fd, int is_attached, struct tailor_jvm **ret_jvm, const char **ret_reason)
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

	length = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (length < 0)
		return errno == EAGAIN || errno == EINTR ? TAILOR_JVM_HEARD_NOTHING : TAILOR_JVM_HEARD_END;
	count = received_descriptors(&message, descriptors, DESCRIPTORS);

	*ret_jvm = NULL;
	if (is_attached)
		*ret_reason = "spoke after its hello";
	else if (length != sizeof(hello) || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
	         hello.magic != TAILOR_JVM_MAGIC)
		*ret_reason = "not an agent";
	else if (hello.version != TAILOR_JVM_VERSION)
		*ret_reason = "agent of another version: use the one that came with this proxy";
	else
		*ret_jvm = take_jvm(&hello, descriptors, count, ret_reason);
	for (size_t i = 0; i < count && i < DESCRIPTORS; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	if (length == 0)
		return TAILOR_JVM_HEARD_END;
	return *ret_jvm ? TAILOR_JVM_HEARD_HELLO : TAILOR_JVM_HEARD_NONSENSE;
}
