/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tailor/store.h>

#include "base/cleanup.h"
#include "store/segment.h"

/* A segment larger than any writer makes is read this far. */
#define SEGMENT_READ_MAX (UINT64_C(256) << 20)
/* Checksums tried for one segment while looking for the next whole record behind a damaged one, in bytes. */
#define SEARCH_BYTES_MAX (UINT64_C(256) << 20)

struct tailor_store_reader {
	int directory;   /* -1: a single file is read */
	int file;        /* -1: no segment is open */
	uint64_t number; /* of the open segment, or the last one read */
	uint8_t *bytes;  /* of the segment, read so far */
	size_t used;
	size_t capacity;
	size_t offset; /* of the next record; 0: the file header is still to be checked */
	uint64_t search_left;
	uint64_t bad_records;
	uint64_t bad_bytes; /* in segments that are behind */
};

/* Reads what the segment has grown by. */
static int read_more(struct tailor_store_reader *reader)
{
	for (;;) {
		ssize_t got;

		if (reader->used >= SEGMENT_READ_MAX)
			return 0;
		if (reader->used == reader->capacity) {
			size_t capacity = reader->capacity ? reader->capacity * 2 : 65536;
			uint8_t *more = realloc(reader->bytes, capacity);

			if (!more)
				return -ENOMEM;
			reader->bytes = more;
			reader->capacity = capacity;
		}
		got = pread(reader->file, reader->bytes + reader->used, reader->capacity - reader->used,
		            (off_t)reader->used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		reader->used += (size_t)got;
	}
}

static int header_is_right(const struct tailor_store_reader *reader)
{
	return reader->used >= SEGMENT_HEADER_BYTES && memcmp(reader->bytes, SEGMENT_MAGIC, 8) == 0 &&
	       load_u32(reader->bytes + 8) == SEGMENT_VERSION;
}

static void begin_segment(struct tailor_store_reader *reader, int file)
{
	reader->file = file;
	reader->used = 0;
	reader->offset = 0;
	reader->search_left = SEARCH_BYTES_MAX;
}

/* Opens the segment with the smallest number above the last one. Returns 1, 0 when there is none yet, or a negative
 * errno. */
static int next_segment(struct tailor_store_reader *reader)
{
	cleanup_free uint64_t *numbers = NULL;
	size_t foreign;
	int locked, count;

	if (reader->directory < 0)
		return 0;
	count = segment_list(reader->directory, &numbers, &foreign, &locked);
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		char name[SEGMENT_NAME_BYTES];
		struct stat status;
		int file;

		if (numbers[i] <= reader->number)
			continue;
		segment_name(name, numbers[i]);
		/* Not blocking: somebody may have put a FIFO there. */
		file = openat(reader->directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (file < 0 && errno == ENOENT) /* deleted by the writer meanwhile */
			continue;
		if (file < 0)
			return -errno;
		if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
			/* A directory or a FIFO with a segment's name: hides none of the others. */
			close(file);
			reader->number = numbers[i];
			reader->bad_records++;
			continue;
		}
		/* The writer may have finished the old one just before it started this one. */
		if (reader->file >= 0) {
			size_t used = reader->used;
			int error = read_more(reader);

			if (error || reader->used > used) {
				close(file);
				return error ? error : 1;
			}
			reader->bad_bytes += reader->used - reader->offset;
			close(reader->file);
		}
		begin_segment(reader, file);
		reader->number = numbers[i];
		return 1;
	}
	return 0;
}

static int open_path(struct tailor_store_reader *reader, const char *path)
{
	cleanup_free uint64_t *numbers = NULL;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	size_t foreign;
	int locked, count;

	if (fd < 0 || fstat(fd, &status) != 0)
		return -errno;
	if (S_ISDIR(status.st_mode)) {
		reader->directory = take_fd(&fd);
		count = segment_list(reader->directory, &numbers, &foreign, &locked);
		return count < 0 ? count : count == 0 && foreign > 0 && !locked ? -EINVAL : 0;
	}
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	begin_segment(reader, take_fd(&fd));
	count = read_more(reader);
	return count ? count : header_is_right(reader) ? 0 : -EINVAL;
}

