/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timelines on disk. A store is a directory of append-only segment files:
 *
 *   timelines/00000000000000000001.tailor
 *
 * A segment is a 16-byte file header (magic, version), then records: length, CRC-32C of length and message,
 * protobuf message (src/store/timeline.proto), which is a timeline or a failover; a reader from before there were failovers skips them
 * and counts them as damage. A torn tail (power cut, kill) costs the record it is in and nothing else;
 * a damaged record is skipped and counted. When all segments together exceed the limit the oldest one
 * is deleted. One writer at a time (an flock on the directory's lock file); any number of readers,
 * also while it writes.
 */
#ifndef TAILOR_STORE_H
#define TAILOR_STORE_H

#include <tailor/failover.h>
#include <tailor/timeline.h>

struct tailor_store_writer;
struct tailor_store_reader;

/*
 * Opens the store at `path` for appending; creates the directory (0700) if needed and starts a new
 * segment with the first timeline. Keeps the store below max_bytes (at least 1 MiB).
 * Returns 0, -EBUSY (another writer has it), -EINVAL (path is a file or not a store: holds foreign
 * files only), or another negative errno. One thread at a time.
 */
int tailor_store_writer_open(const char *path, uint64_t max_bytes, struct tailor_store_writer **ret_writer);

/*
 * What stands in the way of tailor_store_writer_open() at that path, without making or locking anything: 0, -EINVAL as there, -ENOENT or
 * -ENOTDIR (no directory to make it in), or another negative errno. Any thread.
 */
int tailor_store_writer_probe(const char *path);

/*
 * For a process that goes on where another one ends: the lock of an open store, to be handed to that process (SCM_RIGHTS), and
 * opening the store with it. The lock is then held by both, until both have closed; who of them appends is for them to
 * agree on, and the one that takes over may not before the other has appended for the last time. Takes the descriptor over,
 * if it returns 0; -ESTALE: it is another store's lock.
 */
int tailor_store_writer_lock(const struct tailor_store_writer *writer);
int tailor_store_writer_take_over(const char *path, uint64_t max_bytes, int lock, struct tailor_store_writer **ret_writer);

/* Appends one timeline; it is copied. Returns 0 or a negative errno (-ENOSPC, -EIO, -ENOMEM, -ENOENT: the directory was
 * removed, -EFBIG: it takes more than 4 MiB or than the whole store); after an error the store is still readable and the next append may work. */
int tailor_store_append(struct tailor_store_writer *writer, const struct tailor_timeline *timeline);

/* The same with a failover. */
int tailor_store_append_failover(struct tailor_store_writer *writer, const struct tailor_failover *failover);

/* Closes; NULL is allowed. */
void tailor_store_writer_close(struct tailor_store_writer *writer);

/*
 * Opens a store directory, or one segment file, for reading from the oldest record.
 * Returns 0, -ENOENT, -EINVAL (not a timeline store), or another negative errno.
 */
int tailor_store_reader_open(const char *path, struct tailor_store_reader **ret_reader);

/*
 * Reads the next timeline into *ret_timeline, which the caller frees with tailor_timeline_free().
 * Returns 1, 0 at the end, or a negative errno. Failovers are passed over; damaged records are skipped and counted.
 */
int tailor_store_next(struct tailor_store_reader *reader, struct tailor_timeline *ret_timeline);

/* The same for failovers, of which nothing is to be freed; timelines are passed over. */
int tailor_store_next_failover(struct tailor_store_reader *reader, struct tailor_failover *ret_failover);

/* Damage met so far: records skipped because length, checksum or content was wrong, and bytes not understood at a torn tail. */
void tailor_store_damage(const struct tailor_store_reader *reader, uint64_t *ret_records, uint64_t *ret_bytes);

/* Closes; NULL is allowed. */
void tailor_store_reader_close(struct tailor_store_reader *reader);

/* Frees what a timeline points to, not the struct itself. */
void tailor_timeline_free(struct tailor_timeline *timeline);

#endif /* TAILOR_STORE_H */
