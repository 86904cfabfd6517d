/* SPDX-License-Identifier: Apache-2.0 */
/* Every case through src/http1 alone: whole, at every split into two parts, and byte by byte, with the same result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/conformance/cases.h"
#include "tests/conformance/walk.h"

static struct conformance_table table;

/* The first words of a verdict are the parser's; "close" and "drop" say what becomes of the connection. */
static void split_verdict(const struct conformance_case *one, char *ret_words, size_t size, bool *ret_closes)
{
	const char *flag = one->server.length ? "drop" : "close";
	char copy[sizeof(one->verdict)], *state = NULL;

	strcpy(copy, one->verdict);
	*ret_words = '\0';
	*ret_closes = false;
	for (char *word = strtok_r(copy, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
		if (strcmp(word, "close") == 0 || strcmp(word, "drop") == 0) {
			*ret_closes = *ret_closes || strcmp(word, flag) == 0;
			continue;
		}
		if (strcmp(word, "nothing") == 0)
			continue;
		snprintf(ret_words + strlen(ret_words), size - strlen(ret_words), "%s%s", *ret_words ? " " : "", word);
	}
}

static enum http1_method request_method(const struct conformance_case *one)
{
	struct http1_limits limits = {.head_bytes = WALK_HEAD_BYTES, .fields = HTTP1_FIELDS_MAX};
	struct http1_search search = {0};
	struct http1_head head;

	if (!one->server.length)
		return HTTP1_METHOD_OTHER;
	if (http1_parse_request(one->client.data, one->client.length, &limits, &search, &head) != 1)
		fail_msg("%s:%u: %s: the request before it is not valid", one->file, one->line, one->name);
	return head.method_known;
}

static const struct bytes *input_of(const struct conformance_case *one)
{
	return one->server.length ? &one->server : &one->client;
}

/* In two parts, or with split 0 in one. Each part is in memory of exactly its size, so that sanitizers see an overrun. */
static void walk_parts(const struct conformance_case *one, enum http1_method method, size_t split, struct walk *walk)
{
	const struct bytes *input = input_of(one);

	walk_begin(walk, one->server.length > 0, method);
	if (split > 0) {
		char *part = malloc(split);

		assert_non_null(part);
		memcpy(part, input->data, split);
		walk_feed(walk, part, split);
		free(part);
	}
	walk_feed(walk, input->data, input->length);
	walk_end(walk, input->data, input->length, one->server_ends);
}

static void walk_bytes(const struct conformance_case *one, enum http1_method method, struct walk *walk)
{
	const struct bytes *input = input_of(one);

	walk_begin(walk, one->server.length > 0, method);
	for (size_t length = 1; length <= input->length; length++)
		walk_feed(walk, input->data, length);
	walk_end(walk, input->data, input->length, one->server_ends);
}

static void check_same(const struct conformance_case *one, const struct walk *whole, const struct walk *other, size_t split)
{
	bool same = strcmp(whole->verdict, other->verdict) == 0 && whole->count == other->count &&
	            whole->closes == other->closes && whole->consumed == other->consumed;

	for (size_t i = 0; same && i < whole->count; i++) {
		const struct walk_message *a = &whole->message[i], *b = &other->message[i];

		same = a->start == b->start && a->fields == b->fields && a->body == b->body && a->body_bytes == b->body_bytes &&
		       a->status == b->status && a->complete == b->complete;
	}
	if (!same)
		fail_msg("%s:%u: %s: split at %zu: \"%s\" after %zu bytes, not \"%s\" after %zu", one->file, one->line, one->name,
		         split, other->verdict, other->consumed, whole->verdict, whole->consumed);
}

/* That a server answers before it has the whole request is not in the response's bytes. */
static bool only_the_proxy(const struct conformance_case *one)
{
	return one->server.length && strstr(one->verdict, "close drop");
}

static void every_case_is_judged_as_the_table_says(void **state)
{
	unsigned int wrong = 0;

	(void)state;
	for (size_t i = 0; i < table.count; i++) {
		const struct conformance_case *one = &table.cases[i];
		char words[64];
		struct walk walk;
		bool closes, ends_accepted;

		split_verdict(one, words, sizeof(words), &closes);
		walk_parts(one, request_method(one), 0, &walk);
		if (one->drips && *words)
			strcpy(words, "wait");
		/* A refused request ends its connection without saying. */
		ends_accepted = strlen(words) >= 6 && strcmp(words + strlen(words) - 6, "accept") == 0;
		if (strcmp(walk.verdict, words) == 0 && (!ends_accepted || closes == walk.closes || only_the_proxy(one)))
			continue;
		print_error("%s:%u: %s: \"%s\"%s, not \"%s\"\n", one->file, one->line, one->name, walk.verdict,
		            walk.closes ? " and closes" : "", one->verdict);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* Holds another way to feed every case against the case in one piece. */
static void check_every_case(void (*check)(const struct conformance_case *one, enum http1_method method, const struct walk *whole))
{
	for (size_t i = 0; i < table.count; i++) {
		const struct conformance_case *one = &table.cases[i];
		enum http1_method method = request_method(one);
		struct walk whole;

		walk_parts(one, method, 0, &whole);
		check(one, method, &whole);
	}
}

static void check_splits(const struct conformance_case *one, enum http1_method method, const struct walk *whole)
{
	struct walk other;

	for (size_t split = 1; split < input_of(one)->length; split++) {
		walk_parts(one, method, split, &other);
		check_same(one, whole, &other, split);
	}
}

static void every_case_is_judged_alike_at_every_split(void **state)
{
	(void)state;
	check_every_case(check_splits);
}

static void check_bytes(const struct conformance_case *one, enum http1_method method, const struct walk *whole)
{
	struct walk other;

	walk_bytes(one, method, &other);
	check_same(one, whole, &other, 1);
}

static void every_case_is_judged_alike_byte_by_byte(void **state)
{
	(void)state;
	check_every_case(check_bytes);
}

static void the_table_is_whole_and_its_names_are_unique(void **state)
{
	(void)state;
	assert_true(table.count >= 150);
	for (size_t i = 0; i < table.count; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(table.cases[i].name, table.cases[j].name) == 0)
				fail_msg("%s:%u: the name \"%s\" is used twice", table.cases[i].file, table.cases[i].line,
				         table.cases[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_whole_and_its_names_are_unique),
		cmocka_unit_test(every_case_is_judged_as_the_table_says),
		cmocka_unit_test(every_case_is_judged_alike_at_every_split),
		cmocka_unit_test(every_case_is_judged_alike_byte_by_byte),
	};
	int ret;

	conformance_table_read(TAILOR_CASES, &table);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	conformance_table_free(&table);
	return ret;
}
