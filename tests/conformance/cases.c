/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/cases.h"

#include <glob.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (1u << 20)

struct reader {
	const char *file;
	unsigned int line;
	struct conformance_table *table;
};

static void __attribute__((noreturn, format(printf, 2, 3))) complain(const struct reader *reader, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s:%u: ", reader->file, reader->line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

static void add(const struct reader *reader, struct bytes *bytes, const char *data, size_t length)
{
	if (bytes->length + length > BYTES_MAX)
		complain(reader, "more than %u bytes", BYTES_MAX);
	if (!bytes->data)
		bytes->data = malloc(BYTES_MAX);
	if (!bytes->data)
		complain(reader, "out of memory");
	memcpy(bytes->data + bytes->length, data, length);
	bytes->length += length;
}

static const char *add_escaped(const struct reader *reader, struct bytes *bytes, const char *at, const char *end);

/* "*COUNT(BYTES)" */
static const char *add_repeated(const struct reader *reader, struct bytes *bytes, const char *at)
{
	char *open;
	unsigned long count = strtoul(at + 1, &open, 10);
	const char *close = *open == '(' ? strchr(open, ')') : NULL;

	if (!close)
		complain(reader, "\\*COUNT(BYTES) is not complete");
	for (unsigned long i = 0; i < count; i++)
		for (const char *inner = open + 1; inner < close;)
			inner = add_escaped(reader, bytes, inner, close);
	return close + 1;
}

/* One byte, or one escape. Returns what comes behind it. */
static const char *add_escaped(const struct reader *reader, struct bytes *bytes, const char *at, const char *end)
{
	static const char names[] = "rnt0s\\", values[] = "\r\n\t\0 \\";
	const char *name;
	unsigned int value;

	if (*at != '\\') {
		add(reader, bytes, at, 1);
		return at + 1;
	}
	at++;
	if (at == end)
		complain(reader, "a \\ at the end");
	if (*at == '*')
		return add_repeated(reader, bytes, at);
	if (*at == 'x' && end - at >= 3 && sscanf(at + 1, "%2x", &value) == 1) {
		char byte = (char)value;

		add(reader, bytes, &byte, 1);
		return at + 3;
	}
	name = strchr(names, *at);
	if (!name)
		complain(reader, "unknown escape \\%c", *at);
	add(reader, bytes, &values[name - names], 1);
	return at + 1;
}

static void add_text(const struct reader *reader, struct bytes *bytes, const char *text)
{
	const char *end = text + strlen(text);

	while (text < end)
		text = add_escaped(reader, bytes, text, end);
}

static struct conformance_case *begin_case(const struct reader *reader, const char *name)
{
	struct conformance_table *table = reader->table;
	struct conformance_case *grown = realloc(table->cases, (table->count + 1) * sizeof(*grown));
	struct conformance_case *new;

	if (!grown)
		complain(reader, "out of memory");
	table->cases = grown;
	new = &grown[table->count++];
	*new = (struct conformance_case){.file = strrchr(reader->file, '/') + 1, .line = reader->line};
	snprintf(new->name, sizeof(new->name), "%s", name);
	return new;
}

static void take_line(const struct reader *reader, char *line)
{
	struct conformance_case *current = reader->table->count ? &reader->table->cases[reader->table->count - 1] : NULL;
	char *rest = strchr(line, ' ');

	if (line[0] == '\0' || line[0] == '#')
		return;
	if (rest)
		*rest++ = '\0';
	else
		rest = line + strlen(line);
	if (strcmp(line, "case") == 0)
		begin_case(reader, rest);
	else if (!current)
		complain(reader, "\"%s\" before the first case", line);
	else if (strcmp(line, "rfc") == 0)
		snprintf(current->section, sizeof(current->section), "%s", rest);
	else if (strcmp(line, "verdict") == 0)
		snprintf(current->verdict, sizeof(current->verdict), "%s", rest);
	else if (strcmp(line, "client") == 0)
		add_text(reader, &current->client, rest);
	else if (strcmp(line, "server") == 0)
		add_text(reader, &current->server, rest);
	else if (strcmp(line, "server-ends") == 0)
		current->server_ends = true;
	else if (strcmp(line, "drips") == 0)
		current->drips = true;
	else if (strcmp(line, "to-server") != 0 && strcmp(line, "to-client") != 0 && strcmp(line, "with") != 0)
		complain(reader, "unknown word \"%s\"", line);
}

static void finish_file(struct reader *reader, size_t first)
{
	for (size_t i = first; i < reader->table->count; i++) {
		struct conformance_case *one = &reader->table->cases[i];

		reader->line = one->line;
		if (one->section[0] == '\0' || one->verdict[0] == '\0')
			complain(reader, "the case has no section or no verdict");
		if (one->client.length == 0)
			add_text(reader, &one->client, "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n");
	}
}

static void read_file(const char *path, struct conformance_table *table)
{
	struct reader reader = {.file = path, .table = table};
	size_t first = table->count, size = 0;
	FILE *file = fopen(path, "r");
	char *line = NULL;

	if (!file)
		complain(&reader, "cannot be opened");
	while (getline(&line, &size, file) >= 0) {
		reader.line++;
		line[strcspn(line, "\n")] = '\0';
		take_line(&reader, line);
	}
	free(line);
	fclose(file);
	finish_file(&reader, first);
}

void conformance_table_read(const char *directory, struct conformance_table *ret_table)
{
	char pattern[512];
	glob_t found;

	*ret_table = (struct conformance_table){0};
	snprintf(pattern, sizeof(pattern), "%s/*.cases", directory);
	if (glob(pattern, 0, NULL, &found) != 0) {
		fprintf(stderr, "%s: no cases there\n", pattern);
		exit(1);
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_file(found.gl_pathv[i], ret_table);
	/* The paths have been kept by the cases only as their last part. */
	for (size_t i = 0; i < ret_table->count; i++) {
		ret_table->cases[i].file = strdup(ret_table->cases[i].file);
		if (!ret_table->cases[i].file)
			exit(1);
	}
	globfree(&found);
}

void conformance_table_free(struct conformance_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		free((void *)(uintptr_t)table->cases[i].file);
		free(table->cases[i].client.data);
		free(table->cases[i].server.data);
	}
	free(table->cases);
	*table = (struct conformance_table){0};
}
