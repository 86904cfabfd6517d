/* SPDX-License-Identifier: Apache-2.0 */
#include "config/read.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"

#define FILE_BYTES_MAX (1 << 20)
/* All that a pipe is waited for, as that of a shell's <( ). */
#define PIPE_WAIT_NS (2 * TAILOR_NS_PER_S)

/* Until a pipe has something to read. A reload must not wait for what nobody writes: all else that the proxy does beside serving would, too. */
static int wait_for_pipe(int fd, uint64_t deadline_ns)
{
	struct pollfd pipe = {.fd = fd, .events = POLLIN};
	uint64_t now_ns = tailor_clock_ns();
	int ready;

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	ready = poll(&pipe, 1, (int)((deadline_ns - now_ns) / TAILOR_NS_PER_MS) + 1);
	if (ready < 0 && errno != EINTR)
		return -errno;
	return ready == 0 ? -ETIMEDOUT : 0;
}

int config_read(const char *path, char **ret_text, size_t *ret_length)
{
	uint64_t deadline_ns = tailor_clock_ns() + PIPE_WAIT_NS;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	cleanup_free char *text = NULL;
	size_t length = 0;
	struct stat about;

	if (fd < 0 || fstat(fd, &about) != 0)
		return -errno;
	text = malloc(FILE_BYTES_MAX);
	if (!text)
		return -ENOMEM;
	for (;;) {
		int error = S_ISREG(about.st_mode) ? 0 : wait_for_pipe(fd, deadline_ns);
		ssize_t got;

		if (error)
			return error;
		got = read(fd, text + length, FILE_BYTES_MAX - length);
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (got == 0)
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	if (length == FILE_BYTES_MAX)
		return -EFBIG;
	*ret_text = take_pointer(text);
	*ret_length = length;
	return 0;
}
