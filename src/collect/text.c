/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/text.h"

int tailor_text_read(const struct tailor_channel *channel, uint64_t position, const struct tailor_event *event, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 1; i <= event->texts && i <= TAILOR_TEXTS_MAX; i++) {
		union {
			struct tailor_event event;
			struct tailor_text text;
		} slot;
		size_t length;

		if (tailor_channel_read(channel, position + i, &slot.event) != TAILOR_READ_OK ||
		    slot.text.kind != TAILOR_EVENT_TEXT || slot.text.length > TAILOR_TEXT_BYTES) {
			text[0] = '\0';
			return -1;
		}
		length = slot.text.length;
		if (length > size - 1 - used)
			length = size - 1 - used;
		memcpy(text + used, slot.text.text, length);
		used += length;
		text[used] = '\0';
	}
	return (int)used;
}
