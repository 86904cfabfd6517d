/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/collect only: the records of requests that have begun and not ended, found by id. One thread. */
#ifndef TAILOR_COLLECT_OPEN_RECORDS_H
#define TAILOR_COLLECT_OPEN_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/window.h>

struct open_place;

/*
 * The records that were freed last are used first: what is in use stays in the cache, however many there may be at most. Beside them their
 * begins, close together, to be looked through often.
 */
struct open_records {
	struct tailor_record *records;
	uint64_t *begin_ns;       /* of each record; 0: free */
	uint32_t *free;           /* a stack of records */
	struct open_place *table; /* open addressing by request id, linear probing, at most half full */
	size_t mask, max, free_count;
	size_t touched; /* records from here on were never used */
};

/* Makes room for `max`. Returns 0 or -ENOMEM; open_records_free() in either case. */
int open_records_init(struct open_records *open, size_t max);
void open_records_free(struct open_records *open);

/* The request's record, valid until the next call of one of the two below; NULL: it is not open. */
struct tailor_record *open_records_find(const struct open_records *open, uint64_t id);
/*
 * A zeroed record with that id and begin_ns, in place of the one with the same id if there is one. Where there are `max` already, the
 * oldest is forgotten: its end was lost.
 */
struct tailor_record *open_records_add(struct open_records *open, uint64_t id, uint64_t begin_ns);
void open_records_remove(struct open_records *open, const struct tailor_record *record);

/* When the oldest of those began that began after after_ns; UINT64_MAX: there is none. */
uint64_t open_records_oldest(const struct open_records *open, uint64_t after_ns);

#endif /* TAILOR_COLLECT_OPEN_RECORDS_H */
