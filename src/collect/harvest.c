/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/harvest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/text.h"

/*
 * Positions of a channel are in time order but for producers that raced each other, and those differ by
 * far less than this.
 */
#define DISORDER_NS UINT64_C(1000000)
/* A channel with more positions than this is searched for the window's end rather than walked back to it. */
#define SEARCH_POSITIONS 4096
/* Unreadable positions passed over in search of a readable one. */
#define SEARCH_GAP 16
/*
 * A producer that is held up between its place in the channel and its clock (an interrupt, the host of a virtual machine) leaves single
 * events far out of order: so many are read beyond the window's either end before it is believed to end there.
 */
#define OUTLIERS_MAX 64
/* The memory was last written by another CPU: it takes a while to come, and much of it can be on its way at once. */
#define PREFETCH_SLOTS 12
/* What may be moved to put events that are nearly in order in order, per event, before they are sorted as if they were in none. */
#define MOVES_PER_EVENT 16
#define TEXT_BYTES_MAX (TAILOR_TEXTS_MAX * TAILOR_TEXT_BYTES + 1)
/* Until all events are read, a text is known by its offset + 1: the buffer may move. */
#define TEXT_OFFSET(offset) ((const char *)(uintptr_t)((offset) + 1))

static int reserve(void *memory, size_t *capacity, size_t needed, size_t size)
{
	size_t wanted = *capacity ? *capacity : 256;
	void *grown;

	if (needed <= *capacity)
		return 0;
	while (wanted < needed)
		wanted *= 2;
	grown = realloc(*(void **)memory, wanted * size);
	if (!grown)
		return -ENOMEM;
	*(void **)memory = grown;
	*capacity = wanted;
	return 0;
}

static int add_text(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t position,
                    struct tailor_window_event *event)
{
	int length;

	event->text = NULL;
	if (event->event.texts == 0)
		return 0;
	if (reserve(&harvest->text, &harvest->text_capacity, harvest->text_used + TEXT_BYTES_MAX, 1))
		return -ENOMEM;
	length = tailor_text_read(&source->channel, position, &event->event, harvest->text + harvest->text_used, TEXT_BYTES_MAX);
	if (length >= 0) {
		event->text = TEXT_OFFSET(harvest->text_used);
		harvest->text_used += (size_t)length + 1;
	}
	return 0;
}

int tailor_harvest_add_loss(struct tailor_harvest *harvest, const struct tailor_loss *loss)
{
	if (reserve(&harvest->losses, &harvest->loss_capacity, harvest->loss_count + 1, sizeof(*harvest->losses)))
		return -ENOMEM;
	harvest->losses[harvest->loss_count++] = *loss;
	return 0;
}

