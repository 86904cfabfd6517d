/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/walk.h"

#include <stdio.h>
#include <string.h>

uint64_t walk_digest(uint64_t digest, const void *data, size_t length)
{
	const unsigned char *at = data;

	while (length--)
		digest = (digest ^ *at++) * UINT64_C(0x100000001b3);
	return digest;
}

static uint64_t digest_text(uint64_t digest, struct http1_text text)
{
	digest = walk_digest(digest, text.data, text.length);
	return walk_digest(digest, "\0", 1);
}

static void say(struct walk *walk, const char *word)
{
	size_t length = strlen(walk->verdict);

	snprintf(walk->verdict + length, sizeof(walk->verdict) - length, "%s%s", length ? " " : "", word);
}

static void fail(struct walk *walk, int status)
{
	char word[16];

	snprintf(word, sizeof(word), "%d", status);
	say(walk, word);
	walk->refused = status;
	walk->ended = true;
	walk->closes = true;
}

void walk_begin(struct walk *walk, bool responses, enum http1_method request_method)
{
	memset(walk, 0, sizeof(*walk));
	walk->responses = responses;
	walk->request_method = request_method;
	walk->limits = (struct http1_limits){.head_bytes = WALK_HEAD_BYTES, .fields = HTTP1_FIELDS_MAX};
}

static void note_head(struct walk_message *message, const struct http1_head *head)
{
	uint64_t facts[] = {head->minor,   head->keep_alive,     head->expect_continue, head->upgrade,
	                    head->framing, head->content_length, head->head_bytes,      head->field_count};

	message->start = digest_text(digest_text(WALK_DIGEST_EMPTY, head->method), head->target);
	message->status = head->status;
	message->keep_alive = head->keep_alive;
	message->body = WALK_DIGEST_EMPTY;
	message->lines = WALK_DIGEST_EMPTY;
	for (size_t i = 0; i < head->field_count; i++) {
		message->lines = digest_text(message->lines, head->field[i].name);
		message->lines = digest_text(message->lines, head->field[i].value);
	}
	message->fields = walk_digest(message->lines, facts, sizeof(facts));
}

static void finish_message(struct walk *walk)
{
	struct walk_message *message = &walk->message[walk->count - 1];

	message->complete = true;
	walk->in_body = false;
	walk->search = (struct http1_search){0};
	walk->closes = !message->keep_alive;
	say(walk, "accept");
	if (walk->responses || walk->closes)
		walk->ended = true;
}

static void take_head(struct walk *walk, const struct http1_head *head)
{
	/* Nobody asked for another protocol. */
	if (walk->responses && head->status == 101) {
		fail(walk, 502);
		return;
	}
	walk->consumed += head->head_bytes;
	if (walk->responses && head->status < 200) {
		walk->search = (struct http1_search){0};
		return;
	}
	if (walk->count == WALK_MESSAGES_MAX) {
		walk->ended = true;
		return;
	}
	note_head(&walk->message[walk->count++], head);
	if (walk->listener.head)
		walk->listener.head(walk->listener.context, head);
	walk->framing = head->framing;
	walk->left = head->content_length;
	walk->chunked = (struct http1_chunked){0};
	walk->in_body = true;
	if (head->framing == HTTP1_NO_BODY || (head->framing == HTTP1_LENGTH && walk->left == 0))
		finish_message(walk);
}

static void take_data(struct walk *walk, const char *data, size_t length)
{
	struct walk_message *message = &walk->message[walk->count - 1];

	message->body = walk_digest(message->body, data, length);
	message->body_bytes += length;
}

static void take_body(struct walk *walk, const char *data, size_t length)
{
	bool done = false;
	size_t part = length;

	if (walk->framing == HTTP1_CHUNKED) {
		uint64_t chunk = http1_chunked_data(&walk->chunked);

		part = chunk == 0 ? 1 : chunk < length ? (size_t)chunk : length;
		if (http1_chunked_take(&walk->chunked, data, part, &done) < 0) {
			walk->in_body = false;
			if (walk->responses)
				say(walk, "cut");
			else
				fail(walk, 400);
			walk->ended = walk->closes = true;
			return;
		}
		if (chunk > 0)
			take_data(walk, data, part);
	} else {
		if (walk->framing == HTTP1_LENGTH && part > walk->left)
			part = (size_t)walk->left;
		take_data(walk, data, part);
		if (walk->framing == HTTP1_LENGTH)
			done = (walk->left -= part) == 0;
	}
	if (walk->listener.body)
		walk->listener.body(walk->listener.context, data, part);
	walk->consumed += part;
	if (done)
		finish_message(walk);
}

void walk_feed(struct walk *walk, const char *data, size_t length)
{
	while (!walk->ended && walk->consumed < length) {
		const char *at = data + walk->consumed;
		size_t left = length - walk->consumed;
		struct http1_head head;
		int ret;

		if (walk->in_body) {
			take_body(walk, at, left);
			continue;
		}
		ret = walk->responses ? http1_parse_response(at, left, &walk->limits, &walk->search, walk->request_method, &head)
		                      : http1_parse_request(at, left, &walk->limits, &walk->search, &head);
		if (ret == 0)
			return;
		if (ret < 0)
			fail(walk, -ret);
		else
			take_head(walk, &head);
	}
}

void walk_end(struct walk *walk, const char *data, size_t length, bool closed)
{
	size_t at = walk->consumed;

	if (walk->responses) {
		if (!walk->ended && walk->in_body && walk->framing == HTTP1_UNTIL_CLOSE && closed)
			finish_message(walk);
		else if (!walk->ended)
			say(walk, !closed ? "wait" : walk->in_body ? "cut" : "502");
		if (closed || !walk->ended || walk->consumed < length)
			walk->closes = true;
		return;
	}
	/* Empty lines between requests are no beginning of one. */
	while (!walk->in_body && length - at >= 2 && data[at] == '\r' && data[at + 1] == '\n')
		at += 2;
	if (!walk->ended && (walk->in_body || at < length))
		say(walk, "wait");
}
