/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All cases and 500,000 seeded mutations of them through our parser and libhttp-parser. Where the two disagree, the kind
 * of disagreement must be in differential.txt with a judgement. The same for what a server gets of each input: there the
 * two must read the same messages. With a kind as argument, every input of that kind is printed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/cases.h"
#include "tests/conformance/forwarded.h"
#include "tests/conformance/reason.h"
#include "tests/conformance/theirs.h"
#include "tests/conformance/walk.h"

#define MUTATIONS 500000
#define INPUT_MAX 6144
#define KINDS_MAX 256

struct kind {
	char name[160];
	bool listed;
	unsigned long seen;
	char sample[240];
	size_t sample_length;
};

static struct kind kinds[KINDS_MAX];
static const char *wanted; /* of this kind every input is printed */
static size_t kind_count;
static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t random_below(size_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) % limit);
}

static struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < kind_count; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	if (kind_count == KINDS_MAX) {
		fprintf(stderr, "more than %d kinds of disagreement\n", KINDS_MAX);
		exit(1);
	}
	snprintf(kinds[kind_count].name, sizeof(kinds[0].name), "%s", name);
	return &kinds[kind_count++];
}

/* "NAME | JUDGEMENT" a line. */
static void read_listed(void)
{
	FILE *file = fopen(TAILOR_DIFFERENTIAL, "r");
	char line[512];

	if (!file) {
		perror(TAILOR_DIFFERENTIAL);
		exit(1);
	}
	while (fgets(line, sizeof(line), file)) {
		char *bar = strstr(line, " | ");

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!bar || strlen(bar) < 20) {
			fprintf(stderr, "%s: no judgement: %s", TAILOR_DIFFERENTIAL, line);
			exit(1);
		}
		*bar = '\0';
		kind_of(line)->listed = true;
	}
	fclose(file);
}

static void print_escaped(const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)data[i];

		if (byte == '\r' || byte == '\n')
			fputs(byte == '\r' ? "\\r" : "\\n", stdout);
		else if (byte < 0x20 || byte >= 0x7f)
			printf("\\x%02x", byte);
		else
			putchar(byte);
	}
	putchar('\n');
}

static void note(const char *name, const char *data, size_t length)
{
	struct kind *kind = kind_of(name);

	if (kind->seen++ == 0) {
		kind->sample_length = length < sizeof(kind->sample) ? length : sizeof(kind->sample);
		memcpy(kind->sample, data, kind->sample_length);
	}
	if (wanted && strcmp(wanted, name) == 0)
		print_escaped(data, length);
}

static const char *difference(const struct walk_message *ours, const struct walk_message *theirs)
{
	if (ours->start != theirs->start || ours->status != theirs->status)
		return "method, target or status";
	if (ours->lines != theirs->lines)
		return "fields";
	if (ours->body != theirs->body || ours->body_bytes != theirs->body_bytes)
		return "body";
	return ours->keep_alive != theirs->keep_alive ? "keep-alive" : NULL;
}

/* A status, or a response that broke off. */
static bool is_refusal(const char *verdict)
{
	const char *last = strrchr(verdict, ' ');

	last = last ? last + 1 : verdict;
	return (*last >= '0' && *last <= '9') || strcmp(last, "cut") == 0;
}

static void compare(const char *type, enum http1_method method, const char *data, size_t length, bool closed)
{
	bool responses = strcmp(type, "response") == 0;
	const char *what = NULL, *reason = "a message that is not whole at the end";
	struct theirs theirs;
	struct walk walk;
	char name[160];
	size_t complete;

	walk_begin(&walk, responses, method);
	/* The proxy's own fields may take it past the limit. */
	if (strcmp(type, "forwarded") == 0)
		walk.limits.head_bytes *= 2;
	walk_feed(&walk, data, length);
	theirs_read(&theirs, responses, method, data, length, closed);
	if (is_refusal(walk.verdict))
		reason = reason_of(&walk, data, length);
	else
		walk_end(&walk, data, length, closed);
	complete = walk.count > 0 && !walk.message[walk.count - 1].complete ? walk.count - 1 : walk.count;
	for (size_t i = 0; !what && i < complete && i < theirs.count; i++)
		what = difference(&walk.message[i], &theirs.message[i]);
	if (what)
		snprintf(name, sizeof(name), "%s, both accept: %s differs", type, what);
	else if (is_refusal(walk.verdict) && (theirs.count > complete || !theirs.error))
		snprintf(name, sizeof(name), "%s, refused only here: %s", type, reason);
	else if (strstr(walk.verdict, "wait") && theirs.error && theirs.count <= complete)
		snprintf(name, sizeof(name), "%s, refused there before it is whole", type);
	else if (!is_refusal(walk.verdict) && theirs.error && theirs.count <= complete)
		snprintf(name, sizeof(name), "%s, refused only there: %s", type, theirs.error);
	else if (!is_refusal(walk.verdict) && theirs.count != complete)
		snprintf(name, sizeof(name), "%s, whole only %s", type, theirs.count > complete ? "there" : "here");
	else
		return;
	note(name, data, length);
}