/* A gap of `events` positions between two events' times. */
static int add_gap(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t from_ns, uint64_t to_ns, uint64_t events)
{
	struct tailor_loss loss = {.from_ns = from_ns, .to_ns = to_ns, .events = events};

	if (events == 0)
		return 0;
	memcpy(loss.channel, source->name, sizeof(loss.channel));
	if (reserve(&harvest->all_losses, &harvest->all_loss_capacity, harvest->all_loss_count + 1, sizeof(loss)))
		return -ENOMEM;
	harvest->all_losses[harvest->all_loss_count++] = loss;
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

/* Where to start walking back: a position whose event came after the window, or the channel's end. */
static uint64_t search_end(const struct tailor_channel *channel, uint64_t oldest, uint64_t end, uint64_t to_ns)
{
	uint64_t low = oldest, high = end, found = end;

	while (high - low > SEARCH_POSITIONS / 8) {
		uint64_t middle = low + (high - low) / 2, position = middle;
		struct tailor_event event = {.kind = TAILOR_EVENT_TEXT};

		while (position < middle + SEARCH_GAP && (tailor_channel_read(channel, position, &event) != TAILOR_READ_OK ||
		                                          event.kind == TAILOR_EVENT_TEXT))
			position++;
		if (position < middle + SEARCH_GAP && event.time_ns > to_ns && event.time_ns - to_ns > DISORDER_NS) {
			found = position;
			high = middle;
		} else {
			low = middle + SEARCH_GAP;
		}
	}
	return found;
}

/* Walks the channel backward from the window's end until the events are too old. */
static int walk_source(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t window_ns, uint64_t to_ns)
{
	uint64_t from_ns = window_ns > source->before_ns ? window_ns - source->before_ns : 0;
	uint64_t end = tailor_channel_end(&source->channel);
	uint64_t slots = source->channel.mask + 1;
	uint64_t oldest = end > slots ? end - slots : 0;
	uint64_t later_ns = UINT64_MAX; /* time of the event after the position at hand */
	uint64_t position = end, gap = 0;
	unsigned int old = 0; /* events in a row that are too old */

	if (end - oldest > SEARCH_POSITIONS) {
		position = search_end(&source->channel, oldest, end, to_ns);
		position = end - position > OUTLIERS_MAX ? position + OUTLIERS_MAX : end;
	}
	while (position-- > oldest) {
		struct tailor_window_event *event;
		enum tailor_read result;
		int too_old;

		__builtin_prefetch(&source->channel.slots[(position - PREFETCH_SLOTS) & source->channel.mask]);
		if (reserve(&harvest->read, &harvest->read_capacity, harvest->read_count + 1, sizeof(*event)))
			return -ENOMEM;
		event = &harvest->read[harvest->read_count];
		result = tailor_channel_read(&source->channel, position, &event->event);
		if (result != TAILOR_READ_OK) {
			/* What is just being written at the end is not lost. */
			if (result == TAILOR_READ_LOST || later_ns != UINT64_MAX)
				gap++;
			continue;
		}
		if (event->event.kind == TAILOR_EVENT_TEXT)
			continue;
		too_old = event->event.time_ns + DISORDER_NS < from_ns;
		/* A gap after the window's end, or in what is read before it for good measure, is no loss of it. */
		if (!too_old || old == 0) {
			if (event->event.time_ns < to_ns && later_ns > window_ns &&
			    add_gap(harvest, source, event->event.time_ns, later_ns, gap))
				return -ENOMEM;
			gap = 0;
		}
		if (too_old) {
			if (++old == OUTLIERS_MAX)
				break;
			continue;
		}
		old = 0;
		later_ns = event->event.time_ns;
		if (event->event.time_ns < from_ns || event->event.time_ns > to_ns)
			continue;
		if (add_text(harvest, source, position, event))
			return -ENOMEM;
		if (source->own_pid && event->event.pid == source->own_pid)
			event->event.pid = source->pid;
		harvest->read_count++;
	}
	/* The ring went around since the window began: what was there before is gone. */
	if (old > 0 || later_ns <= window_ns)
		return 0;
	return add_gap(harvest, source, 0, later_ns, gap + (oldest > 0));
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

	if (reserve(&harvest->merged, &harvest->merged_capacity, harvest->read_count, sizeof(*harvest->merged)) ||
	    reserve(&harvest->merged_source, &harvest->merged_source_capacity, harvest->read_count, sizeof(uint16_t)))
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
	harvest->all_loss_count = 0;
	harvest->source_count = count;
	if (reserve(&harvest->before_ns, &harvest->before_capacity, count, sizeof(uint64_t)) ||
	    reserve(&harvest->runs, &harvest->runs_capacity, count, sizeof(*runs)))
		return -ENOMEM;
	runs = harvest->runs;
	for (size_t i = 0; i < count; i++) {
		size_t first = harvest->read_count;

		harvest->before_ns[i] = sources[i].before_ns;
		error = walk_source(harvest, &sources[i], from_ns, to_ns);
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
		if (harvest->before_ns[i] < least_ns)
			least_ns = harvest->before_ns[i];
	}
	/* Some sources matter for longer before the window: their events close up to it. What falls out here is too old for all later
	 * cuts, too. */
	begin = merged_before(harvest, back(from_ns, least_ns));
	for (size_t i = begin; i-- > harvest->merged_begin;) {
		if (harvest->merged[i].event.time_ns < back(from_ns, harvest->before_ns[harvest->merged_source[i]]))
			continue;
		begin--;
		harvest->merged[begin] = harvest->merged[i];
		harvest->merged_source[begin] = harvest->merged_source[i];
	}
	harvest->merged_begin = begin;
	harvest->events = harvest->merged + begin;
	harvest->event_count = (to_ns == UINT64_MAX ? harvest->merged_end : merged_before(harvest, to_ns + 1)) - begin;
	harvest->loss_count = 0;
	for (size_t i = 0; i < harvest->all_loss_count; i++) {
		const struct tailor_loss *loss = &harvest->all_losses[i];

		if (loss->from_ns < to_ns && loss->to_ns > from_ns && tailor_harvest_add_loss(harvest, loss))
			return -ENOMEM;
	}
	return 0;
}

void tailor_harvest_free(struct tailor_harvest *harvest)
{
	free(harvest->read);
	free(harvest->merged);
	free(harvest->merged_source);
	free(harvest->before_ns);
	free(harvest->runs);
	free(harvest->text);
	free(harvest->losses);
	free(harvest->all_losses);
	memset(harvest, 0, sizeof(*harvest));
}
