/* SPDX-License-Identifier: Apache-2.0 */
#include "accesslog/accesslog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* What may wait for a slow disk or reader: some 20,000 lines. */
#define WAITING_BYTES (4u << 20)

struct tailor_accesslog {
	char *path;
	enum tailor_accesslog_format format;
	int fd;
	size_t begin, end; /* of what waits in `waiting` */
	bool cut;          /* the file has the first part of a line, of which the rest waits */
	atomic_bool reopen;
	atomic_uint_fast64_t lost;
	char waiting[WAITING_BYTES];
};

static int open_file(const char *path)
{
	/* O_NONBLOCK: a pipe whose reader is slow must not stop the thread that writes. Regular files do not care. */
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);

	return fd < 0 ? -errno : fd;
}

int tailor_accesslog_open(const char *path, enum tailor_accesslog_format format, struct tailor_accesslog **ret_log)
{
	struct tailor_accesslog *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	log->path = strdup(path);
	log->format = format;
	log->fd = log->path ? open_file(path) : -ENOMEM;
	if (log->fd < 0) {
		int error = log->fd;

		free(log->path);
		free(log);
		return error;
	}
	*ret_log = log;
	return 0;
}

void tailor_accesslog_close(struct tailor_accesslog *log)
{
	if (!log)
		return;
	(void)tailor_accesslog_flush(log);
	close(log->fd);
	free(log->path);
	free(log);
}

void tailor_accesslog_add(struct tailor_accesslog *log, const struct tailor_record *record, uint64_t wall_ns)
{
	size_t length;

	if (WAITING_BYTES - log->end < TAILOR_ACCESSLOG_LINE_BYTES && log->begin > 0) {
		memmove(log->waiting, log->waiting + log->begin, log->end - log->begin);
		log->end -= log->begin;
		log->begin = 0;
	}
	length = (log->format == TAILOR_ACCESSLOG_JSON ? tailor_accesslog_format_json : tailor_accesslog_format_text)(
	        record, wall_ns, log->waiting + log->end, WAITING_BYTES - log->end);
	if (length == 0)
		atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
	log->end += length;
}

/*
 * The old file gets the rest of a line that it has begun: the new one is not to begin in the middle of one. What the old one does
 * not take, since its disk is full or its reader has gone, is lost: opening anew is the way out of just that. Returns -EAGAIN
 * while a reader is only slow.
 */
static int end_line(struct tailor_accesslog *log)
{
	while (log->cut) {
		const char *rest = log->waiting + log->begin;
		size_t length = (size_t)((const char *)memchr(rest, '\n', log->end - log->begin) - rest) + 1;
		ssize_t written = write(log->fd, rest, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0 && errno == EAGAIN)
			return -EAGAIN;
		if (written < 0)
			atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
		log->begin += written < 0 ? length : (size_t)written;
		log->cut = written >= 0 && (size_t)written < length;
	}
	return 0;
}

static int reopen(struct tailor_accesslog *log)
{
	int fd = open_file(log->path);

	if (fd < 0)
		return fd; /* the old file is better than none */
	if (end_line(log) != 0) {
		close(fd);
		return 0;
	}
	atomic_store_explicit(&log->reopen, false, memory_order_relaxed);
	close(log->fd);
	log->fd = fd;
	return 0;
}

int tailor_accesslog_flush(struct tailor_accesslog *log)
{
	int error = 0;

	if (atomic_load_explicit(&log->reopen, memory_order_relaxed))
		error = reopen(log);
	while (log->begin < log->end) {
		ssize_t written = write(log->fd, log->waiting + log->begin, log->end - log->begin);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		log->begin += (size_t)written;
		log->cut = log->waiting[log->begin - 1] != '\n';
	}
	log->begin = log->end = 0;
	return error;
}

void tailor_accesslog_reopen(struct tailor_accesslog *log)
{
	atomic_store_explicit(&log->reopen, true, memory_order_relaxed);
}

uint64_t tailor_accesslog_lost(const struct tailor_accesslog *log)
{
	return atomic_load_explicit(&log->lost, memory_order_relaxed);
}
