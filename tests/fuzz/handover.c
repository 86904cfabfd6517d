/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent hands over on its socket. Proves: any message with any descriptors ends in one verdict, a refusal with
 * a reason; no descriptor is lost; and of what is accepted the head and each slot lie in the memory, apart from each
 * other.
 *
 * The input: 4 bytes about the descriptors, 2 of the memory's size in 64 bytes, 24 of the message, then the memory.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "collect/jvm_handover.h"

#define SHAPE_BYTES 6
#define DESCRIPTORS_MAX 20
#define MEMORY_BYTES_MAX (64 * 1024)

static int make_memory(const uint8_t *data, size_t size, size_t bytes, int sealed)
{
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	require(fd >= 0 && pwrite(fd, data, size < bytes ? size : bytes, 0) >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	require(!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	return fd;
}

static void send_message(int to, const uint8_t *hello, size_t size, const int *descriptors, size_t count)
{
	struct iovec bytes = {.iov_base = (void *)(uintptr_t)hello, .iov_len = size};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (count > 0) {
		struct cmsghdr *part;

		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(part), descriptors, count * sizeof(int));
	}
	require(sendmsg(to, &message, 0) == (ssize_t)size);
}

/* The lowest free one: lower than before where one was lost, for those made here go in order. */
static int next_descriptor(void)
{
	int fd = dup(0);

	require(fd >= 0 && close(fd) == 0);
	return fd;
}

static void check_accepted(const struct tailor_jvm *jvm)
{
	const char *from = (const char *)jvm->page, *head = (const char *)jvm->channel.head;
	const char *slots = (const char *)jvm->channel.slots,
	           *end = slots + (jvm->channel.mask + 1) * sizeof(struct tailor_event);
	uint64_t sum = tailor_channel_end(&jvm->channel);

	require(head >= from + sizeof(*jvm->page) && head + sizeof(*jvm->channel.head) <= from + jvm->bytes);
	require(slots >= from + sizeof(*jvm->page) && end > slots && end <= from + jvm->bytes);
	require(end <= head || slots >= head + sizeof(*jvm->channel.head));
	require((jvm->channel.mask & (jvm->channel.mask + 1)) == 0);
	/* Each is there to be read. */
	for (uint64_t i = 0; i <= jvm->channel.mask; i++)
		sum += jvm->channel.slots[i].sequence;
	__asm__ volatile("" ::"r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int ends[2], descriptors[DESCRIPTORS_MAX], before = next_descriptor();
	const char *reason = NULL;
	struct tailor_jvm *jvm = NULL;
	enum tailor_jvm_heard heard;
	size_t count, hello, bytes;

	if (size < SHAPE_BYTES)
		return 0;
	count = data[0] % (DESCRIPTORS_MAX + 1);
	bytes = ((size_t)data[4] | (size_t)data[5] << 8) * 64 % (MEMORY_BYTES_MAX + 1);
	hello = data[3] & 4 ? 30 : sizeof(struct tailor_jvm_hello);
	hello = hello < size - SHAPE_BYTES ? hello : size - SHAPE_BYTES;
	for (size_t i = 0; i < count; i++) {
		int odd = data[1] % (DESCRIPTORS_MAX + 1) == i;

		if (i == 0 && !odd)
			descriptors[i] =
			        make_memory(data + SHAPE_BYTES + hello, size - SHAPE_BYTES - hello, bytes, data[3] & 1);
		else if (odd && data[2] & 1)
			descriptors[i] = open("/dev/null", O_RDWR | O_CLOEXEC | O_NONBLOCK);
		else
			descriptors[i] = eventfd(0, EFD_CLOEXEC | (odd ? 0 : EFD_NONBLOCK));
	}
	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	send_message(ends[0], data + SHAPE_BYTES, hello, descriptors, count);
	for (size_t i = 0; i < count; i++)
		close(descriptors[i]);
	heard = tailor_jvm_hear(ends[1], data[3] & 2, &jvm, &reason);
	require((heard == TAILOR_JVM_HEARD_HELLO) == (jvm != NULL) && (heard != TAILOR_JVM_HEARD_NONSENSE || reason));
	require(heard != TAILOR_JVM_HEARD_NOTHING && (hello > 0 || heard == TAILOR_JVM_HEARD_END));
	if (jvm) {
		check_accepted(jvm);
		tailor_jvm_unref(jvm);
	}
	close(ends[0]);
	close(ends[1]);
	require(next_descriptor() == before);
	return 0;
}
