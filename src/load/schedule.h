/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside src/load only: which requests are due when, on one thread. A pure sequence: two cursors over the same schedule see
 * the same moments, so that a queue of any length is the space between them.
 */
#ifndef TAILOR_LOAD_SCHEDULE_H
#define TAILOR_LOAD_SCHEDULE_H

#include <stdbool.h>

#include "load/load.h"

#define LOAD_NEVER UINT64_MAX

/* All times are CLOCK_MONOTONIC ns. */
struct load_schedule {
	const struct tailor_load_options *options;
	unsigned int index;  /* this thread's, of options->threads */
	uint64_t start_ns;   /* of the warm-up */
	uint64_t measure_ns; /* what is due from here on counts */
	uint64_t end_ns;     /* nothing is due from here on; LOAD_NEVER */
	uint64_t count;      /* of all threads' requests, with uniform arrivals and recorded ones; UINT64_MAX */
};

struct load_cursor {
	uint64_t number; /* of this thread's requests, from 0 on */
	uint64_t due_ns; /* LOAD_NEVER: there are no more */
	uint64_t random; /* Poisson only */
	double offset_ns;
};

void load_schedule_begin(struct load_schedule *schedule, const struct tailor_load_options *options, unsigned int index,
                         uint64_t start_ns);
/* Sets the cursor to the first request; not for closed loops, in which nothing is due beforehand. */
void load_cursor_begin(const struct load_schedule *schedule, struct load_cursor *cursor);
void load_cursor_next(const struct load_schedule *schedule, struct load_cursor *cursor);

/* The request's number among those of all threads. */
uint64_t load_schedule_number(const struct load_schedule *schedule, uint64_t number);
/* Which of the plan's requests it is: the same in the same order with any number of threads. */
size_t load_schedule_request(const struct load_schedule *schedule, uint64_t number);
/* Whether the answer to this request is one of the sample whose bodies are compared. */
bool load_schedule_compares(const struct load_schedule *schedule, uint64_t number);

#endif /* TAILOR_LOAD_SCHEDULE_H */
