/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1.h"

#include <errno.h>

#include "http1/characters.h"
#include "http1/head.h"

#define SIZE_LINE_BYTES 4096
#define TRAILER_BYTES 8192

enum chunked_state {
	SIZE_FIRST = 0, /* at least one digit */
	SIZE,
	EXTENSION_END, /* after a size, a name or a value: white space, then ";" */
	EXTENSION_NAME_FIRST,
	EXTENSION_NAME,
	EXTENSION_NAME_END, /* white space after a name: "=" or ";" */
	EXTENSION_VALUE_FIRST,
	EXTENSION_VALUE,
	EXTENSION_QUOTED,
	EXTENSION_ESCAPED,
	EXTENSION_QUOTED_END,
	SIZE_FEED,
	DATA,
	DATA_RETURN,
	DATA_FEED,
	TRAILER_FIRST, /* a name or the end */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_FEED,
	LAST_FEED,
	DONE,
	BROKEN,
};

/* Where a size line may go on from the end of one of its parts. */
static enum chunked_state after_part(char byte)
{
	switch (byte) {
	case '\r': return SIZE_FEED;
	case ';': return EXTENSION_NAME_FIRST;
	case ' ':
	case '\t': return EXTENSION_END;
	default: return BROKEN;
	}
}

static enum chunked_state take_size(struct http1_chunked *chunked, char byte)
{
	int digit = http1_hex(byte);

	if (digit < 0)
		return chunked->state == SIZE ? after_part(byte) : BROKEN;
	if (chunked->left > (uint64_t)INT64_MAX >> 4)
		return BROKEN;
	chunked->left = chunked->left << 4 | (unsigned int)digit;
	return SIZE;
}

/* chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) (RFC 9112, 7.1.1) */
static enum chunked_state take_extension(enum chunked_state state, char byte)
{
	bool token = http1_is(byte, HTTP1_IS_TOKEN), space = http1_is_space(byte);

	switch (state) {
	case EXTENSION_END: return space ? EXTENSION_END : byte == ';' ? EXTENSION_NAME_FIRST : BROKEN;
	case EXTENSION_NAME_FIRST: return space ? state : token ? EXTENSION_NAME : BROKEN;
	case EXTENSION_NAME:
		if (token)
			return EXTENSION_NAME;
		if (byte == '=')
			return EXTENSION_VALUE_FIRST;
		return space ? EXTENSION_NAME_END : after_part(byte);
	case EXTENSION_NAME_END:
		if (byte == '=')
			return EXTENSION_VALUE_FIRST;
		return space ? EXTENSION_NAME_END : byte == ';' ? EXTENSION_NAME_FIRST : BROKEN;
	case EXTENSION_VALUE_FIRST:
		if (byte == '"')
			return EXTENSION_QUOTED;
		return space ? EXTENSION_VALUE_FIRST : token ? EXTENSION_VALUE : BROKEN;
	case EXTENSION_VALUE: return token ? EXTENSION_VALUE : after_part(byte);
	case EXTENSION_QUOTED:
		if (byte == '"')
			return EXTENSION_QUOTED_END;
		if (byte == '\\')
			return EXTENSION_ESCAPED;
		return http1_is(byte, HTTP1_IS_VALUE) ? EXTENSION_QUOTED : BROKEN;
	case EXTENSION_ESCAPED: return http1_is(byte, HTTP1_IS_VALUE) ? EXTENSION_QUOTED : BROKEN;
	case EXTENSION_QUOTED_END: return after_part(byte);
	default: return BROKEN;
	}
}

static enum chunked_state take_trailer_name(struct http1_chunked *chunked, char byte)
{
	if (!http1_is(byte, HTTP1_IS_TOKEN))
		return BROKEN;
	/* One more than a known name has is none. */
	if (chunked->name_length < sizeof(chunked->name))
		chunked->name[chunked->name_length] = byte;
	if (chunked->name_length <= sizeof(chunked->name))
		chunked->name_length++;
	return TRAILER_NAME;
}

