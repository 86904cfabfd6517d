/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/harvest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/walk.h"

/* What may be moved to put events that are nearly in order in order, per event, before they are sorted as if they were in none. */
#define MOVES_PER_EVENT 16

int tailor_harvest_add_loss(struct tailor_harvest *harvest, const struct tailor_loss *loss)
{
	if (harvest_reserve(&harvest->losses, &harvest->loss_capacity, harvest->loss_count + 1, sizeof(*harvest->losses)))
		return -ENOMEM;
	harvest->losses[harvest->loss_count++] = *loss;
	return 0;
}

/* 1 when a is the later one; the same for all channels, so that a window does not depend on how it was put together. */
static int is_later(const struct tailor_window_event *a, const struct tailor_window_event *b)
{
	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns > b->event.time_ns;
	return a->event.sequence > b->event.sequence;
}

static int by_time_down(const void *left, const void *right)
{
	const struct tailor_window_event *a = left, *b = right;

	return is_later(b, a) - is_later(a, b);
}

/* Puts what the walk found in order, newest first. Producers that race are rare, and differ by little. */
static void settle_order(struct tailor_window_event *events, size_t count)
{
	size_t moves = 0;

	for (size_t i = 1; i < count; i++) {
		struct tailor_window_event event = events[i];
		size_t place = i;

		if (!is_later(&event, &events[i - 1]))
			continue;
		for (; place > 0 && is_later(&event, &events[place - 1]); place--, moves++)
			events[place] = events[place - 1];
		events[place] = event;
		if (moves / MOVES_PER_EVENT > count) { /* only a producer that lies about the time writes so */
			qsort(events, count, sizeof(*events), by_time_down);
			return;
		}
	}
}

/* What is left of one source to merge: `next` is its oldest, newer ones stand before it. */
struct run {
	const struct tailor_window_event *next;
	size_t left;
	uint16_t source;
};

/* Restores the heap (the oldest first) below `i`. */
static void sift(struct run *runs, size_t count, size_t i)
{
	for (;;) {
		size_t least = i;
		struct run moved;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++) {
			if (is_later(runs[least].next, runs[child].next))
				least = child;
		}
		if (least == i)
			return;
		moved = runs[i];
		runs[i] = runs[least];
		runs[least] = moved;
		i = least;
	}
}

static int merge(struct tailor_harvest *harvest, struct run *runs, size_t count)
{
	size_t to = 0;

	if (harvest_reserve(&harvest->merged, &harvest->merged_capacity, harvest->read_count, sizeof(*harvest->merged)) ||
	    harvest_reserve(&harvest->merged_source, &harvest->merged_source_capacity, harvest->read_count, sizeof(uint16_t)))
		return -ENOMEM;
	for (size_t i = count; i-- > 0;)
		sift(runs, count, i);
	for (; count > 0; to++) {
		struct tailor_window_event *event = &harvest->merged[to];

		*event = *runs[0].next--;
		harvest->merged_source[to] = runs[0].source;
		if (event->text)
			event->text = harvest->text + ((uintptr_t)event->text - 1);
		if (--runs[0].left == 0)
			runs[0] = runs[--count];
		sift(runs, count, 0);
	}
	harvest->merged_begin = 0;
	harvest->merged_end = to;
	return 0;
}

int tailor_harvest_read(struct tailor_harvest *harvest, const struct tailor_source *sources, size_t count, uint64_t from_ns,
                        uint64_t to_ns)
{
	struct run *runs;
	size_t used = 0;
	int error;

	harvest->read_count = 0;
	harvest->text_used = 0;
	harvest->earlier_count = 0;
	harvest->scheduling_count = 0;
	harvest->read_whole_ns = 0;
	harvest->all_loss_count = 0;
	harvest->source_count = count;
	if (harvest_reserve(&harvest->sources, &harvest->sources_capacity, count, sizeof(*sources)) ||
	    harvest_reserve(&harvest->runs, &harvest->runs_capacity, count, sizeof(*runs)))
		return -ENOMEM;
	runs = harvest->runs;
	for (size_t i = 0; i < count; i++) {
		size_t first = harvest->read_count;

		harvest->sources[i] = sources[i];
		error = harvest_walk(harvest, &sources[i], from_ns, to_ns);
		if (error)
			return error;
		if (harvest->read_count == first)
			continue;
		settle_order(harvest->read + first, harvest->read_count - first);
		runs[used++] = (struct run){.left = harvest->read_count - first, .source = (uint16_t)i};
	}
	/* Only now, as the memory may have moved. */
	for (size_t i = 0, end = 0; i < used; i++) {
		end += runs[i].left;
		runs[i].next = harvest->read + end - 1;
	}
	error = merge(harvest, runs, used);
	return error ? error : tailor_harvest_cut(harvest, from_ns, to_ns);
}

