/* SPDX-License-Identifier: Apache-2.0 */
#include "reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reply_begin(struct reply *reply)
{
	char *head = reply->head;

	*reply = (struct reply){.head = head};
}

void reply_free(struct reply *reply)
{
	free(reply->head);
	reply->head = NULL;
}

static unsigned int number_of(const struct request *request)
{
	return request ? request->number : 0;
}

static void refusal_text(uint16_t status, char text[64])
{
	snprintf(text, 64, "%u %s\n", status, http1_reason(status));
}

static void choose_framing(struct reply *reply, const struct request *request)
{
	const char *head = reply->head;
	unsigned int chunked, lengths;
	const char *length = traffic_field(head, reply->head_length, "Content-Length", NULL, &lengths);

	(void)traffic_field(head, reply->head_length, "Transfer-Encoding", NULL, &chunked);
	world_check(lengths <= 1 && chunked <= 1 && lengths + chunked <= 1, "request %u: %u lengths, %u encodings",
	            number_of(request), lengths, chunked);
	world_check(!chunked || !request || request->minor == 1, "request %u of HTTP/1.0 was answered in chunks",
	            number_of(request));
	reply->left = length ? strtoull(length, NULL, 10) : 0;
	/* Of a head that is invalid or not whole, not even the method is known; a connection beyond the limit is not read. */
	if ((request && request->method == HTTP1_HEAD && !request->hostile_head && reply->id != 0 && reply->status != 408) || reply->status == 204 || reply->status == 304)
		reply->framing = REPLY_NONE;
	else if (chunked)
		reply->framing = REPLY_CHUNKED;
	else if (length)
		reply->framing = REPLY_LENGTH;
	else
		reply->framing = REPLY_UNTIL_CLOSE;
}

static void take_id(struct reply *reply, const struct request *request)
{
	unsigned int count;
	const char *id = traffic_field(reply->head, reply->head_length, "X-Tailor-Request-Id", NULL, &count);

	world_check(count <= 1, "request %u: %u ids in its answer", number_of(request), count);
	reply->id = id ? strtoull(id, NULL, 16) : 0;
	/* Only a connection beyond the limit is answered without having been read. */
	world_check(id || (reply->refused && (reply->status == 503 || reply->status == 429)), "request %u: no id in its answer", number_of(request));
}

static void take_head(struct reply *reply, const struct request *request)
{
	const char *head = reply->head, *echo, *connection;
	unsigned int echoes;
	bool keeps;
	size_t length = 0;

	world_check(strncmp(head, "HTTP/1.1 ", 9) == 0, "request %u: answered with \"%.20s\"", number_of(request), head);
	reply->status = (uint16_t)strtoul(head + 9, NULL, 10);
	world_check(reply->status >= 100 && reply->status <= 999, "request %u: no status", number_of(request));
	world_check(!traffic_field(head, reply->head_length, "Keep-Alive", NULL, NULL), "request %u: got Keep-Alive",
	            number_of(request));
	if (reply->status < 200) {
		const char *number = traffic_field(head, reply->head_length, "X-Number", NULL, NULL);

		world_check(request && request->minor == 1, "an interim response to request %u", number_of(request));
		world_check(!number || strtoul(number, NULL, 10) == request->number,
		            "request %u got another one's interim response", request->number);
		world_check(reply->status != 101, "request %u: switched protocols", request->number);
		reply->continued = true;
		reply->head_length = 0;
		return;
	}
	echo = traffic_field(head, reply->head_length, "X-Echo", NULL, &echoes);
	reply->refused = !echo;
	if (echo) {
		const struct answer *answer;

		reply->answer = (uint32_t)strtoul(echo, NULL, 10);
		answer = traffic_answer(reply->answer);
		world_check(echoes == 1 && answer, "request %u: echo of nothing", number_of(request));
		world_check(request && answer->request == request->number, "request %u got the answer to request %u",
		            number_of(request), answer->request);
		world_check(answer->status == reply->status, "request %u: status %u instead of %u", request->number,
		            reply->status, answer->status);
	}
	take_id(reply, request);
	connection = traffic_field(head, reply->head_length, "Connection", &length, NULL);
	reply->close = connection && length == 5 && memcmp(connection, "close", 5) == 0;
	keeps = connection && length == 10 && memcmp(connection, "keep-alive", 10) == 0;
	if (request && request->minor == 0 && !request->hostile)
		world_check(keeps != reply->close, "request %u of HTTP/1.0 does not learn what becomes of the connection",
		            request->number);
	choose_framing(reply, request);
	world_check(reply->framing != REPLY_UNTIL_CLOSE || reply->close, "request %u: an answer without end",
	            number_of(request));
	world_check(reply->framing != REPLY_UNTIL_CLOSE || !request || request->minor == 0,
	            "request %u: only the close ends its answer", number_of(request));
	reply->in_body = true;
	reply->done = reply->framing == REPLY_NONE || (reply->framing == REPLY_LENGTH && reply->left == 0);
}

