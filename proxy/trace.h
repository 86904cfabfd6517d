/* SPDX-License-Identifier: Apache-2.0 */
/* Request ids, and W3C Trace Context (https://www.w3.org/TR/trace-context/, level 1). One source per worker. */
#ifndef TAILOR_PROXY_TRACE_H
#define TAILOR_PROXY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_source {
	uint64_t base; /* random, the same for all workers of a process */
	uint64_t counter;
	uint64_t worker;
	uint64_t random; /* state for trace ids */
};

/* Returns 64 random bits for `base`; never fails. */
uint64_t trace_random(void);

void trace_open(struct trace_source *source, uint64_t base, unsigned int worker);

/* Next id: never 0, unique in this process, unpredictable across restarts. */
uint64_t trace_next_id(struct trace_source *source);

#define TRACE_PARENT_BYTES 55
/* Writes a traceparent with a new trace id, `id` as parent and the sampled flag off: whether others record is not ours
 * to say. */
void trace_write_parent(struct trace_source *source, uint64_t id, char to[TRACE_PARENT_BYTES]);

/* 1 when the value of a traceparent field is valid and must be passed on. */
bool trace_parent_valid(const char *value, size_t length);

/* Writes 16 lower-case hex digits. */
void trace_write_hex(uint64_t value, char to[16]);

#endif /* TAILOR_PROXY_TRACE_H */
