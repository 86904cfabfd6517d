/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1.h"

#include <string.h>

#include "http1/characters.h"
#include "http1/head.h"

static enum http1_method known_method(struct http1_text method)
{
#define CANDIDATE(text, known)                                                                                         \
	if (memcmp(method.data, text, sizeof(text) - 1) == 0)                                                          \
	return known
	switch (method.length) {
	case 3:
		CANDIDATE("GET", HTTP1_GET);
		CANDIDATE("PUT", HTTP1_PUT);
		break;
	case 4:
		CANDIDATE("POST", HTTP1_POST);
		CANDIDATE("HEAD", HTTP1_HEAD);
		break;
	case 5:
		CANDIDATE("PATCH", HTTP1_PATCH);
		CANDIDATE("TRACE", HTTP1_TRACE);
		break;
	case 6: CANDIDATE("DELETE", HTTP1_DELETE); break;
	case 7:
		CANDIDATE("OPTIONS", HTTP1_OPTIONS);
		CANDIDATE("CONNECT", HTTP1_CONNECT);
		break;
	default: break;
	}
#undef CANDIDATE
	return HTTP1_METHOD_OTHER;
}

/* uri-host [ ":" port ] (RFC 9110, 7.2), not empty. An IP literal is checked by its characters only. */
static bool is_authority(struct http1_text text)
{
	const char *at = text.data, *end = text.data + text.length;
	unsigned int port = 0;

	if (at < end && *at == '[') {
		const char *start = ++at;

		while (at < end && (http1_hex(*at) >= 0 || *at == ':' || *at == '.'))
			at++;
		if (at - start < 2 || at == end || *at++ != ']')
			return false;
	} else {
		while (at < end) {
			if (http1_is(*at, HTTP1_IS_HOST))
				at++;
			else if (end - at >= 3 && *at == '%' && http1_hex(at[1]) >= 0 && http1_hex(at[2]) >= 0)
				at += 3;
			else
				break;
		}
	}
	if (at == text.data)
		return false;
	if (at == end)
		return true;
	if (*at++ != ':')
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
		port = port * 10 + (unsigned int)(*at - '0');
		if (port > 65535)
			return false;
	}
	return true;
}

/* The authority of an absolute-form target; empty when it is none of http or https. */
static struct http1_text target_authority(struct http1_text target)
{
	size_t start = 0, end;

	if (target.length > 7 && http1_same(target.data, "http://", 7))
		start = 7;
	else if (target.length > 8 && http1_same(target.data, "https://", 8))
		start = 8;
	else
		return (struct http1_text){target.data, 0};
	end = start;
	while (end < target.length && target.data[end] != '/' && target.data[end] != '?')
		end++;
	return (struct http1_text){target.data + start, end - start};
}

static int read_request_line(struct http1_cursor *cursor, struct http1_head *head)
{
	struct http1_text line;
	const char *at, *end, *start;
	int status = http1_read_line(cursor, &line);

	if (status != 1)
		return status;
	at = start = line.data;
	end = at + line.length;
	while (at < end && http1_is(*at, HTTP1_IS_TOKEN))
		at++;
	head->method = (struct http1_text){start, (size_t)(at - start)};
	if (head->method.length == 0 || at == end || *at != ' ')
		return -400;
	start = ++at;
	while (at < end && http1_is(*at, HTTP1_IS_TARGET))
		at++;
	head->target = head->path = (struct http1_text){start, (size_t)(at - start)};
	head->authority = (struct http1_text){start, 0};
	if (head->target.length == 0 || at == end || *at != ' ')
		return -400;
	at++;
	status = http1_read_version(at, (size_t)(end - at), &head->minor);
	if (status < 0)
		return status;
	head->method_known = known_method(head->method);
	return 1;
}

