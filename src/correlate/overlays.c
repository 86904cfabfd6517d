/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/overlays.h"

#include <errno.h>
#include <stdlib.h>

/* Storms of faults this close together are one. */
#define STORM_GAP_NS 50000
/* Less of a storm than this is only counted. */
#define STORM_NS 10000

static int by_thread_and_start(const void *a, const void *b)
{
	const struct overlay *left = a, *right = b;

	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

/* Makes the overlays of one thread disjoint: what touches or nests becomes one. */
static size_t settle(struct overlay *overlays, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct overlay *last = kept > 0 ? &overlays[kept - 1] : NULL;

		if (last && last->tid == overlays[i].tid && overlays[i].start_ns <= last->end_ns) {
			if (overlays[i].end_ns > last->end_ns)
				last->end_ns = overlays[i].end_ns;
			if (overlays[i].cause > last->cause) /* a fault that needed the disk decides */
				last->cause = overlays[i].cause;
			last->count += overlays[i].count;
			if (!last->name)
				last->name = overlays[i].name;
			continue;
		}
		overlays[kept++] = overlays[i];
	}
	return kept;
}

static int is_dense(uint64_t ns, uint64_t start_ns, uint64_t end_ns)
{
	return ns >= (end_ns - start_ns) / 2;
}

/* Joins storms while faults fill half of them; where they do not, the time is the thread's own, with the faults counted. */
static size_t settle_storms(struct overlay *storms, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct overlay *last = kept > 0 ? &storms[kept - 1] : NULL;
		struct overlay storm = storms[i];

		if (last && last->tid == storm.tid && storm.start_ns < last->end_ns)
			storm.start_ns = last->end_ns;
		if (storm.start_ns >= storm.end_ns)
			continue;
		storm.ns = storm.ns < storm.end_ns - storm.start_ns ? storm.ns : storm.end_ns - storm.start_ns;
		if (last && last->tid == storm.tid && storm.start_ns - last->end_ns <= STORM_GAP_NS &&
		    is_dense(last->ns, last->start_ns, last->end_ns) && is_dense(storm.ns, storm.start_ns, storm.end_ns) &&
		    is_dense(last->ns + storm.ns, last->start_ns, storm.end_ns)) {
			last->end_ns = storm.end_ns;
			last->ns += storm.ns;
			last->count += storm.count;
			last->address = storm.address < last->address ? storm.address : last->address;
			continue;
		}
		storms[kept++] = storm;
	}
	for (size_t i = 0; i < kept; i++) {
		if (!is_dense(storms[i].ns, storms[i].start_ns, storms[i].end_ns) || storms[i].end_ns - storms[i].start_ns < STORM_NS)
			storms[i].cause = TAILOR_CAUSE_ON_CPU;
	}
	return kept;
}

static struct layer *layer_of(struct overlays *overlays, uint8_t kind)
{
	switch (kind) {
	case TAILOR_EVENT_CLASS_LOAD:
	case TAILOR_EVENT_CLASS_PREPARE: return &overlays->classes;
	case TAILOR_EVENT_PAGE_FAULT_END: return &overlays->faults;
	case TAILOR_EVENT_PAGE_FAULTS: return &overlays->storms;
	case TAILOR_EVENT_INTERRUPT: return &overlays->interrupts;
	default: return NULL;
	}
}

static void add_event(struct overlays *overlays, const struct tailor_window_event *entry)
{
	const struct tailor_event *event = &entry->event;
	struct layer *layer = layer_of(overlays, event->kind);
	struct overlay overlay = {.tid = event->tid, .end_ns = event->time_ns, .count = 1};
	uint64_t ns;

	if (!layer)
		return;
	ns = layer == &overlays->faults ? event->arg[1] : event->arg[0];
	overlay.start_ns = ns < event->time_ns && ns > 0 ? event->time_ns - ns : event->time_ns;
	if (layer == &overlays->classes) {
		overlay.cause = TAILOR_CAUSE_CLASS_LOADING;
		overlay.name = entry->text;
		overlay.count = event->kind == TAILOR_EVENT_CLASS_LOAD;
	} else if (layer == &overlays->faults) {
		overlay.cause = event->extra == 1 ? TAILOR_CAUSE_PAGE_FAULT_MAJOR : TAILOR_CAUSE_PAGE_FAULT_MINOR;
		overlay.address = event->arg[0];
	} else if (layer == &overlays->storms) {
		overlay.start_ns = event->arg[0];
		overlay.cause = TAILOR_CAUSE_PAGE_FAULT_MINOR;
		overlay.ns = event->arg[1];
		overlay.count = event->extra;
		overlay.address = event->arg[2];
	} else {
		overlay.cause = TAILOR_CAUSE_INTERRUPTS;
		overlay.address = event->extra;
	}
	if (overlay.start_ns < overlay.end_ns)
		layer->list[layer->count++] = overlay;
}

int overlays_build(struct overlays *overlays, const struct tailor_window *window)
{
	struct layer *layers[] = {&overlays->classes, &overlays->faults, &overlays->storms, &overlays->interrupts};

	*overlays = (struct overlays){0};
	for (size_t i = 0; i < window->event_count; i++) {
		struct layer *layer = layer_of(overlays, window->events[i].event.kind);

		if (layer)
			layer->count++;
	}
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		layers[i]->list = calloc(layers[i]->count + 1, sizeof(struct overlay));
		if (!layers[i]->list)
			return -ENOMEM;
		layers[i]->count = 0;
	}
	for (size_t i = 0; i < window->event_count; i++)
		add_event(overlays, &window->events[i]);
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		struct layer *layer = layers[i];

		if (layer->count > 1)
			qsort(layer->list, layer->count, sizeof(*layer->list), by_thread_and_start);
		layer->count = layer == &overlays->storms ? settle_storms(layer->list, layer->count) : settle(layer->list, layer->count);
	}
	return 0;
}

void overlays_free(struct overlays *overlays)
{
	free(overlays->classes.list);
	free(overlays->faults.list);
	free(overlays->storms.list);
	free(overlays->interrupts.list);
	*overlays = (struct overlays){0};
}

const struct overlay *overlay_after(const struct layer *layer, uint32_t tid, uint64_t time_ns)
{
	size_t low = 0, high = layer->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct overlay *overlay = &layer->list[middle];

		if (overlay->tid < tid || (overlay->tid == tid && overlay->end_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < layer->count && layer->list[low].tid == tid ? &layer->list[low] : NULL;
}

const struct overlay *overlay_next(const struct layer *layer, const struct overlay *overlay)
{
	const struct overlay *next = overlay + 1;

	return next < layer->list + layer->count && next->tid == overlay->tid ? next : NULL;
}