static void check_body(struct reply *reply, const struct request *request, const char *data, size_t length)
{
	char text[64];

	if (reply->refused) {
		refusal_text(reply->status, text);
		world_check(reply->offset + length <= strlen(text) && memcmp(text + reply->offset, data, length) == 0,
		            "request %u: another text with status %u", number_of(request), reply->status);
	} else {
		world_check(world_pattern_is(TRAFFIC_ANSWER_KEY(reply->answer), reply->offset, data, length),
		            "request %u: byte %" PRIu64 " and on of answer %u are others", request->number,
		            reply->offset, reply->answer);
	}
	reply->offset += length;
}

static void check_whole(const struct reply *reply, const struct request *request)
{
	const struct answer *answer;
	char text[64];

	if (reply->framing == REPLY_NONE)
		return;
	if (reply->refused) {
		refusal_text(reply->status, text);
		world_check(reply->offset == strlen(text), "request %u: refused with half a text", number_of(request));
		return;
	}
	answer = traffic_answer(reply->answer);
	/* What a server cuts short and ends with its close looks whole to anybody. */
	world_check(reply->offset == answer->bytes || (answer->until_close && answer->cut && reply->offset < answer->bytes),
	            "request %u: answer %u of %" PRIu64 " bytes came with %" PRIu64, request->number, reply->answer,
	            answer->bytes, reply->offset);
}

static size_t take_body(struct reply *reply, const struct request *request, const char *data, size_t length)
{
	const char *run = data;
	size_t taken = length, bytes = length;

	switch (reply->framing) {
	case REPLY_NONE: return 0;
	case REPLY_LENGTH:
		if (taken > reply->left)
			taken = (size_t)reply->left;
		bytes = taken;
		reply->left -= taken;
		reply->done = reply->left == 0;
		break;
	case REPLY_CHUNKED:
		taken = unchunk_take(&reply->unchunk, data, length, &run, &bytes);
		world_check(!reply->unchunk.bad, "request %u: a bad chunk in answer %u", number_of(request), reply->answer);
		reply->done = reply->unchunk.done;
		break;
	case REPLY_UNTIL_CLOSE: break;
	}
	if (bytes > 0)
		check_body(reply, request, run, bytes);
	return taken;
}

static size_t take_head_bytes(struct reply *reply, const struct request *request, const char *data, size_t length)
{
	size_t before = reply->head_length, from = before > 3 ? before - 3 : 0, taken;
	const char *end;

	if (!reply->head)
		reply->head = malloc(REPLY_HEAD_BYTES_MAX + 1);
	world_check(reply->head, "out of memory");
	if (length > REPLY_HEAD_BYTES_MAX - before)
		length = REPLY_HEAD_BYTES_MAX - before;
	world_check(length > 0, "request %u: a head without end", number_of(request));
	memcpy(reply->head + before, data, length);
	reply->head[before + length] = '\0';
	end = memmem(reply->head + from, before + length - from, "\r\n\r\n", 4);
	reply->head_length = before + length;
	if (!end)
		return length;
	reply->head_length = (size_t)(end - reply->head) + 4;
	taken = reply->head_length - before;
	take_head(reply, request);
	return taken;
}

size_t reply_take(struct reply *reply, const struct request *request, const char *data, size_t length)
{
	size_t taken;

	if (!reply->in_body)
		taken = take_head_bytes(reply, request, data, length);
	else
		taken = take_body(reply, request, data, length);
	reply->bytes += taken;
	if (reply->done)
		check_whole(reply, request);
	return taken;
}

bool reply_end(struct reply *reply, const struct request *request, bool in_order)
{
	if (!reply->in_body || reply->framing != REPLY_UNTIL_CLOSE || !in_order)
		return false;
	check_whole(reply, request);
	reply->done = true;
	return true;
}
