/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/collect only: reads one channel's part of a window, backward from its end. */
#ifndef TAILOR_COLLECT_WALK_H
#define TAILOR_COLLECT_WALK_H

#include "collect/harvest.h"

/* Until all events are read, a text is known by its offset + 1: the buffer may move. */
#define HARVEST_TEXT(offset) ((const char *)(uintptr_t)((offset) + 1))

/* Makes room for `needed` things of that size in *memory, which may move. Returns 0 or -ENOMEM. */
int harvest_reserve(void *memory, size_t *capacity, size_t needed, size_t size);

/* Adds the event to what matters before the window if it does. Returns 0 or -ENOMEM. */
int harvest_add_earlier(struct tailor_harvest *harvest, const struct tailor_event *event);

/*
 * Adds to harvest->read, newest first, what the channel and its hold have of [window_ns - before_ns, to_ns], and to all_losses what they
 * have lost of [window_ns, to_ns]; and what matters of earlier_ns before that, with since when it is whole. Returns 0 or -ENOMEM.
 */
int harvest_walk(struct tailor_harvest *harvest, const struct tailor_source *source, uint64_t window_ns, uint64_t to_ns);

#endif /* TAILOR_COLLECT_WALK_H */