/* The target's form against the method and Host (RFC 9112, 3.2). */
static int check_target(struct http1_head *head, const struct http1_facts *facts)
{
	struct http1_text authority;

	if (facts->hosts > 1 || (facts->hosts == 0 && head->minor >= 1))
		return -400;
	/* Empty is right when the target has no authority. */
	if (facts->host.length > 0 && !is_authority(facts->host))
		return -400;
	if (head->target.data[0] == '/')
		return 0;
	if (head->target.length == 1 && head->target.data[0] == '*')
		return head->method_known == HTTP1_OPTIONS ? 0 : -400;
	authority = target_authority(head->target);
	if (!is_authority(authority))
		return -400;
	/* Nobody may be misled about whom the request is for: the two must be the same, not only mean the same. */
	if (facts->hosts == 1 &&
	    (authority.length != facts->host.length || !http1_same(authority.data, facts->host.data, authority.length)))
		return -400;
	head->authority = authority;
	head->path.data = authority.data + authority.length;
	head->path.length = (size_t)(head->target.data + head->target.length - head->path.data);
	return 0;
}

static int read_request(const char *data, size_t start, size_t length, const struct http1_limits *limits,
                        struct http1_head *head)
{
	struct http1_cursor cursor = {data + start, data + length};
	struct http1_facts facts = {0};
	int status = read_request_line(&cursor, head);

	if (status != 1)
		return status;
	status = http1_read_fields(&cursor, limits->fields, head, &facts);
	if (status != 1)
		return status;
	/* There are no tunnels here. */
	if (head->method_known == HTTP1_CONNECT)
		return -501;
	status = check_target(head, &facts);
	if (status == 0)
		status = http1_check_framing(head, &facts);
	if (status < 0)
		return status;
	head->status = 0;
	head->reason = (struct http1_text){NULL, 0};
	head->keep_alive = !facts.close && (head->minor >= 1 || facts.keep_alive);
	/* An HTTP/1.0 client knows neither 100 nor 101 (RFC 9110, 10.1.1 and 7.8). */
	head->expect_continue = facts.expect_continue && head->minor >= 1;
	head->upgrade = facts.upgrade && facts.upgrade_named && head->minor >= 1;
	head->framing = facts.chunked ? HTTP1_CHUNKED : facts.has_content_length ? HTTP1_LENGTH : HTTP1_NO_BODY;
	head->content_length = facts.content_length;
	/* Its body would have no end but that of the connection, and could be read as another request (RFC 1945, 8.3). */
	if (head->minor == 0 && head->method_known == HTTP1_POST && head->framing == HTTP1_NO_BODY)
		return -411;
	head->head_bytes = (size_t)(cursor.at - data);
	return 1;
}

/* The request line alone, once it is whole. Returns 0, or why the request is refused. */
static int judge_line(const char *data, size_t start, size_t length, struct http1_search *search,
                      struct http1_head *head)
{
	struct http1_cursor cursor = {data + start, data + length};
	int status = read_request_line(&cursor, head);

	search->line_judged = status == 1;
	return status < 0 ? status : 0;
}

/* How many bytes of empty lines there are before the request line. */
static size_t empty_lines(const char *data, size_t length)
{
	size_t at = 0;

	while (length - at >= 2 && data[at] == '\r' && data[at + 1] == '\n')
		at += 2;
	return at;
}

int http1_parse_request(const char *data, size_t length, const struct http1_limits *limits, struct http1_search *search,
                        struct http1_head *ret_head)
{
	size_t visible = length < limits->head_bytes ? length : limits->head_bytes;
	size_t start = empty_lines(data, visible);
	int status = 0;

	ret_head->method_known = HTTP1_METHOD_OTHER;
	/* The usual head is there at once. One that came in parts is read when its end has come, not at each part. */
	if (search->scanned == 0 && visible > 0)
		status = read_request(data, start, visible, limits, ret_head);
	if (status == 1)
		return 1;
	if (http1_find_end(data, visible, start, search))
		return status < 0 ? status : read_request(data, start, visible, limits, ret_head);
	if (length < limits->head_bytes && (search->line_judged || start == visible))
		return 0;
	status = judge_line(data, start, visible, search, ret_head);
	if (status < 0 || length < limits->head_bytes)
		return status;
	/* Too long: the request line alone, or the fields. */
	return search->line_judged ? -431 : -414;
}
