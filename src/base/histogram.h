/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram of durations with a bounded relative error of 0.1% from 1 us to 1 h, in fixed memory.
 * Values are ns. Below 1 us the error is bounded by 1 ns; above 1 h values count as 1 h and are reported as clipped.
 */
#ifndef TAILOR_BASE_HISTOGRAM_H
#define TAILOR_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

struct tailor_histogram;

/* Allocates an empty histogram; NULL without memory. Freed by tailor_histogram_free(). One thread writes it at a time. */
struct tailor_histogram *tailor_histogram_new(void);
void tailor_histogram_free(struct tailor_histogram *histogram);
void tailor_histogram_reset(struct tailor_histogram *histogram);

/* Counts one value. No allocation. */
void tailor_histogram_record(struct tailor_histogram *histogram, uint64_t ns);
/* Adds all of `from` exactly; both stay usable. */
void tailor_histogram_merge(struct tailor_histogram *into, const struct tailor_histogram *from);

uint64_t tailor_histogram_count(const struct tailor_histogram *histogram);
uint64_t tailor_histogram_min(const struct tailor_histogram *histogram); /* exact; 0 when empty */
uint64_t tailor_histogram_max(const struct tailor_histogram *histogram); /* exact; 0 when empty */
double tailor_histogram_mean(const struct tailor_histogram *histogram);  /* exact; 0 when empty */
uint64_t tailor_histogram_clipped(const struct tailor_histogram *histogram);

/* The smallest recorded value (within the error) at or below which `percent` (0..100) of all values lie; 0 when empty. */
uint64_t tailor_histogram_percentile(const struct tailor_histogram *histogram, double percent);

/*
 * The number of the bucket that a value of up to 1 h is counted in, from 0 on: below 2048 the value itself, from there on 1024 more
 * with each power of two. Other formats that cut powers of two the same way number theirs alike.
 */
size_t tailor_histogram_bucket_of(uint64_t ns);

/* How many values lie in [from_ns, to_ns), to the precision of the buckets. */
uint64_t tailor_histogram_between(const struct tailor_histogram *histogram, uint64_t from_ns, uint64_t to_ns);

/*
 * Walks the buckets in the order of their values: *position is 0 at first. Returns 1 with the middle of the next bucket
 * that is not empty and the number of values in it, or 0 after the last one.
 */
int tailor_histogram_next(const struct tailor_histogram *histogram, size_t *position, uint64_t *ret_ns, uint64_t *ret_count);

#endif /* TAILOR_BASE_HISTOGRAM_H */
