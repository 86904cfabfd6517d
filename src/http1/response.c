/* SPDX-License-Identifier: Apache-2.0 */
#include "http1/http1.h"

#include "http1/characters.h"
#include "http1/head.h"

/* "HTTP/1.x NNN reason". A missing space before a missing reason is let pass: real servers forget it. */
static int read_status_line(struct http1_cursor *cursor, struct http1_head *head)
{
	struct http1_text line;
	unsigned int code = 0;
	int status = http1_read_line(cursor, &line);

	if (status != 1)
		return status;
	if (line.length < 12 || line.data[8] != ' ' || http1_read_version(line.data, 8, &head->minor) < 0)
		return -502;
	for (int i = 9; i < 12; i++) {
		if (line.data[i] < '0' || line.data[i] > '9')
			return -502;
		code = code * 10 + (unsigned int)(line.data[i] - '0');
	}
	if (code < 100 || code > 599)
		return -502;
	if (line.length > 12 && line.data[12] != ' ')
		return -502;
	head->status = (uint16_t)code;
	head->reason = line.length > 12 ? (struct http1_text){line.data + 13, line.length - 13}
	                                : (struct http1_text){line.data + 12, 0};
	return http1_is_value(head->reason.data, head->reason.length) ? 1 : -502;
}

/* RFC 9112, 6.3 */
static enum http1_framing response_framing(const struct http1_head *head, const struct http1_facts *facts,
                                           enum http1_method request_method)
{
	if (request_method == HTTP1_HEAD || head->status < 200 || head->status == 204 || head->status == 304)
		return HTTP1_NO_BODY;
	if (request_method == HTTP1_CONNECT && head->status < 300)
		return HTTP1_NO_BODY;
	if (facts->chunked)
		return HTTP1_CHUNKED;
	return facts->has_content_length ? HTTP1_LENGTH : HTTP1_UNTIL_CLOSE;
}

static int read_response(const char *data, size_t length, const struct http1_limits *limits,
                         enum http1_method request_method, struct http1_head *head)
{
	struct http1_cursor cursor = {data, data + length};
	struct http1_facts facts = {.response = true};
	int status = read_status_line(&cursor, head);
	bool announced;

	if (status == 1)
		status = http1_read_fields(&cursor, limits->fields, head, &facts);
	if (status != 1)
		return status < 0 ? -502 : 0;
	if (http1_check_framing(head, &facts) < 0)
		return -502;
	announced = facts.has_transfer_encoding || facts.content_length > 0;
	/* Its bytes would be read as the final response. */
	if (head->status < 200 && announced)
		return -502;
	head->method = (struct http1_text){NULL, 0};
	head->target = head->authority = head->path = (struct http1_text){NULL, 0};
	head->method_known = HTTP1_METHOD_OTHER;
	head->framing = response_framing(head, &facts, request_method);
	head->content_length = head->framing == HTTP1_LENGTH ? facts.content_length : 0;
	head->keep_alive = !facts.close && (head->minor >= 1 || facts.keep_alive) && head->framing != HTTP1_UNTIL_CLOSE;
	/* The body that it must not have may yet come, and must not meet the next request (RFC 9110, 8.6). */
	if (head->status == 204 && announced)
		head->keep_alive = false;
	head->expect_continue = false;
	head->upgrade = facts.upgrade && facts.upgrade_named;
	head->head_bytes = (size_t)(cursor.at - data);
	return 1;
}

int http1_parse_response(const char *data, size_t length, const struct http1_limits *limits,
                         struct http1_search *search, enum http1_method request_method, struct http1_head *ret_head)
{
	size_t visible = length < limits->head_bytes ? length : limits->head_bytes;
	int status = 0;

	/* As for requests. */
	if (search->scanned == 0 && visible > 0)
		status = read_response(data, visible, limits, request_method, ret_head);
	if (status == 1)
		return 1;
	if (!http1_find_end(data, visible, 0, search))
		return length < limits->head_bytes ? 0 : -502;
	return status < 0 ? status : read_response(data, visible, limits, request_method, ret_head);
}

const char *http1_reason(unsigned int status)
{
	switch (status) {
	case 100: return "Continue";
	case 200: return "OK";
	case 204: return "No Content";
	case 400: return "Bad Request";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 411: return "Length Required";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 415: return "Unsupported Media Type";
	case 417: return "Expectation Failed";
	case 421: return "Misdirected Request";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 502: return "Bad Gateway";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	case 505: return "HTTP Version Not Supported";
	default: return "Error";
	}
}
