/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/text.h"

int tailor_text_join(const struct tailor_event *slots, unsigned int count, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < count; i++) {
		struct tailor_text slot;
		size_t length;

		memcpy(&slot, &slots[i], sizeof(slot));
		if (slot.kind != TAILOR_EVENT_TEXT || slot.length > TAILOR_TEXT_BYTES) {
			text[0] = '\0';
			return -1;
		}
		length = slot.length;
		if (length > size - 1 - used)
			length = size - 1 - used;
		memcpy(text + used, slot.text, length);
		used += length;
		text[used] = '\0';
	}
	return (int)used;
}

int tailor_text_read(const struct tailor_channel *channel, uint64_t position, const struct tailor_event *event, char *text, size_t size)
{
	unsigned int count = event->texts < TAILOR_TEXTS_MAX ? event->texts : TAILOR_TEXTS_MAX;
	struct tailor_event slots[TAILOR_TEXTS_MAX];

	for (unsigned int i = 0; i < count; i++) {
		if (tailor_channel_read(channel, position + 1 + i, &slots[i]) != TAILOR_READ_OK)
			slots[i].kind = TAILOR_EVENT_NONE;
	}
	return tailor_text_join(slots, count, text, size);
}
