/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/walk.h"

#include <errno.h>
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
#define TEXT_BYTES_MAX (TAILOR_TEXTS_MAX * TAILOR_TEXT_BYTES + 1)
/* Instead of an event's index among a hold's slots. */
#define IN_RING SIZE_MAX

int harvest_reserve(void *memory, size_t *capacity, size_t needed, size_t size)
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

static int add_scheduling(struct tailor_harvest *harvest, const struct tailor_event *event)
{
	if (harvest_reserve(&harvest->scheduling, &harvest->scheduling_capacity, harvest->scheduling_count + 1, sizeof(*event)))
		return -ENOMEM;
	harvest->scheduling[harvest->scheduling_count++] = *event;
	return 0;
}

int harvest_add_earlier(struct tailor_harvest *harvest, const struct tailor_event *event)
{
	if (tailor_is_earlier_scheduling(event))
		return add_scheduling(harvest, event);
	if (!tailor_is_point(event))
		return 0;
	if (harvest_reserve(&harvest->earlier, &harvest->earlier_capacity, harvest->earlier_count + 1, sizeof(*harvest->earlier)))
		return -ENOMEM;
	harvest->earlier[harvest->earlier_count++] = tailor_point_of(event);
	return 0;
}

/* The slots of text behind an event at `position`, which is a copy if `held` is its index in the hold's slots. */
static void copy_texts(const struct tailor_source *source, uint64_t position, size_t held, unsigned int count,
                       struct tailor_event slots[TAILOR_TEXTS_MAX])
{
	const struct tailor_hold *hold = source->hold;

	for (unsigned int i = 0; i < count; i++) {
		size_t copy = held + 1 + i;

		if (held != IN_RING && copy < hold->first + hold->count &&
		    tailor_hold_position_of(&hold->slots[copy]) == position + 1 + i)
			slots[i] = hold->slots[copy];
		else if (tailor_channel_read(&source->channel, position + 1 + i, &slots[i]) != TAILOR_READ_OK)
			slots[i].kind = TAILOR_EVENT_NONE;
	}
}

static int add_text(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t position, size_t held,
                    struct tailor_window_event *event)
{
	unsigned int count = event->event.texts < TAILOR_TEXTS_MAX ? event->event.texts : TAILOR_TEXTS_MAX;
	struct tailor_event slots[TAILOR_TEXTS_MAX];
	int length;

