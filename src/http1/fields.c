/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1.h"

#include <string.h>

#include "http1/characters.h"
#include "http1/head.h"

int http1_read_line(struct http1_cursor *cursor, struct http1_text *ret_line)
{
	const char *end = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));

	if (!end)
		return 0;
	if (end == cursor->at || end[-1] != '\r')
		return -400;
	*ret_line = (struct http1_text){cursor->at, (size_t)(end - 1 - cursor->at)};
	cursor->at = end + 1;
	return 1;
}

int http1_read_version(const char *text, size_t length, uint8_t *ret_minor)
{
	if (length != 8 || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.')
		return -400;
	if (text[5] < '0' || text[5] > '9' || text[7] < '0' || text[7] > '9')
		return -400;
	if (text[5] != '1')
		return -505;
	*ret_minor = text[7] != '0';
	return 0;
}

bool http1_is_value(const char *data, size_t length)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;

	/* Eight at a time: a byte below 0x20 (the tab too) or 0x7f sends its word to the slow loop. */
	while (length >= 8) {
		uint64_t word, rubout;

		memcpy(&word, data, 8);
		rubout = word ^ (ones * 0x7f);
		if ((((word - ones * 0x20) & ~word) | ((rubout - ones) & ~rubout)) & highs) {
			for (int i = 0; i < 8; i++)
				if (!http1_is(data[i], HTTP1_IS_VALUE))
					return false;
		}
		data += 8;
		length -= 8;
	}
	while (length > 0)
		if (!http1_is(data[--length], HTTP1_IS_VALUE))
			return false;
	return true;
}

/* By length and first letter there is at most one candidate, or two. */
enum http1_known http1_known_field(struct http1_text name)
{
#define CANDIDATE(text, known)                                                                                         \
	if (http1_same(name.data, text, sizeof(text) - 1))                                                             \
	return known
	switch (name.length << 8 | (uint8_t)(name.data[0] | 0x20)) {
	case 2 << 8 | 't': CANDIDATE("te", HTTP1_TE); break;
	case 4 << 8 | 'h': CANDIDATE("host", HTTP1_HOST); break;
	case 4 << 8 | 'd': CANDIDATE("date", HTTP1_DATE); break;
	case 6 << 8 | 'e': CANDIDATE("expect", HTTP1_EXPECT); break;
	case 6 << 8 | 's': CANDIDATE("server", HTTP1_SERVER); break;
	case 7 << 8 | 'u': CANDIDATE("upgrade", HTTP1_UPGRADE); break;
	case 7 << 8 | 't': CANDIDATE("trailer", HTTP1_TRAILER); break;
	case 10 << 8 | 'c': CANDIDATE("connection", HTTP1_CONNECTION); break;
	case 10 << 8 | 'k': CANDIDATE("keep-alive", HTTP1_KEEP_ALIVE); break;
	case 10 << 8 | 't': CANDIDATE("tracestate", HTTP1_TRACESTATE); break;
	case 11 << 8 | 't': CANDIDATE("traceparent", HTTP1_TRACEPARENT); break;
	case 12 << 8 | 'x': CANDIDATE("x-request-id", HTTP1_X_REQUEST_ID); break;
	case 14 << 8 | 'h': CANDIDATE("http2-settings", HTTP1_HTTP2_SETTINGS); break;
	case 14 << 8 | 'c': CANDIDATE("content-length", HTTP1_CONTENT_LENGTH); break;
	case 16 << 8 | 'p': CANDIDATE("proxy-connection", HTTP1_PROXY_CONNECTION); break;
	case 17 << 8 | 't': CANDIDATE("transfer-encoding", HTTP1_TRANSFER_ENCODING); break;
	default: break;
	}
#undef CANDIDATE
	return HTTP1_OTHER;
}

static bool is_text(struct http1_text text, const char *expected)
{
	return text.length == strlen(expected) && http1_same(text.data, expected, text.length);
}

/* 1*DIGIT (RFC 9110, 8.6), below 2^63 so that sums of lengths cannot overflow. */
static int take_content_length(struct http1_text value, struct http1_facts *facts)
{
	uint64_t length = 0;

	if (facts->has_content_length || value.length == 0)
		return -400;
	for (size_t i = 0; i < value.length; i++) {
		unsigned int digit = (unsigned int)((uint8_t)value.data[i] - '0');

		if (digit > 9 || length > ((uint64_t)INT64_MAX - digit) / 10)
			return -400;
		length = length * 10 + digit;
	}
	facts->has_content_length = true;
	facts->content_length = length;
	return 0;
}