/* How many of the merged events have a time below that. */
static size_t merged_before(const struct tailor_harvest *harvest, uint64_t time_ns)
{
	size_t low = harvest->merged_begin, high = harvest->merged_end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (harvest->merged[middle].event.time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t back(uint64_t time_ns, uint64_t before_ns)
{
	return time_ns > before_ns ? time_ns - before_ns : 0;
}

int tailor_harvest_cut(struct tailor_harvest *harvest, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t least_ns = UINT64_MAX;
	size_t begin;

	for (size_t i = 0; i < harvest->source_count; i++) {
		if (harvest->sources[i].before_ns < least_ns)
			least_ns = harvest->sources[i].before_ns;
	}
	/* Some sources matter for longer before the window: their events close up to it. What falls out here is too old for all later
	 * cuts, too. */
	begin = merged_before(harvest, back(from_ns, least_ns));
	for (size_t i = begin; i-- > harvest->merged_begin;) {
		const struct tailor_source *source = &harvest->sources[harvest->merged_source[i]];

		if (harvest->merged[i].event.time_ns < back(from_ns, source->before_ns)) {
			if (source->earlier_ns && harvest_add_earlier(harvest, &harvest->merged[i].event))
				return -ENOMEM;
			continue;
		}
		begin--;
		harvest->merged[begin] = harvest->merged[i];
		harvest->merged_source[begin] = harvest->merged_source[i];
	}
	harvest->merged_begin = begin;
	harvest->events = harvest->merged + begin;
	harvest->event_count = (to_ns == UINT64_MAX ? harvest->merged_end : merged_before(harvest, to_ns + 1)) - begin;
	harvest->loss_count = 0;
	harvest->whole_ns = harvest->read_whole_ns;
	for (size_t i = 0; i < harvest->all_loss_count; i++) {
		const struct tailor_loss *loss = &harvest->all_losses[i];

		if (strncmp(loss->channel, "cpu", 3) == 0 && loss->to_ns <= from_ns && loss->to_ns > harvest->whole_ns)
			harvest->whole_ns = loss->to_ns;
		if (loss->from_ns < to_ns && loss->to_ns > from_ns && tailor_harvest_add_loss(harvest, loss))
			return -ENOMEM;
	}
	return 0;
}

/* Whether the event is of a thread that the request had nothing to do with. */
static int is_strange(const struct tailor_event *event, const struct tailor_concern *concern)
{
	switch (event->kind) {
	case TAILOR_EVENT_TCP_TRANSMIT:
	case TAILOR_EVENT_TCP_RETRANSMIT:
	case TAILOR_EVENT_CPU_STALL:
	case TAILOR_EVENT_ARRIVAL: return 0; /* their task is whoever happened to run */
	default: break;
	}
	if (event->pid == 0)
		return 0;
	if (event->pid == concern->proxy_pid)
		return event->tid != concern->worker_tid;
	for (size_t i = 0; i < concern->server_count; i++) {
		if (concern->servers[i].pid == event->pid)
			return 0;
	}
	return 1;
}

/* Leaves [from, to) of the thinned events out, as a loss of every channel that had some of them. */
static int cut_middle(struct tailor_harvest *harvest, size_t from, size_t to)
{
	for (size_t source = 0; source < harvest->source_count; source++) {
		struct tailor_loss loss = {.from_ns = harvest->thinned[from - 1].event.time_ns, .to_ns = harvest->thinned[to].event.time_ns};

		for (size_t i = from; i < to; i++)
			loss.events += harvest->thinned_source[i] == source;
		memcpy(loss.channel, harvest->sources[source].name, sizeof(loss.channel));
		if (loss.events && tailor_harvest_add_loss(harvest, &loss))
			return -ENOMEM;
		if (harvest->sources[source].hold)
			harvest->sources[source].hold->lost[TAILOR_LOST_THINNED] += loss.events;
	}
	memmove(harvest->thinned + from, harvest->thinned + to, (harvest->event_count - to) * sizeof(*harvest->thinned));
	harvest->event_count -= to - from;
	return 0;
}

int64_t tailor_harvest_thin(struct tailor_harvest *harvest, const struct tailor_concern *concern, size_t max)
{
	size_t first = (size_t)(harvest->events - harvest->merged), kept = 0, middle;

	if (harvest->event_count <= max || max < 4)
		return 0;
	if (harvest_reserve(&harvest->thinned, &harvest->thinned_capacity, harvest->event_count, sizeof(*harvest->thinned)) ||
	    harvest_reserve(&harvest->thinned_source, &harvest->thinned_source_capacity, harvest->event_count, sizeof(uint16_t)))
		return -ENOMEM;
	for (size_t i = 0; i < harvest->event_count; i++) {
		if (is_strange(&harvest->events[i].event, concern))
			continue;
		harvest->thinned[kept] = harvest->events[i];
		harvest->thinned_source[kept++] = harvest->merged_source[first + i];
	}
	harvest->events = harvest->thinned;
	harvest->event_count = kept;
	if (kept <= max)
		return 0;
	middle = kept - max;
	return cut_middle(harvest, max / 4, max / 4 + middle) ? -ENOMEM : (int64_t)middle;
}

void tailor_harvest_shrink(struct tailor_harvest *harvest, size_t events)
{
	if (harvest->read_capacity > events || harvest->merged_capacity > events || harvest->scheduling_capacity > events)
		tailor_harvest_free(harvest);
}

void tailor_harvest_free(struct tailor_harvest *harvest)
{
	free(harvest->read);
	free(harvest->merged);
	free(harvest->merged_source);
	free(harvest->thinned);
	free(harvest->thinned_source);
	free(harvest->sources);
	free(harvest->runs);
	free(harvest->text);
	free(harvest->earlier);
	free(harvest->scheduling);
	free(harvest->losses);
	free(harvest->all_losses);
	memset(harvest, 0, sizeof(*harvest));
}
