/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tailor/store.h>

#include "base/cleanup.h"
#include "base/directory.h"
#include "store/segment.h"

#define STORE_BYTES_MIN (UINT64_C(1) << 20)
#define SEGMENT_BYTES_MAX (UINT64_C(32) << 20)

struct written {
	uint64_t number;
	uint64_t bytes;
};

struct tailor_store_writer {
	int directory;
	int lock;
	int segment; /* -1: the next record starts a new one */
	uint64_t max_bytes;
	uint64_t segment_bytes_max;
	uint64_t total_bytes;
	struct written *segments; /* oldest first; the last is the open one, if one is */
	size_t segment_count;
	size_t segment_capacity;
	uint64_t next_number;
	bool unseen; /* what is there is only looked at when the first record comes: somebody else may still add to it */
};

static int remember(struct tailor_store_writer *writer, uint64_t number, uint64_t bytes)
{
	if (writer->segment_count == writer->segment_capacity) {
		size_t capacity = writer->segment_capacity ? writer->segment_capacity * 2 : 16;
		struct written *more = reallocarray(writer->segments, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		writer->segments = more;
		writer->segment_capacity = capacity;
	}
	writer->segments[writer->segment_count++] = (struct written){number, bytes};
	writer->total_bytes += bytes;
	return 0;
}

static int look_around(struct tailor_store_writer *writer)
{
	cleanup_free uint64_t *numbers = NULL;
	size_t foreign;
	int locked, count, error = 0;

	count = segment_list(writer->directory, &numbers, &foreign, &locked);
	if (count < 0)
		return count;
	if (count == 0 && foreign > 0 && !locked)
		return -EINVAL;
	writer->segment_count = 0;
	writer->total_bytes = 0;
	for (int i = 0; i < count && !error; i++) {
		char name[SEGMENT_NAME_BYTES];
		struct stat status;

		segment_name(name, numbers[i]);
		if (fstatat(writer->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			error = remember(writer, numbers[i], (uint64_t)status.st_size);
		writer->next_number = numbers[i] + 1;
	}
	return error;
}

static int take_lock(struct tailor_store_writer *writer)
{
	writer->lock = openat(writer->directory, STORE_LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (writer->lock < 0)
		return -errno;
	if (flock(writer->lock, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

/* Whether the descriptor is of this directory's lock file. */
static int check_lock(const struct tailor_store_writer *writer)
{
	struct stat here, there;

	if (fstat(writer->lock, &there) != 0 || fstatat(writer->directory, STORE_LOCK_NAME, &here, AT_SYMLINK_NOFOLLOW) != 0)
		return -ESTALE;
	return here.st_dev == there.st_dev && here.st_ino == there.st_ino ? 0 : -ESTALE;
}

/* Opens a directory that is a store, or may become one. */
static int open_directory(const char *path, int *ret_directory)
{
	cleanup_free uint64_t *numbers = NULL;
	size_t foreign;
	int locked, count;

	*ret_directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_directory < 0)
		return errno == ENOTDIR ? -EINVAL : -errno;
	count = segment_list(*ret_directory, &numbers, &foreign, &locked);
	if (count < 0)
		return count;
	return count == 0 && foreign > 0 && !locked ? -EINVAL : 0;
}

int tailor_store_writer_probe(const char *path)
{
	cleanup_close int directory = -1;
	int error = tailor_directory_probe(path);

	if (error)
		return error;
	error = open_directory(path, &directory);
	return error == -ENOENT ? 0 : error;
}

static int open_store(struct tailor_store_writer *writer, const char *path)
{
	int error;

	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -errno;
	/* Before the lock file is made: it would make a store of somebody's directory. */
	error = open_directory(path, &writer->directory);
	if (error)
		return error;
	if (writer->lock >= 0) {
		writer->unseen = true;
		return check_lock(writer);
	}
	error = take_lock(writer);
	return error ? error : look_around(writer);
}

static int open_writer(const char *path, uint64_t max_bytes, int lock, struct tailor_store_writer **ret_writer)
{
	struct tailor_store_writer *writer = calloc(1, sizeof(*writer));
	int error;

	if (!writer)
		return -ENOMEM;
	writer->directory = writer->segment = -1;
	writer->lock = lock;
	writer->next_number = 1;
	writer->max_bytes = max_bytes > STORE_BYTES_MIN ? max_bytes : STORE_BYTES_MIN;
	writer->segment_bytes_max =
	        writer->max_bytes / 8 < SEGMENT_BYTES_MAX ? writer->max_bytes / 8 : SEGMENT_BYTES_MAX;
	error = open_store(writer, path);
	if (error) {
		if (lock >= 0)
			writer->lock = -1; /* the caller's again */
		tailor_store_writer_close(writer);
		return error;
	}
	*ret_writer = writer;
	return 0;
}

int tailor_store_writer_open(const char *path, uint64_t max_bytes, struct tailor_store_writer **ret_writer)
{
	return open_writer(path, max_bytes, -1, ret_writer);
}

int tailor_store_writer_lock(const struct tailor_store_writer *writer)
{
	return writer->lock;
}

int tailor_store_writer_take_over(const char *path, uint64_t max_bytes, int lock, struct tailor_store_writer **ret_writer)
{
	return open_writer(path, max_bytes, lock, ret_writer);
}

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

static void end_segment(struct tailor_store_writer *writer)
{
	if (writer->segment >= 0)
		close(writer->segment);
	writer->segment = -1;
}

static int start_segment(struct tailor_store_writer *writer)
{
	uint8_t header[SEGMENT_HEADER_BYTES] = SEGMENT_MAGIC;
	char name[SEGMENT_NAME_BYTES];
	int error;

	segment_name(name, writer->next_number);
	store_u32(header + 8, SEGMENT_VERSION);
	store_u32(header + 12, 0);
	writer->segment = openat(writer->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (writer->segment < 0)
		return -errno;
	error = write_all(writer->segment, header, sizeof(header));
	if (!error)
		error = remember(writer, writer->next_number, sizeof(header));
	if (error) {
		unlinkat(writer->directory, name, 0);
		end_segment(writer);
		return error;
	}
	writer->next_number++;
	return 0;
}

/* Deletes the oldest segments, never the open one, until `bytes` more fit. */
static void make_room(struct tailor_store_writer *writer, uint64_t bytes)
{
	size_t drop = 0;

	while (drop + (writer->segment >= 0) < writer->segment_count &&
	       writer->total_bytes + bytes > writer->max_bytes) {
		char name[SEGMENT_NAME_BYTES];

		segment_name(name, writer->segments[drop].number);
		if (unlinkat(writer->directory, name, 0) != 0 && errno != ENOENT)
			break;
		writer->total_bytes -= writer->segments[drop++].bytes;
	}
	if (drop > 0) {
		writer->segment_count -= drop;
		memmove(writer->segments, writer->segments + drop, writer->segment_count * sizeof(*writer->segments));
	}
}

/* A record is in the file whole, or not at all. */
static int append(struct tailor_store_writer *writer, const uint8_t *record, size_t bytes)
{
	struct written *current = &writer->segments[writer->segment_count - 1];
	int error = write_all(writer->segment, record, bytes);

	if (!error) {
		current->bytes += bytes;
		writer->total_bytes += bytes;
		return 0;
	}
	if (ftruncate(writer->segment, (off_t)current->bytes) != 0)
		end_segment(writer); /* the torn record stays at this one's end; the next goes to a new one */
	return error;
}

/* Somebody has deleted the open segment: what is written to it now, nobody could read. */
static bool segment_was_deleted(const struct tailor_store_writer *writer)
{
	struct stat status;

	return fstat(writer->segment, &status) == 0 && status.st_nlink == 0;
}

static int append_record(struct tailor_store_writer *writer, const uint8_t *record, size_t bytes)
{
	int error;

	if (bytes + SEGMENT_HEADER_BYTES > writer->max_bytes)
		return -EFBIG;
	if (writer->unseen) {
		error = look_around(writer);
		if (error)
			return error;
		writer->unseen = false;
	}
	if (writer->segment >= 0 &&
	    (writer->segments[writer->segment_count - 1].bytes + bytes > writer->segment_bytes_max ||
	     segment_was_deleted(writer)))
		end_segment(writer);
	make_room(writer, bytes + (writer->segment < 0 ? SEGMENT_HEADER_BYTES : 0));
	if (writer->segment < 0) {
		error = start_segment(writer);
		if (error)
			return error;
	}
	return append(writer, record, bytes);
}

int tailor_store_append(struct tailor_store_writer *writer, const struct tailor_timeline *timeline)
{
	cleanup_free uint8_t *record = NULL;
	size_t bytes;
	int error = record_encode(timeline, &record, &bytes);

	return error ? error : append_record(writer, record, bytes);
}

int tailor_store_append_failover(struct tailor_store_writer *writer, const struct tailor_failover *failover)
{
	cleanup_free uint8_t *record = NULL;
	size_t bytes;
	int error = record_encode_failover(failover, &record, &bytes);

	return error ? error : append_record(writer, record, bytes);
}

void tailor_store_writer_close(struct tailor_store_writer *writer)
{
	if (!writer)
		return;
	end_segment(writer);
	if (writer->lock >= 0)
		close(writer->lock);
	if (writer->directory >= 0)
		close(writer->directory);
	free(writer->segments);
	free(writer);
}
