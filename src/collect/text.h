/* SPDX-License-Identifier: Apache-2.0 */
/* The text that stands behind an event in its channel. */
#ifndef TAILOR_COLLECT_TEXT_H
#define TAILOR_COLLECT_TEXT_H

#include <tailor/channel.h>

/*
 * Joins the text slots of the event at `position` into `text`, terminated and cut to `size` (> 0). Returns
 * its length, or -1 with an empty text when a slot of it was lost: half a name would be a wrong name.
 */
int tailor_text_read(const struct tailor_channel *channel, uint64_t position, const struct tailor_event *event, char *text, size_t size);

/* The same from copies of the `count` slots behind the event; what could not be copied is no TAILOR_EVENT_TEXT. */
int tailor_text_join(const struct tailor_event *slots, unsigned int count, char *text, size_t size);

#endif /* TAILOR_COLLECT_TEXT_H */
