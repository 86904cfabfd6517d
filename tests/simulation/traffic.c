/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Numbers start with 1, so that 0 is nobody's. */
static struct request **requests;
static struct answer **answers;
static uint32_t request_count, request_size, answer_count, answer_size;

struct request *traffic_request(uint32_t number)
{
	return number >= 1 && number <= request_count ? requests[number - 1] : NULL;
}

uint32_t traffic_requests(void)
{
	return request_count;
}

struct answer *traffic_answer(uint32_t number)
{
	return number >= 1 && number <= answer_count ? answers[number - 1] : NULL;
}

struct request *traffic_request_new(void)
{
	struct request *request = calloc(1, sizeof(*request));

	if (request_count == request_size) {
		request_size = request_size ? 2 * request_size : 1024;
		requests = realloc(requests, request_size * sizeof(*requests));
	}
	world_check(request && requests, "out of memory");
	requests[request_count++] = request;
	request->number = request_count;
	return request;
}

uint32_t traffic_answer_new(void)
{
	if (answer_count == answer_size) {
		answer_size = answer_size ? 2 * answer_size : 1024;
		answers = realloc(answers, answer_size * sizeof(*answers));
	}
	world_check(answers, "out of memory");
	answers[answer_count] = calloc(1, sizeof(struct answer));
	world_check(answers[answer_count], "out of memory");
	return ++answer_count;
}

void traffic_free(void)
{
	for (uint32_t i = 0; i < request_count; i++)
		free(requests[i]);
	for (uint32_t i = 0; i < answer_count; i++)
		free(answers[i]);
	free(requests);
	free(answers);
	requests = NULL;
	answers = NULL;
	request_count = request_size = answer_count = answer_size = 0;
}

static const char *const methods[] = {"SEARCH", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"};

const char *traffic_method(enum http1_method method)
{
	return methods[method];
}

enum http1_method traffic_method_of(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strlen(methods[i]) == length && memcmp(methods[i], text, length) == 0)
			return (enum http1_method)i;
	}
	return HTTP1_METHOD_OTHER;
}

const char *traffic_field(const char *head, size_t length, const char *name, size_t *ret_length, unsigned int *ret_count)
{
	const char *end = head + length, *value = NULL;
	size_t name_length = strlen(name);
	unsigned int count = 0;

	for (const char *line = memchr(head, '\n', length); line && line + 1 < end; line = memchr(line, '\n', (size_t)(end - line))) {
		const char *stop;

		line++;
		if ((size_t)(end - line) <= name_length || line[name_length] != ':' ||
		    strncasecmp(line, name, name_length) != 0)
			continue;
		count++;
		if (value)
			continue;
		value = line + name_length + 1;
		stop = memchr(value, '\r', (size_t)(end - value));
		while (value < stop && *value == ' ')
			value++;
		if (ret_length)
			*ret_length = (size_t)(stop - value);
	}
	if (ret_count)
		*ret_count = count;
	return value;
}

enum {
	SIZE,
	SIZE_END,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER,
};

static void take_one(struct unchunk *unchunk, char character)
{
	switch (unchunk->state) {
	case SIZE:
		if (character >= '0' && character <= '9')
			unchunk->left = unchunk->left * 16 + (uint64_t)(character - '0');
		else if (character >= 'a' && character <= 'f')
			unchunk->left = unchunk->left * 16 + (uint64_t)(character - 'a' + 10);
		else if (character == '\r')
			unchunk->state = SIZE_END;
		else if (character != ';' && character != 'x') /* the one extension that is used: ";x" */
			unchunk->bad = true;
		break;
	case SIZE_END:
		unchunk->bad = character != '\n';
		unchunk->state = unchunk->left > 0 ? DATA : TRAILER;
		unchunk->line = 0;
		break;
	case DATA_CR:
		unchunk->bad = character != '\r';
		unchunk->state = DATA_LF;
		break;
	case DATA_LF:
		unchunk->bad = character != '\n';
		unchunk->state = SIZE;
		break;
	default:
		if (character == '\n' && unchunk->line == 0)
			unchunk->done = true;
		else if (character == '\n')
			unchunk->line = 0;
		else if (character != '\r')
			unchunk->line++;
		break;
	}
}

size_t unchunk_take(struct unchunk *unchunk, const char *data, size_t length, const char **ret_run, size_t *ret_bytes)
{
	size_t taken = 0;

	*ret_bytes = 0;
	while (taken < length && !unchunk->done && !unchunk->bad) {
		if (unchunk->state == DATA) {
			size_t run = length - taken;

			if (run > unchunk->left)
				run = (size_t)unchunk->left;
			*ret_run = data + taken;
			*ret_bytes = run;
			unchunk->left -= run;
			if (unchunk->left == 0)
				unchunk->state = DATA_CR;
			return taken + run;
		}
		take_one(unchunk, data[taken++]);
	}
	return taken;
}
