/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/spans.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/correlate.h"

struct tailor_span *span_list_add(struct span_list *list, uint64_t start_ns, uint64_t end_ns, enum tailor_cause cause)
{
	struct tailor_span *span = &list->scratch;

	if (start_ns < end_ns && list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 64;
		struct tailor_span *spans = reallocarray(list->spans, capacity, sizeof(*spans));

		if (!spans) {
			list->failed = 1;
		} else {
			list->spans = spans;
			list->capacity = capacity;
		}
	}
	if (start_ns < end_ns && list->count < list->capacity)
		span = &list->spans[list->count++];
	memset(span, 0, sizeof(*span));
	span->start_ns = start_ns;
	span->end_ns = end_ns;
	span->cause = cause;
	return span;
}

struct tailor_span *span_list_add_like(struct span_list *list, uint64_t start_ns, uint64_t end_ns, const struct tailor_span *span)
{
	struct tailor_span *added = span_list_add(list, start_ns, end_ns, span->cause);

	*added = *span;
	added->start_ns = start_ns;
	added->end_ns = end_ns;
	return added;
}

void span_thread(struct tailor_span *span, uint32_t pid, uint32_t tid, const char *name)
{
	span->pid = pid;
	span->tid = tid;
	if (name)
		snprintf(span->thread, sizeof(span->thread), "%s", name);
}

void span_detail(struct tailor_span *span, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(span->detail, sizeof(span->detail), format, arguments);
	va_end(arguments);
}

void span_detail_more(struct tailor_span *span, const char *format, ...)
{
	size_t length = strlen(span->detail);
	va_list arguments;

	if (length > 0 && length + 2 < sizeof(span->detail)) {
		memcpy(span->detail + length, "; ", 3);
		length += 2;
	}
	va_start(arguments, format);
	vsnprintf(span->detail + length, sizeof(span->detail) - length, format, arguments);
	va_end(arguments);
}

static void split_at(struct span_list *list, size_t first, uint64_t at_ns)
{
	size_t count = list->count;

	for (size_t i = first; i < count; i++) {
		struct tailor_span later = list->spans[i];

		if (later.start_ns >= at_ns || later.end_ns <= at_ns)
			continue;
		list->spans[i].end_ns = at_ns;
		later.start_ns = at_ns;
		span_list_add_like(list, at_ns, later.end_ns, &later);
	}
}

void span_list_split(struct span_list *list, size_t first, uint64_t start_ns, uint64_t end_ns)
{
	split_at(list, first, start_ns);
	split_at(list, first, end_ns);
}

static int by_start(const void *a, const void *b)
{
	const struct tailor_span *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	return (left->end_ns > right->end_ns) - (left->end_ns < right->end_ns);
}

static int same_story(const struct tailor_span *a, const struct tailor_span *b)
{
	return a->cause == b->cause && a->pid == b->pid && a->tid == b->tid && strcmp(a->thread, b->thread) == 0 &&
	       strcmp(a->detail, b->detail) == 0;
}

/* Appends to the output, or lengthens its last span when the story goes on. */
static size_t append(struct tailor_span *out, size_t count, const struct tailor_span *span)
{
	if (count > 0 && same_story(&out[count - 1], span)) {
		out[count - 1].end_ns = span->end_ns;
		return count;
	}
	out[count] = *span;
	return count + 1;
}

int span_list_finish(struct span_list *list, uint64_t begin_ns, uint64_t end_ns)
{
	struct tailor_span gap = {.cause = TAILOR_CAUSE_UNEXPLAINED};
	struct tailor_span *out;
	uint64_t now = begin_ns;
	size_t count = 0;

	if (list->failed)
		return -ENOMEM;
	/* At most one gap before each span and one behind the last. */
	out = calloc(2 * list->count + 1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	if (list->count > 0)
		qsort(list->spans, list->count, sizeof(*list->spans), by_start);
	for (size_t i = 0; i < list->count; i++) {
		struct tailor_span *span = &list->spans[i];

		if (span->start_ns < now)
			span->start_ns = now;
		if (span->end_ns > end_ns)
			span->end_ns = end_ns;
		if (span->start_ns >= span->end_ns)
			continue;
		if (span->start_ns > now) {
			gap.start_ns = now;
			gap.end_ns = span->start_ns;
			count = append(out, count, &gap);
		}
		count = append(out, count, span);
		now = span->end_ns;
	}
	if (now < end_ns || count == 0) {
		gap.start_ns = now;
		gap.end_ns = end_ns;
		count = append(out, count, &gap);
	}
	free(list->spans);
	list->spans = out;
	list->count = count;
	list->capacity = count;
	return 0;
}

int tailor_timeline_check(const struct tailor_timeline *timeline)
{
	uint64_t now = timeline->request.begin_ns;

	for (size_t i = 0; i < timeline->span_count; i++) {
		const struct tailor_span *span = &timeline->spans[i];

		if (span->start_ns != now || span->end_ns < span->start_ns)
			return 0;
		if (span->end_ns == span->start_ns && timeline->span_count > 1)
			return 0;
		now = span->end_ns;
	}
	return timeline->span_count > 0 && now == timeline->request.end_ns;
}
