/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/http1 only: character classes and texts. */
#ifndef TAILOR_HTTP1_CHARACTERS_H
#define TAILOR_HTTP1_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "http1/http1.h"

enum http1_class {
	HTTP1_IS_TOKEN = 1,  /* tchar, RFC 9110 5.6.2 */
	HTTP1_IS_VALUE = 2,  /* field-vchar, SP and HTAB, RFC 9110 5.5 */
	HTTP1_IS_TARGET = 4, /* in a request target */
	HTTP1_IS_HOST = 8,   /* reg-name without percent-encoding, RFC 3986 3.2.2 */
};

/* Bits of enum http1_class by byte. */
extern const uint8_t http1_classes[256];

static inline bool http1_is(char byte, enum http1_class class)
{
	return http1_classes[(uint8_t)byte] & class;
}

/* The digit's value, or -1. */
static inline int http1_hex(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static inline bool http1_is_space(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Without optional white space at both ends. */
static inline struct http1_text http1_trim(const char *data, const char *end)
{
	while (data < end && http1_is_space(*data))
		data++;
	while (data < end && http1_is_space(end[-1]))
		end--;
	return (struct http1_text){data, (size_t)(end - data)};
}

/* ASCII without case; a locale must not decide what a field is called. */
static inline bool http1_same(const char *one, const char *other, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		uint8_t a = (uint8_t)one[i], b = (uint8_t)other[i];

		a |= (uint8_t)(a >= 'A' && a <= 'Z') << 5;
		b |= (uint8_t)(b >= 'A' && b <= 'Z') << 5;
		if (a != b)
			return false;
	}
	return true;
}

/* Takes the next element off a comma-separated list, trimmed, possibly empty. Returns false at the list's end. */
static inline bool http1_list_next(struct http1_text *list, struct http1_text *ret_element)
{
	const char *comma, *end;

	if (!list->data)
		return false;
	end = list->data + list->length;
	comma = memchr(list->data, ',', list->length);
	*ret_element = http1_trim(list->data, comma ? comma : end);
	*list = comma ? (struct http1_text){comma + 1, (size_t)(end - comma - 1)} : (struct http1_text){NULL, 0};
	return true;
}

#endif /* TAILOR_HTTP1_CHARACTERS_H */
