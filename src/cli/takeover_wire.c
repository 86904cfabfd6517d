/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/takeover_wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3152564f4c494154) /* "TAILOVR1" in memory on little endian */
#define DESCRIPTORS_MAX (TAKEOVER_LISTENERS_MAX + TAKEOVER_PARTS)

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

int takeover_path(const struct tailor_config *config, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/take-over.sock", config->timelines_path);

	return length > 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

void takeover_descriptors_init(struct takeover_descriptors *descriptors)
{
	memset(descriptors, -1, sizeof(*descriptors));
	descriptors->listeners = 0;
}

void takeover_descriptors_close(struct takeover_descriptors *descriptors)
{
	for (unsigned int i = 0; i < descriptors->listeners; i++) {
		if (descriptors->listener[i] >= 0)
			close(descriptors->listener[i]);
	}
	for (unsigned int i = 0; i < TAKEOVER_PARTS; i++) {
		if (descriptors->part[i] >= 0)
			close(descriptors->part[i]);
	}
	takeover_descriptors_init(descriptors);
}

static void attach(struct msghdr *header, union control *control, const int *fds, size_t count)
{
	struct cmsghdr *rights = &control->align;

	memset(control, 0, sizeof(*control));
	header->msg_control = control;
	header->msg_controllen = CMSG_SPACE(count * sizeof(*fds));
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(count * sizeof(*fds));
	memcpy(CMSG_DATA(rights), fds, count * sizeof(*fds));
}

int takeover_send(int fd, enum takeover_kind kind, uint32_t parts, const char *text, const struct takeover_descriptors *descriptors)
{
	struct takeover_message message = {
		.magic = MAGIC, .version = TAKEOVER_VERSION, .kind = kind, .parts = parts, .uid = (uint32_t)geteuid(), .pid = (uint32_t)getpid()};
	struct iovec bytes = {.iov_base = &message, .iov_len = sizeof(message)};
	struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};
	int fds[DESCRIPTORS_MAX];
	union control control;
	size_t count = 0;

	if (text)
		snprintf(message.text, sizeof(message.text), "%s", text);
	if (descriptors) {
		message.listeners = descriptors->listeners;
		for (unsigned int i = 0; i < descriptors->listeners; i++)
			fds[count++] = descriptors->listener[i];
		for (unsigned int i = 0; i < TAKEOVER_PARTS; i++) {
			if (descriptors->part[i] < 0)
				continue;
			message.parts |= 1u << i;
			fds[count++] = descriptors->part[i];
		}
		attach(&header, &control, fds, count);
	}
	return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Returns how many there are. */
static size_t detach(struct msghdr *header, int fds[DESCRIPTORS_MAX])
{
	size_t count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(*fds);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS || here > DESCRIPTORS_MAX - count)
			continue;
		memcpy(fds + count, CMSG_DATA(part), here * sizeof(*fds));
		count += here;
	}
	return count;
}

/* Gives each descriptor its place; false when there are not as many as the message says. */
static bool place(const struct takeover_message *message, const int *fds, size_t count, struct takeover_descriptors *descriptors)
{
	size_t next = 0;

	if (message->kind != TAKEOVER_OFFER || message->listeners > TAKEOVER_LISTENERS_MAX ||
	    message->parts >= 1u << TAKEOVER_PARTS || !descriptors ||
	    count != message->listeners + (unsigned int)__builtin_popcount(message->parts))
		return false;
	descriptors->listeners = message->listeners;
	for (unsigned int i = 0; i < message->listeners; i++)
		descriptors->listener[i] = fds[next++];
	for (unsigned int i = 0; i < TAKEOVER_PARTS; i++) {
		if (message->parts & 1u << i)
			descriptors->part[i] = fds[next++];
	}
	return true;
}

int takeover_receive(int fd, struct takeover_message *ret_message, struct takeover_descriptors *ret_descriptors)
{
	struct iovec bytes = {.iov_base = ret_message, .iov_len = sizeof(*ret_message)};
	union control control;
	struct msghdr header = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fds[DESCRIPTORS_MAX];
	ssize_t length;
	size_t count;

	if (ret_descriptors)
		takeover_descriptors_init(ret_descriptors);
	do
		length = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	count = detach(&header, fds);
	if (length == 0)
		return -ECONNRESET;
	if (length == (ssize_t)sizeof(*ret_message) && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && ret_message->magic == MAGIC &&
	    ret_message->version == TAKEOVER_VERSION) {
		ret_message->text[sizeof(ret_message->text) - 1] = '\0';
		if ((count == 0 && ret_message->kind != TAKEOVER_OFFER) || place(ret_message, fds, count, ret_descriptors))
			return 0;
	}
	while (count > 0)
		close(fds[--count]);
	return -EPROTO;
}