int tailor_store_reader_open(const char *path, struct tailor_store_reader **ret_reader)
{
	struct tailor_store_reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader)
		return -ENOMEM;
	reader->directory = reader->file = -1;
	error = open_path(reader, path);
	if (error) {
		tailor_store_reader_close(reader);
		return error;
	}
	*ret_reader = reader;
	return 0;
}

/*
 * At something that is no whole record: finds the next one behind it. A damaged length cannot be believed, so every
 * offset is tried; what it costs is bounded. Returns its offset, or `used` when there is none.
 */
static size_t find_record(struct tailor_store_reader *reader, size_t from)
{
	for (size_t offset = from; offset + RECORD_HEADER_BYTES < reader->used; offset++) {
		uint32_t length = load_u32(reader->bytes + offset);
		size_t bytes;

		if (length == 0 || length > RECORD_BYTES_MAX || length > reader->used - offset - RECORD_HEADER_BYTES)
			continue;
		if (length > reader->search_left)
			break;
		reader->search_left -= length;
		if (record_valid(reader->bytes + offset, reader->used - offset, &bytes))
			return offset;
	}
	return reader->used;
}

/* The next whole record of the open segment. Returns 1, or 0 at its end as it is now, or a negative errno. */
static int next_record(struct tailor_store_reader *reader, size_t *ret_bytes)
{
	size_t found;
	int error;

	error = read_more(reader);
	if (error)
		return error;
	if (reader->offset == 0) {
		if (!header_is_right(reader))
			return 0;
		reader->offset = SEGMENT_HEADER_BYTES;
	}
	if (record_valid(reader->bytes + reader->offset, reader->used - reader->offset, ret_bytes))
		return 1;
	found = find_record(reader, reader->offset + 1);
	if (found >= reader->used)
		return 0; /* a torn tail, or a record that is just being written */
	reader->bad_records++;
	reader->offset = found;
	return record_valid(reader->bytes + found, reader->used - found, ret_bytes);
}

/*
 * Decodes records into *ret until one is of the kind that `decode` is for. Returns 1, 0 at the end, or a negative errno.
 */
static int next_of_kind(struct tailor_store_reader *reader, int (*decode)(const uint8_t *bytes, size_t length, void *ret), void *ret)
{
	for (;;) {
		size_t bytes = 0;
		int got = reader->file >= 0 ? next_record(reader, &bytes) : 0;

		if (got < 0)
			return got;
		if (got == 0) {
			got = next_segment(reader);
			if (got <= 0)
				return got;
			continue;
		}
		got = decode(reader->bytes + reader->offset + RECORD_HEADER_BYTES, bytes - RECORD_HEADER_BYTES, ret);
		reader->offset += bytes;
		if (got == 0)
			return 1;
		if (got == -EBADMSG)
			reader->bad_records++;
		else if (got != RECORD_OF_OTHER_KIND)
			return got;
	}
}

static int decode_timeline(const uint8_t *bytes, size_t length, void *ret_timeline)
{
	return record_decode(bytes, length, ret_timeline);
}

int tailor_store_next(struct tailor_store_reader *reader, struct tailor_timeline *ret_timeline)
{
	return next_of_kind(reader, decode_timeline, ret_timeline);
}

static int decode_failover(const uint8_t *bytes, size_t length, void *ret_failover)
{
	return record_decode_failover(bytes, length, ret_failover);
}

int tailor_store_next_failover(struct tailor_store_reader *reader, struct tailor_failover *ret_failover)
{
	return next_of_kind(reader, decode_failover, ret_failover);
}

void tailor_store_damage(const struct tailor_store_reader *reader, uint64_t *ret_records, uint64_t *ret_bytes)
{
	*ret_records = reader->bad_records;
	*ret_bytes = reader->bad_bytes + (reader->file >= 0 ? reader->used - reader->offset : 0);
}

void tailor_store_reader_close(struct tailor_store_reader *reader)
{
	if (!reader)
		return;
	if (reader->file >= 0)
		close(reader->file);
	if (reader->directory >= 0)
		close(reader->directory);
	free(reader->bytes);
	free(reader);
}
