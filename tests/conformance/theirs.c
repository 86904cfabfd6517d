/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/theirs.h"

#include <http_parser.h>
#include <string.h>

struct reading {
	struct theirs *theirs;
	enum http1_method request_method;
	bool in_message;
	bool head_done; /* what follows are trailers */
	bool interim;
	bool stopped;
	bool in_value;
	struct walk_message message;
	/* The value at hand, since it may come in parts and with white space behind it. */
	char value[WALK_HEAD_BYTES * 2];
	size_t value_length;
};

static void end_value(struct reading *reading)
{
	size_t length = reading->value_length;

	if (!reading->in_value)
		return;
	while (length > 0 && (reading->value[length - 1] == ' ' || reading->value[length - 1] == '\t'))
		length--;
	reading->message.lines = walk_digest(reading->message.lines, reading->value, length);
	reading->message.lines = walk_digest(reading->message.lines, "\0", 1);
	reading->in_value = false;
	reading->value_length = 0;
}

static int on_begin(http_parser *parser)
{
	struct reading *reading = parser->data;

	reading->message = (struct walk_message){
	        .start = WALK_DIGEST_EMPTY, .lines = WALK_DIGEST_EMPTY, .body = WALK_DIGEST_EMPTY};
	reading->in_message = true;
	reading->head_done = false;
	/* As for ours: a response has no method and no target. */
	if (parser->type == HTTP_RESPONSE)
		reading->message.start = walk_digest(reading->message.start, "\0\0", 2);
	reading->in_value = false;
	reading->value_length = 0;
	return 0;
}

static int on_url(http_parser *parser, const char *data, size_t length)
{
	struct reading *reading = parser->data;
	const char *method = http_method_str((enum http_method)parser->method);

	/* Whole in one piece, since the input is. */
	reading->message.start = walk_digest(reading->message.start, method, strlen(method) + 1);
	reading->message.start = walk_digest(reading->message.start, data, length);
	reading->message.start = walk_digest(reading->message.start, "\0", 1);
	return 0;
}

static int on_field(http_parser *parser, const char *data, size_t length)
{
	struct reading *reading = parser->data;

	end_value(reading);
	if (!reading->head_done)
		reading->message.lines = walk_digest(reading->message.lines, data, length);
	return 0;
}

static int on_value(http_parser *parser, const char *data, size_t length)
{
	struct reading *reading = parser->data;

	if (reading->head_done)
		return 0;
	if (!reading->in_value) {
		reading->message.lines = walk_digest(reading->message.lines, "\0", 1);
		reading->in_value = true;
	}
	if (length > sizeof(reading->value) - reading->value_length)
		return 1;
	memcpy(reading->value + reading->value_length, data, length);
	reading->value_length += length;
	return 0;
}

static int on_headers_complete(http_parser *parser)
{
	struct reading *reading = parser->data;

	end_value(reading);
	reading->head_done = true;
	parser->upgrade = 0;
	reading->interim = parser->type == HTTP_RESPONSE && parser->status_code < 200;
	reading->message.status = parser->type == HTTP_RESPONSE ? parser->status_code : 0;
	return reading->request_method == HTTP1_HEAD;
}

static int on_body(http_parser *parser, const char *data, size_t length)
{
	struct reading *reading = parser->data;

	reading->message.body = walk_digest(reading->message.body, data, length);
	reading->message.body_bytes += length;
	return 0;
}

static int on_complete(http_parser *parser)
{
	struct reading *reading = parser->data;
	struct theirs *theirs = reading->theirs;

	reading->in_message = false;
	if (reading->interim)
		return 0;
	reading->message.keep_alive = http_should_keep_alive(parser);
	reading->message.complete = true;
	if (parser->type == HTTP_REQUEST && theirs->count == WALK_MESSAGES_MAX) {
		reading->stopped = true;
		return 1;
	}
	theirs->message[theirs->count++] = reading->message;
	reading->stopped = parser->type == HTTP_RESPONSE || !reading->message.keep_alive;
	return reading->stopped;
}

void theirs_read(struct theirs *theirs, bool responses, enum http1_method request_method, const char *data, size_t length,
                 bool closed)
{
	static struct reading reading; /* it is large, and one test uses it */
	http_parser_settings settings;
	http_parser parser;

	memset(theirs, 0, sizeof(*theirs));
	reading = (struct reading){.theirs = theirs, .request_method = request_method};
	http_parser_settings_init(&settings);
	settings.on_message_begin = on_begin;
	settings.on_url = on_url;
	settings.on_header_field = on_field;
	settings.on_header_value = on_value;
	settings.on_headers_complete = on_headers_complete;
	settings.on_body = on_body;
	settings.on_message_complete = on_complete;
	http_parser_init(&parser, responses ? HTTP_RESPONSE : HTTP_REQUEST);
	parser.data = &reading;
	http_parser_execute(&parser, &settings, data, length);
	if (closed && !reading.stopped && HTTP_PARSER_ERRNO(&parser) == HPE_OK)
		http_parser_execute(&parser, &settings, data, 0);
	if (reading.stopped)
		return;
	if (HTTP_PARSER_ERRNO(&parser) != HPE_OK)
		theirs->error = http_errno_name(HTTP_PARSER_ERRNO(&parser));
	else
		theirs->waits = reading.in_message || (responses && theirs->count == 0);
}