static bool may_trail(const struct http1_chunked *chunked)
{
	if (chunked->name_length > sizeof(chunked->name))
		return true;
	switch (http1_known_field((struct http1_text){chunked->name, chunked->name_length})) {
	case HTTP1_CONNECTION:
	case HTTP1_CONTENT_LENGTH:
	case HTTP1_TRANSFER_ENCODING:
	case HTTP1_HOST:
	case HTTP1_EXPECT:
	case HTTP1_UPGRADE:
	case HTTP1_KEEP_ALIVE:
	case HTTP1_PROXY_CONNECTION:
	case HTTP1_TE:
	case HTTP1_TRAILER:
	case HTTP1_HTTP2_SETTINGS: return false;
	default: return true;
	}
}

static enum chunked_state take_trailer(struct http1_chunked *chunked, char byte)
{
	enum chunked_state state = (enum chunked_state)chunked->state;

	switch (state) {
	case TRAILER_FIRST:
		chunked->name_length = 0;
		return byte == '\r' ? LAST_FEED : take_trailer_name(chunked, byte);
	case TRAILER_NAME:
		if (byte == ':')
			return may_trail(chunked) ? TRAILER_VALUE : BROKEN;
		return take_trailer_name(chunked, byte);
	case TRAILER_VALUE:
		if (byte == '\r')
			return TRAILER_FEED;
		return http1_is(byte, HTTP1_IS_VALUE) ? TRAILER_VALUE : BROKEN;
	case TRAILER_FEED: return byte == '\n' ? TRAILER_FIRST : BROKEN;
	case LAST_FEED: return byte == '\n' ? DONE : BROKEN;
	default: return BROKEN;
	}
}

static enum chunked_state take_size_feed(struct http1_chunked *chunked, char byte)
{
	if (byte != '\n')
		return BROKEN;
	chunked->line = 0;
	if (chunked->left > 0)
		return DATA;
	chunked->trailer_started = true;
	return TRAILER_FIRST;
}

static enum chunked_state take_byte(struct http1_chunked *chunked, char byte)
{
	enum chunked_state state = (enum chunked_state)chunked->state;

	if (state < DATA || state > DATA_FEED) {
		/* Trailers count together, so that many short ones are no way around the limit. */
		if (++chunked->line > (chunked->trailer_started ? TRAILER_BYTES : SIZE_LINE_BYTES))
			return BROKEN;
	}
	switch (state) {
	case SIZE_FIRST:
	case SIZE: return take_size(chunked, byte);
	case SIZE_FEED: return take_size_feed(chunked, byte);
	case DATA_RETURN: return byte == '\r' ? DATA_FEED : BROKEN;
	case DATA_FEED: return byte == '\n' ? SIZE_FIRST : BROKEN;
	default: return state >= TRAILER_FIRST ? take_trailer(chunked, byte) : take_extension(state, byte);
	}
}

int64_t http1_chunked_take(struct http1_chunked *chunked, const char *data, size_t length, bool *ret_done)
{
	size_t taken = 0;

	while (taken < length && chunked->state != DONE && chunked->state != BROKEN) {
		if (chunked->state == DATA) {
			size_t part = length - taken < chunked->left ? length - taken : (size_t)chunked->left;

			chunked->left -= part;
			chunked->data += part;
			taken += part;
			if (chunked->left == 0)
				chunked->state = DATA_RETURN;
			continue;
		}
		chunked->state = (uint8_t)take_byte(chunked, data[taken++]);
	}
	*ret_done = chunked->state == DONE;
	return chunked->state == BROKEN ? -EPROTO : (int64_t)taken;
}

uint64_t http1_chunked_data(const struct http1_chunked *chunked)
{
	return chunked->state == DATA ? chunked->left : 0;
}
