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
	return tailor_harvest_add_loss(harvest, &loss);
}

/* Walks the channel backward from its end until the events are too old. */
static int read_source(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t window_ns, uint64_t to_ns)
{
	uint64_t from_ns = window_ns > source->before_ns ? window_ns - source->before_ns : 0;
	uint64_t end = tailor_channel_end(&source->channel);
	uint64_t slots = source->channel.mask + 1;
	uint64_t oldest = end > slots ? end - slots : 0;
	uint64_t later_ns = UINT64_MAX; /* time of the event after the position at hand */
	uint64_t gap = 0;
	int reached_start = 0;

	for (uint64_t position = end; position-- > oldest;) {
		struct tailor_window_event *event;
		enum tailor_read result;

		if (reserve(&harvest->events, &harvest->event_capacity, harvest->event_count + 1, sizeof(*harvest->events)))
			return -ENOMEM;
		event = &harvest->events[harvest->event_count];
		result = tailor_channel_read(&source->channel, position, &event->event);
		if (result != TAILOR_READ_OK) {
			/* What is just being written at the end is not lost. */
			if (result == TAILOR_READ_LOST || later_ns != UINT64_MAX)
				gap++;
			continue;
		}
		if (event->event.kind == TAILOR_EVENT_TEXT)
			continue;
		/* A gap after the window's end, or in what is read before it for good measure, is no loss of it. */
		if (event->event.time_ns < to_ns && later_ns > window_ns && add_gap(harvest, source, event->event.time_ns, later_ns, gap))
			return -ENOMEM;
		gap = 0;
		later_ns = event->event.time_ns;
		if (event->event.time_ns + DISORDER_NS < from_ns) {
			reached_start = 1;
			break;
		}
		if (event->event.time_ns < from_ns || event->event.time_ns > to_ns)
			continue;
		if (add_text(harvest, source, position, event))
			return -ENOMEM;
		if (source->own_pid && event->event.pid == source->own_pid)
			event->event.pid = source->pid;
		harvest->event_count++;
	}
	/* The ring went around since the window began: what was there before is gone. */
	if (reached_start || later_ns <= window_ns)
		return 0;
	return add_gap(harvest, source, 0, later_ns, gap + (oldest > 0));
}

static int by_time(const void *left, const void *right)
{
	const struct tailor_window_event *a = left, *b = right;

	if (a->event.time_ns != b->event.time_ns)
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	return a->event.sequence < b->event.sequence ? -1 : a->event.sequence > b->event.sequence;
}

int tailor_harvest_read(struct tailor_harvest *harvest, const struct tailor_source *sources, size_t count, uint64_t from_ns,
                        uint64_t to_ns)
{
	harvest->event_count = 0;
	harvest->text_used = 0;
	harvest->loss_count = 0;
	for (size_t i = 0; i < count; i++) {
		int error = read_source(harvest, &sources[i], from_ns, to_ns);

		if (error)
			return error;
	}
	for (size_t i = 0; i < harvest->event_count; i++) {
		if (harvest->events[i].text)
			harvest->events[i].text = harvest->text + ((uintptr_t)harvest->events[i].text - 1);
	}
	if (harvest->event_count > 1)
		qsort(harvest->events, harvest->event_count, sizeof(*harvest->events), by_time);
	return 0;
}

void tailor_harvest_free(struct tailor_harvest *harvest)
{
	free(harvest->events);
	free(harvest->text);
	free(harvest->losses);
	memset(harvest, 0, sizeof(*harvest));
}