	event->text = NULL;
	if (count == 0)
		return 0;
	if (harvest_reserve(&harvest->text, &harvest->text_capacity, harvest->text_used + TEXT_BYTES_MAX, 1))
		return -ENOMEM;
	copy_texts(source, position, held, count, slots);
	length = tailor_text_join(slots, count, harvest->text + harvest->text_used, TEXT_BYTES_MAX);
	if (length >= 0) {
		event->text = HARVEST_TEXT(harvest->text_used);
		harvest->text_used += (size_t)length + 1;
	}
	return 0;
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

/* A walk backward through a channel, from the window's end until the events are too old. */
struct walk {
	struct tailor_harvest *harvest;
	const struct tailor_source *source;
	uint64_t window_ns, from_ns, to_ns; /* the window's begin, what matters before it, and its end */
	uint64_t earlier_ns; /* and before that, of some kinds */
	uint64_t earlier_left; /* positions that are looked at for them */
	uint64_t whole_ns; /* time of the first event after the last gap before the window; 0: there was none */
	uint64_t later_ns; /* time of the event after the position at hand */
	uint64_t gap[TAILOR_LOST_REASONS], gap_count; /* unreadable positions since that event */
	unsigned int old; /* events in a row that are too old */
	int done;
};

static void lose(struct walk *walk, enum tailor_lost why, uint64_t events)
{
	walk->gap[why] += events;
	walk->gap_count += events;
}

static void clear_gap(struct walk *walk)
{
	memset(walk->gap, 0, sizeof(walk->gap));
	walk->gap_count = 0;
}

/* The gap becomes a loss between two events' times; `position`: of the one before it. */
static int add_gap(struct walk *walk, uint64_t position, uint64_t from_ns)
{
	struct tailor_harvest *harvest = walk->harvest;
	struct tailor_loss loss = {.from_ns = from_ns, .to_ns = walk->later_ns, .events = walk->gap_count};
	struct tailor_hold *hold = walk->source->hold;

	if (!walk->gap_count)
		return 0;
	/* The same gap is in many windows. */
	for (int why = 0; why < TAILOR_LOST_REASONS && hold && position + 1 >= hold->counted; why++)
		hold->lost[why] += walk->gap[why];
	memcpy(loss.channel, walk->source->name, sizeof(loss.channel));
	if (harvest_reserve(&harvest->all_losses, &harvest->all_loss_capacity, harvest->all_loss_count + 1, sizeof(loss)))
		return -ENOMEM;
	harvest->all_losses[harvest->all_loss_count++] = loss;
	return 0;
}

/* Whether it was written at the time that it has: faults are counted together until their thread leaves its CPU, and have the last one's. */
static int tells_when(uint8_t kind)
{
	return kind != TAILOR_EVENT_PAGE_FAULTS;
}

/* Comes to an event of that time: what is unreadable behind it is told. Returns 0 or -ENOMEM. */
static int pass(struct walk *walk, uint64_t position, uint64_t time_ns)
{
	int too_old = time_ns + DISORDER_NS < walk->earlier_ns;

	/* A gap after the window's end, or in what is read before it for good measure, is no loss of it. */
	if (!too_old || walk->old == 0) {
		if (time_ns < walk->to_ns && walk->later_ns > walk->window_ns && add_gap(walk, position, time_ns))
			return -ENOMEM;
		if (walk->gap_count && walk->later_ns <= walk->window_ns && !walk->whole_ns)
			walk->whole_ns = walk->later_ns;
		if (walk->gap_count)
			clear_gap(walk);
	}
	walk->old = too_old ? walk->old + 1 : 0;
	walk->done = walk->done || walk->old == OUTLIERS_MAX;
	if (!too_old)
		walk->later_ns = time_ns;
	return 0;
}

/* Takes the event that was read to the end of harvest->read. */
static int take(struct walk *walk, uint64_t position, size_t held)
{
	const struct tailor_source *source = walk->source;
	struct tailor_harvest *harvest = walk->harvest;
	struct tailor_window_event *event = &harvest->read[harvest->read_count];

	if (tells_when(event->event.kind)) {
		if (pass(walk, position, event->event.time_ns))
			return -ENOMEM;
		if (walk->old > 0)
			return 0;
	}
	if (event->event.time_ns < walk->from_ns) {
		walk->done = walk->earlier_left-- == 0;
		return event->event.time_ns < walk->earlier_ns ? 0 : harvest_add_earlier(harvest, &event->event);
	}
	if (event->event.time_ns > walk->to_ns)
		return 0;
	if (add_text(harvest, source, position, held, event))
		return -ENOMEM;
	if (source->own_pid && event->event.pid == source->own_pid)
		event->event.pid = source->pid;
	harvest->read_count++;
	return 0;
}

/* Through the positions [oldest, end) of the ring. */
static int walk_ring(struct walk *walk, uint64_t oldest, uint64_t end)
{
	const struct tailor_channel *channel = &walk->source->channel;
	struct tailor_harvest *harvest = walk->harvest;
	uint64_t position = end;

	while (position-- > oldest && !walk->done) {
		struct tailor_window_event *event;
		enum tailor_read result;
		enum tailor_lost why;

		__builtin_prefetch(&channel->slots[(position - PREFETCH_SLOTS) & channel->mask]);
		if (harvest_reserve(&harvest->read, &harvest->read_capacity, harvest->read_count + 1, sizeof(*event)))
			return -ENOMEM;
		event = &harvest->read[harvest->read_count];
		result = tailor_hold_read(channel, position, &event->event, &why);
		/* What is just being written at the end is not lost. */
		if (result == TAILOR_READ_LOST || (result != TAILOR_READ_OK && walk->later_ns != UINT64_MAX))
			lose(walk, why, 1);
		else if (result == TAILOR_READ_OK && event->event.kind != TAILOR_EVENT_TEXT && take(walk, position, IN_RING))
			return -ENOMEM;
	}
	return 0;
}

/* Through what is held, whose last position is before `end`; what lies between two copies is lost. */
static int walk_hold(struct walk *walk, uint64_t end)
{
	const struct tailor_hold *hold = walk->source->hold;
	struct tailor_harvest *harvest = walk->harvest;

	for (size_t i = hold->first + hold->count; i-- > hold->first && !walk->done;) {
		uint64_t position = tailor_hold_position_of(&hold->slots[i]);

		lose(walk, TAILOR_LOST_OVERWRITTEN, end - 1 - position);
		end = position;
		if (hold->slots[i].kind == TAILOR_EVENT_TEXT)
			continue;
		if (harvest_reserve(&harvest->read, &harvest->read_capacity, harvest->read_count + 1, sizeof(*harvest->read)))
			return -ENOMEM;
		harvest->read[harvest->read_count].event = hold->slots[i];
		if (take(walk, position, i))
			return -ENOMEM;
	}
	if (!walk->done)
		lose(walk, TAILOR_LOST_OVERWRITTEN, end - hold->begin);
	return 0;
}

/* Everything that is left was read, and the window began before it: what was there is gone. `first`: the oldest position known. */
static int end_walk(struct walk *walk, uint64_t first)
{
	const struct tailor_hold *hold = walk->source->hold;
	uint64_t since = hold ? tailor_hold_position(hold, walk->window_ns) : 0;

	if (walk->done || walk->old > 0 || walk->later_ns <= walk->window_ns)
		return 0;
	if (hold && hold->since_ns && hold->since_ns <= walk->window_ns)
		return 0;
	/* Where it is not known how far the channel had come then, it was one event at least. */
	if (first > 0)
		lose(walk, TAILOR_LOST_OVERWRITTEN, since == 0 || since >= first ? 1 : first - since);
	return add_gap(walk, first, 0);
}

/* From when on there is no gap before the window; `first`: the oldest position known. */
static uint64_t whole_since(const struct walk *walk, uint64_t first)
{
	int to_its_begin = walk->old > 0 || (first == 0 && !walk->done && !walk->gap_count);
	uint64_t since_ns = walk->whole_ns ? walk->whole_ns : walk->later_ns;

	if (!walk->whole_ns && to_its_begin)
		return walk->earlier_ns;
	return since_ns < UINT64_MAX - DISORDER_NS ? since_ns + DISORDER_NS : UINT64_MAX;
}

int harvest_walk(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t window_ns, uint64_t to_ns)
{
	struct walk walk = {.harvest = harvest, .source = source, .window_ns = window_ns, .to_ns = to_ns, .later_ns = UINT64_MAX};
	struct tailor_hold *hold = source->hold;
	uint64_t end = tailor_channel_end(&source->channel), slots = source->channel.mask + 1;
	uint64_t oldest = end > slots ? end - slots : 0, held = hold ? hold->next : 0, position = end;
	int error;

	walk.from_ns = window_ns > source->before_ns ? window_ns - source->before_ns : 0;
	walk.earlier_ns = walk.from_ns > source->earlier_ns ? walk.from_ns - source->earlier_ns : 0;
	walk.earlier_left = HARVEST_EARLIER_MAX;
	if (end - oldest > SEARCH_POSITIONS) {
		position = search_end(&source->channel, oldest, end, to_ns);
		position = end - position > OUTLIERS_MAX ? position + OUTLIERS_MAX : end;
	}
	if (held > oldest) {
		/* A search ends early where the window does. */
		error = walk_ring(&walk, held < position ? held : position, position);
		oldest = held;
	} else {
		error = walk_ring(&walk, oldest, position);
	}
	if (!error && held && !walk.done) {
		lose(&walk, hold->full ? TAILOR_LOST_THINNED : TAILOR_LOST_OVERWRITTEN, oldest - held);
		error = walk_hold(&walk, held);
		oldest = hold->begin;
	}
	if (!error)
		error = end_walk(&walk, oldest);
	if (source->earlier_ns && whole_since(&walk, oldest) > harvest->read_whole_ns)
		harvest->read_whole_ns = whole_since(&walk, oldest);
	if (hold && hold->counted < end)
		hold->counted = end;
	return error;
}
