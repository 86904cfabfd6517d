/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a segment file and the names of a store's files; see include/tailor/store.h. All numbers little-endian.
 */
#ifndef TAILOR_STORE_SEGMENT_H
#define TAILOR_STORE_SEGMENT_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/failover.h>
#include <tailor/timeline.h>

/* File header: 8 bytes of magic, version, reserved. */
#define SEGMENT_MAGIC "TAILORTL"
#define SEGMENT_VERSION 1
#define SEGMENT_HEADER_BYTES 16

/* Record: length of the message, CRC-32C of those four length bytes and the message, message. */
#define RECORD_HEADER_BYTES 8
#define RECORD_BYTES_MAX (4u << 20) /* of a message; bounds what a reader allocates for damaged bytes */

/* "00000000000000000001.tailor" */
#define SEGMENT_NAME_BYTES 28
#define STORE_LOCK_NAME "lock"

/* The number in a segment's file name; 0 for any other name. */
uint64_t segment_number(const char *name);
void segment_name(char name[SEGMENT_NAME_BYTES], uint64_t number);

/*
 * Lists the segments of a directory in order. Returns how many, *ret_numbers (to be freed, may be NULL for none) and
 * *ret_foreign, how many other files there are but the lock; or a negative errno. *ret_locked: it has a lock file.
 */
int segment_list(int directory, uint64_t **ret_numbers, size_t *ret_foreign, int *ret_locked);

static inline uint32_t load_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline void store_u32(uint8_t *bytes, uint32_t value)
{
	bytes[0] = (uint8_t)value;
	bytes[1] = (uint8_t)(value >> 8);
	bytes[2] = (uint8_t)(value >> 16);
	bytes[3] = (uint8_t)(value >> 24);
}

/* Encode a timeline, and a failover, as a whole record. Return 0 with *ret_record (to be freed) and *ret_bytes, -ENOMEM or -EFBIG. */
int record_encode(const struct tailor_timeline *timeline, uint8_t **ret_record, size_t *ret_bytes);
int record_encode_failover(const struct tailor_failover *failover, uint8_t **ret_record, size_t *ret_bytes);

/* 1 when a whole record with a right checksum is at `bytes`; *ret_bytes is its length with its header. */
int record_valid(const uint8_t *bytes, size_t available, size_t *ret_bytes);

/*
 * Decodes the message of a valid record. Bytes are not trusted: unknown enum values become unexplained, none or done,
 * texts are cut, spans that do not cut the request exactly are -EBADMSG. Returns 0, RECORD_OF_OTHER_KIND with an empty
 * timeline, -EBADMSG, or -ENOMEM.
 */
#define RECORD_OF_OTHER_KIND 1
int record_decode(const uint8_t *bytes, size_t length, struct tailor_timeline *ret_timeline);
/* The same for a failover; unknown kinds of stops become TAILOR_STOP_KINDS. Whether a timeline would be right is not looked at. */
int record_decode_failover(const uint8_t *bytes, size_t length, struct tailor_failover *ret_failover);

#endif /* TAILOR_STORE_SEGMENT_H */
