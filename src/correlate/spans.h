/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing list of spans. They may be added in any order; span_list_finish() puts them in order and makes them
 * exact: clipped to the interval, without overlap, gaps filled as unexplained, equal neighbours merged.
 */
#ifndef TAILOR_CORRELATE_SPANS_H
#define TAILOR_CORRELATE_SPANS_H

#include <tailor/timeline.h>

/* Zero is an empty list. `spans` is malloc'ed and the owner's to free or to take. */
struct span_list {
	struct tailor_span *spans;
	size_t count;
	size_t capacity;
	int failed;                 /* memory ran out; told by span_list_finish() */
	struct tailor_span scratch; /* what the caller fills when nothing is added */
};

/*
 * Adds [start_ns, end_ns) and returns the span for the caller to fill further, valid until the next add. An
 * empty interval is not added; then, and without memory, the span returned is a scratch one: never NULL.
 */
struct tailor_span *span_list_add(struct span_list *list, uint64_t start_ns, uint64_t end_ns, enum tailor_cause cause);

/* Adds a span like `span`, with other times; returns as span_list_add(). */
struct tailor_span *span_list_add_like(struct span_list *list, uint64_t start_ns, uint64_t end_ns, const struct tailor_span *span);

/* Names the thread that the response waited for; name may be NULL. */
void span_thread(struct tailor_span *span, uint32_t pid, uint32_t tid, const char *name);

/* Writes the detail, cut where too long. */
void span_detail(struct tailor_span *span, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends to the detail, after "; " where there is one already. */
void span_detail_more(struct tailor_span *span, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Cuts the spans from index `first` on at two moments, so that each lies wholly within [start_ns, end_ns) or outside: to
 * be called before those within are changed. The pieces made stand at the list's end.
 */
void span_list_split(struct span_list *list, size_t first, uint64_t start_ns, uint64_t end_ns);

/* 1 when the span lies within [start_ns, end_ns). */
static inline int span_within(const struct tailor_span *span, uint64_t start_ns, uint64_t end_ns)
{
	return span->start_ns >= start_ns && span->end_ns <= end_ns;
}

/* Makes the list cut [begin_ns, end_ns] exactly. Returns 0 or -ENOMEM (also when an earlier add failed). */
int span_list_finish(struct span_list *list, uint64_t begin_ns, uint64_t end_ns);

#endif /* TAILOR_CORRELATE_SPANS_H */