/* Several lines are one list (RFC 9110, 5.3); an empty element is refused, since readers differ about it. */
static int take_transfer_encoding(struct http1_text value, struct http1_facts *facts)
{
	struct http1_text coding;

	facts->has_transfer_encoding = true;
	while (http1_list_next(&value, &coding)) {
		size_t name = 0;
		struct http1_text rest;

		while (name < coding.length && http1_is(coding.data[name], HTTP1_IS_TOKEN))
			name++;
		rest = http1_trim(coding.data + name, coding.data + coding.length);
		if (name == 0 || (rest.length > 0 && rest.data[0] != ';'))
			return -400;
		if (facts->chunked)
			return -400; /* not the last one, or twice */
		if (is_text((struct http1_text){coding.data, name}, "chunked")) {
			if (rest.length > 0)
				return -400; /* it has no parameters (RFC 9112, 7.1) */
			facts->chunked = true;
		} else {
			facts->unknown_coding = true;
		}
	}
	return 0;
}

static void take_connection(struct http1_text value, struct http1_facts *facts)
{
	struct http1_text option;

	while (http1_list_next(&value, &option)) {
		if (is_text(option, "close"))
			facts->close = true;
		else if (is_text(option, "keep-alive"))
			facts->keep_alive = true;
		else if (is_text(option, "upgrade"))
			facts->upgrade_named = true;
	}
}

static int take_field(const struct http1_field *field, struct http1_facts *facts)
{
	switch (field->known) {
	case HTTP1_CONTENT_LENGTH: return take_content_length(field->value, facts);
	case HTTP1_TRANSFER_ENCODING: return take_transfer_encoding(field->value, facts);
	case HTTP1_CONNECTION: take_connection(field->value, facts); return 0;
	case HTTP1_UPGRADE: facts->upgrade = true; return 0;
	case HTTP1_HOST:
		facts->host = field->value;
		facts->hosts++;
		return 0;
	case HTTP1_EXPECT:
		if (facts->response)
			return 0;
		facts->expect_continue = true;
		return is_text(field->value, "100-continue") ? 0 : -417;
	default: return 0;
	}
}

int http1_read_fields(struct http1_cursor *cursor, size_t fields_max, struct http1_head *head,
                      struct http1_facts *facts)
{
	if (fields_max > HTTP1_FIELDS_MAX)
		fields_max = HTTP1_FIELDS_MAX;
	head->field_count = 0;
	for (;;) {
		struct http1_field *field = &head->field[head->field_count];
		struct http1_text line;
		size_t name = 0;
		int status = http1_read_line(cursor, &line);

		if (status != 1)
			return status;
		if (line.length == 0)
			return 1;
		/* White space at the start (obs-fold) or before the colon ends the name where no colon is. */
		while (name < line.length && http1_is(line.data[name], HTTP1_IS_TOKEN))
			name++;
		if (name == 0 || name == line.length || line.data[name] != ':')
			return -400;
		if (!http1_is_value(line.data + name + 1, line.length - name - 1))
			return -400;
		if (head->field_count == fields_max)
			return -431;
		field->name = (struct http1_text){line.data, name};
		field->value = http1_trim(line.data + name + 1, line.data + line.length);
		field->known = (uint8_t)http1_known_field(field->name);
		status = take_field(field, facts);
		if (status < 0)
			return status;
		head->field_count++;
	}
}

int http1_check_framing(const struct http1_head *head, const struct http1_facts *facts)
{
	if (!facts->has_transfer_encoding)
		return 0;
	if (head->minor == 0 || facts->has_content_length)
		return -400;
	if (!facts->chunked)
		return -400; /* its end cannot be known, whatever the codings mean */
	return facts->unknown_coding ? -501 : 0;
}

bool http1_find_end(const char *data, size_t length, size_t start, struct http1_search *search)
{
	size_t from = search->scanned > start ? search->scanned : start;

	while (from < length) {
		const char *feed = memchr(data + from, '\n', length - from);
		size_t at;

		if (!feed)
			break;
		at = (size_t)(feed - data);
		if (at > start && data[at - 1] == '\r')
			at--;
		if (at == start || data[at - 1] == '\n')
			return true;
		from = (size_t)(feed - data) + 1;
	}
	search->scanned = length;
	return false;
}

static bool list_has(struct http1_text list, struct http1_text token)
{
	struct http1_text element;

	while (http1_list_next(&list, &element))
		if (element.length == token.length && http1_same(element.data, token.data, token.length))
			return true;
	return false;
}

bool http1_list_has(struct http1_text value, const char *token)
{
	return list_has(value, (struct http1_text){token, strlen(token)});
}

bool http1_is_hop_by_hop(const struct http1_head *head, const struct http1_field *field)
{
	switch (field->known) {
	case HTTP1_CONNECTION:
	case HTTP1_PROXY_CONNECTION:
	case HTTP1_KEEP_ALIVE:
	case HTTP1_TE:
	case HTTP1_TRANSFER_ENCODING:
	case HTTP1_UPGRADE:
	case HTTP1_HTTP2_SETTINGS: return true;
	/* Meant for everyone: "Connection: content-length" must not make the next server read a body as a request. */
	case HTTP1_CONTENT_LENGTH:
	case HTTP1_HOST: return false;
	default: break;
	}
	for (size_t i = 0; i < head->field_count; i++)
		if (head->field[i].known == HTTP1_CONNECTION && list_has(head->field[i].value, field->name))
			return true;
	return false;
}
