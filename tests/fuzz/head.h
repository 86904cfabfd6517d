/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets `request` and `response` both ask of a head. */
#ifndef TAILOR_TESTS_FUZZ_HEAD_H
#define TAILOR_TESTS_FUZZ_HEAD_H

#include "fuzz.h"
#include "http1/http1.h"

/* How a head is parsed; `method` is that of the request that a response answers. */
struct fuzz_parser {
	const struct http1_limits *limits;
	bool response;
	enum http1_method method;
};

/* Parses a head whose bytes come in parts, as fuzz_part() cuts them. */
static inline int fuzz_parse(const struct fuzz_parser *parser, const char *data, size_t size, uint32_t seed,
                             struct http1_head *head)
{
	struct http1_search search = {0};
	size_t length = 0;
	int status;

	do {
		length += fuzz_part(&seed, size - length);
		status = parser->response ? http1_parse_response(data, length, parser->limits, &search, parser->method, head)
		                          : http1_parse_request(data, length, parser->limits, &search, head);
	} while (status == 0 && length < size);
	return status;
}

static inline void fuzz_require_inside(struct http1_text text, const char *data, size_t size)
{
	require(text.data >= data && text.data <= data + size && text.length <= size - (size_t)(text.data - data));
	for (size_t i = 0; i < text.length; i++)
		require(text.data[i] != '\r' && text.data[i] != '\n' && text.data[i] != '\0');
}

/* A head that was taken ends with an empty line, keeps to the limits and has its fields inside the input. */
static inline void fuzz_require_head(const struct http1_head *head, const char *data, size_t size,
                                     const struct http1_limits *limits)
{
	require(head->head_bytes <= size && head->head_bytes <= limits->head_bytes && head->head_bytes >= 4);
	require(memcmp(data + head->head_bytes - 4, "\r\n\r\n", 4) == 0);
	require(head->field_count <= limits->fields);
	require(head->framing == HTTP1_LENGTH ? head->content_length <= INT64_MAX : head->content_length == 0);
	for (size_t i = 0; i < head->field_count; i++) {
		fuzz_require_inside(head->field[i].name, data, head->head_bytes);
		fuzz_require_inside(head->field[i].value, data, head->head_bytes);
	}
}

#endif /* TAILOR_TESTS_FUZZ_HEAD_H */
