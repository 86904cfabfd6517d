/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/reframe.h"

#include <stdio.h>
#include <string.h>

#define LAST_CHUNK "0\r\n\r\n"
/* Size line of up to 8 digits, and the line end behind the data. */
#define CHUNK_OVERHEAD (8 + 2 + 2)

uint32_t reframe_to_chunked(struct exchange *exchange, const char *data, uint32_t length, char *out, uint32_t out_bytes)
{
	uint32_t room = out_bytes - exchange->out_end;
	uint32_t used = 0;

	if (length > 0 && room > CHUNK_OVERHEAD) {
		char line[16];
		int line_length;

		used = length < room - CHUNK_OVERHEAD ? length : room - CHUNK_OVERHEAD;
		line_length = snprintf(line, sizeof(line), "%x\r\n", used);
		memcpy(out + exchange->out_end, line, (size_t)line_length);
		exchange->out_end += (uint32_t)line_length;
		memcpy(out + exchange->out_end, data, used);
		exchange->out_end += used;
		memcpy(out + exchange->out_end, "\r\n", 2);
		exchange->out_end += 2;
	}
	room = out_bytes - exchange->out_end;
	if (exchange->response_complete && used == length && !exchange->tail_written &&
	    room >= sizeof(LAST_CHUNK) - 1) {
		memcpy(out + exchange->out_end, LAST_CHUNK, sizeof(LAST_CHUNK) - 1);
		exchange->out_end += sizeof(LAST_CHUNK) - 1;
		exchange->tail_written = true;
	}
	return used;
}

enum {
	CHUNK_SIZE,      /* digits of a size line */
	CHUNK_EXTENSION, /* the rest of that line */
	CHUNK_DATA,
	CHUNK_DATA_END, /* the line end behind the data */
	CHUNK_TRAILER,  /* all that follows the last chunk's size line */
};

static unsigned int digit(char character)
{
	if (character >= '0' && character <= '9')
		return (unsigned int)(character - '0');
	return (unsigned int)((character | 0x20) - 'a' + 10);
}

static void take_framing(struct exchange *exchange, char character)
{
	switch (exchange->chunk_state) {
	case CHUNK_SIZE:
		if ((character >= '0' && character <= '9') ||
		    ((character | 0x20) >= 'a' && (character | 0x20) <= 'f')) {
			exchange->chunk_left = exchange->chunk_left * 16 + digit(character);
			break;
		}
		exchange->chunk_state = CHUNK_EXTENSION;
		__attribute__((fallthrough));
	case CHUNK_EXTENSION:
		if (character == '\n')
			exchange->chunk_state = exchange->chunk_left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
		break;
	case CHUNK_DATA_END:
		if (character == '\n')
			exchange->chunk_state = CHUNK_SIZE;
		break;
	default: break;
	}
}

uint32_t reframe_from_chunked(struct exchange *exchange, const char *data, uint32_t length, char *out,
                              uint32_t out_bytes)
{
	uint32_t used = 0;

	while (used < length) {
		uint32_t run = length - used;
		uint32_t room = out_bytes - exchange->out_end;

		if (exchange->chunk_state != CHUNK_DATA) {
			take_framing(exchange, data[used++]);
			continue;
		}
		if (room == 0)
			break;
		if (run > exchange->chunk_left)
			run = (uint32_t)exchange->chunk_left;
		if (run > room)
			run = room;
		memcpy(out + exchange->out_end, data + used, run);
		exchange->out_end += run;
		used += run;
		exchange->chunk_left -= run;
		if (exchange->chunk_left == 0)
			exchange->chunk_state = CHUNK_DATA_END;
	}
	return used;
}