/* An input as it comes, and what of it a server gets: there a difference would be a smuggled request. */
static void compare_input(const struct conformance_case *one, const char *data, size_t length)
{
	static char forwarded[4 * INPUT_MAX + (1 << 16)];

	if (one->server.length > 0) {
		compare("response", strncmp(one->client.data, "HEAD ", 5) == 0 ? HTTP1_HEAD : HTTP1_GET, data, length,
		        one->server_ends);
		return;
	}
	compare("request", HTTP1_METHOD_OTHER, data, length, false);
	length = forwarded_requests(data, length, forwarded, sizeof(forwarded));
	compare("forwarded", HTTP1_METHOD_OTHER, forwarded, length, false);
}

static const char *const words[] = {
	"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "Host: a\r\n",
	"Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: upgrade\r\n", "Upgrade: h2c\r\n", "Expect: 100-continue\r\n",
	"\r\n", "\r\n\r\n", "\n", "\r", " ", "\t", ",", ";", ":", "chunked", "identity, ", "HTTP/1.1", "HTTP/1.0", "GET ", "HEAD ",
	"POST ", "http://a", "0\r\n\r\n", "5\r\nhello\r\n", "X: y\r\n", " z\r\n", "100 ", "204 ", "304 ", "ffffffffffffffff", "00",
};

static size_t insert(char *data, size_t length, size_t at, const char *text, size_t bytes)
{
	if (length + bytes > INPUT_MAX)
		return length;
	memmove(data + at + bytes, data + at, length - at);
	memcpy(data + at, text, bytes);
	return length + bytes;
}

static size_t mutate(char *data, size_t length, const struct bytes *other)
{
	static const char bytes[] = "\r\n\t \0:;,=\"/0aF\x7f\xff";
	size_t at = length ? random_below(length) : 0, part = length ? 1 + random_below(length - at) : 0;
	char copy[INPUT_MAX];
	const char *word;

	if (part > 40)
		part = 40;
	switch (random_below(7)) {
	case 0:
		if (length)
			data[at] = bytes[random_below(sizeof(bytes) - 1)];
		return length;
	case 1: return insert(data, length, at, &bytes[random_below(sizeof(bytes) - 1)], 1);
	case 2: memmove(data + at, data + at + part, length - at - part); return length - part;
	case 3: memcpy(copy, data + at, part); return insert(data, length, random_below(length + 1), copy, part);
	case 4: word = words[random_below(sizeof(words) / sizeof(words[0]))]; return insert(data, length, at, word, strlen(word));
	case 5:
		if (length)
			data[at] = (char)(data[at] ^ (1 << random_below(8)));
		return length;
	default:
		if (other->length == 0 || other->length > INPUT_MAX)
			return length;
		/* This one's beginning, the other's end. */
		part = random_below(other->length);
		if (at + other->length - part > INPUT_MAX)
			return length;
		memcpy(data + at, other->data + part, other->length - part);
		return at + other->length - part;
	}
}

static void compare_mutated(const struct conformance_table *table)
{
	for (unsigned int i = 0; i < MUTATIONS; i++) {
		const struct conformance_case *one = &table->cases[random_below(table->count)];
		const struct conformance_case *other = &table->cases[random_below(table->count)];
		bool responses = one->server.length > 0;
		const struct bytes *input = responses ? &one->server : &one->client;
		char data[INPUT_MAX];
		size_t length = input->length;

		if (length > INPUT_MAX / 2) {
			i--;
			continue;
		}
		memcpy(data, input->data, length);
		for (uint32_t times = 1 + random_below(3); times > 0; times--)
			length = mutate(data, length, responses ? &other->server : &other->client);
		compare_input(one, data, length);
	}
}

int main(int argc, char **argv)
{
	struct conformance_table table;
	unsigned int wrong = 0;

	wanted = argc > 1 ? argv[1] : NULL;
	read_listed();
	conformance_table_read(TAILOR_CASES, &table);
	for (size_t i = 0; i < table.count; i++) {
		const struct conformance_case *one = &table.cases[i];
		const struct bytes *input = one->server.length ? &one->server : &one->client;

		compare_input(one, input->data, input->length);
	}
	compare_mutated(&table);
	for (size_t i = 0; i < kind_count; i++) {
		const struct kind *kind = &kinds[i];

		if (kind->listed && kind->seen) {
			printf("%8lu  %s\n", kind->seen, kind->name);
			continue;
		}
		/* Rare ones come and go with the cases that the mutations begin at. */
		if (!kind->seen) {
			printf("       0  %s\n", kind->name);
			continue;
		}
		wrong++;
		printf("%8lu  NOT JUDGED: %s\n          as in ", kind->seen, kind->name);
		print_escaped(kind->sample, kind->sample_length);
	}
	printf("%zu cases and %d mutations of them: %zu kinds of disagreement, %u not judged\n", table.count, MUTATIONS, kind_count,
	       wrong);
	conformance_table_free(&table);
	return wrong ? 1 : 0;
}
