/* SPDX-License-Identifier: Apache-2.0 */
#include "config/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct config_lines {
	yaml_document_t document;
};

/*
 * What a person writes has a depth of 4 and some hundred tokens. Both parsers below take quadratic time for nesting, keys,
 * anchors and directives, so there is little of each.
 */
#define DEPTH_MAX 32
#define TOKENS_MAX 5000

/* Nesting from one token to the next. */
static int depth_change(yaml_token_type_t type)
{
	switch (type) {
	case YAML_BLOCK_SEQUENCE_START_TOKEN:
	case YAML_BLOCK_MAPPING_START_TOKEN:
	case YAML_FLOW_SEQUENCE_START_TOKEN:
	case YAML_FLOW_MAPPING_START_TOKEN: return 1;
	case YAML_BLOCK_END_TOKEN:
	case YAML_FLOW_SEQUENCE_END_TOKEN:
	case YAML_FLOW_MAPPING_END_TOKEN: return -1;
	default: return 0;
	}
}

/* Whether the text keeps to these bounds as far as it is YAML. Returns 0, or -EINVAL as config_lines_open() does. */
static int check_bounds(yaml_parser_t *scanner, unsigned int *ret_line, char *problem, size_t problem_size)
{
	int depth = 0;

	for (unsigned int tokens = 0;; tokens++) {
		yaml_token_t token;
		yaml_token_type_t type;

		/* What is no YAML is for the parser to say. */
		if (!yaml_parser_scan(scanner, &token))
			return 0;
		type = token.type;
		*ret_line = (unsigned int)token.start_mark.line + 1;
		yaml_token_delete(&token);
		if (type == YAML_STREAM_END_TOKEN || type == YAML_NO_TOKEN)
			return 0;
		depth += depth_change(type);
		if (depth > DEPTH_MAX) {
			snprintf(problem, problem_size, "is nested more than %d levels deep; is it the right file?", DEPTH_MAX);
			return -EINVAL;
		}
		if (tokens > TOKENS_MAX) {
			snprintf(problem, problem_size, "has more than %d keys, values and marks; is it the right file?", TOKENS_MAX);
			return -EINVAL;
		}
	}
}

/* Whether another document follows, and in which line; what is no YAML behind the first one counts, too. */
static int config_lines_more(yaml_parser_t *parser, unsigned int *ret_line)
{
	yaml_document_t next;
	int more;

	if (!yaml_parser_load(parser, &next)) {
		*ret_line = (unsigned int)parser->problem_mark.line + 1;
		return 1;
	}
	more = yaml_document_get_root_node(&next) != NULL;
	*ret_line = (unsigned int)next.start_mark.line + 1;
	yaml_document_delete(&next);
	return more;
}

int config_lines_open(const char *text, size_t length, struct config_lines **ret_lines, unsigned int *ret_line,
                      char *problem, size_t problem_size)
{
	struct config_lines *lines = calloc(1, sizeof(*lines));
	yaml_parser_t parser;
	int loaded, error;

	if (!lines)
		return -ENOMEM;
	if (!yaml_parser_initialize(&parser)) {
		free(lines);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	error = check_bounds(&parser, ret_line, problem, problem_size);
	yaml_parser_delete(&parser);
	if (error) {
		free(lines);
		return error;
	}
	if (!yaml_parser_initialize(&parser)) {
		free(lines);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	loaded = yaml_parser_load(&parser, &lines->document);
	if (!loaded) {
		*ret_line = (unsigned int)parser.problem_mark.line + 1;
		snprintf(problem, problem_size, "%s", parser.problem ? parser.problem : "not YAML");
	}
	if (loaded && config_lines_more(&parser, ret_line)) {
		snprintf(problem, problem_size, "begins a second document, which would not be read; remove the \"---\"");
		yaml_document_delete(&lines->document);
		loaded = 0;
	}
	yaml_parser_delete(&parser);
	if (!loaded) {
		free(lines);
		return -EINVAL;
	}
	*ret_lines = lines;
	return 0;
}

void config_lines_close(struct config_lines *lines)
{
	if (!lines)
		return;
	yaml_document_delete(&lines->document);
	free(lines);
}

static yaml_document_t *document_of(const struct config_lines *lines)
{
	/* libyaml's accessors take a non-const document but do not change it. */
	return (yaml_document_t *)&lines->document;
}

static int scalar_is(const yaml_node_t *node, const char *text, size_t length)
{
	return node && node->type == YAML_SCALAR_NODE && node->data.scalar.length == length &&
	       memcmp(node->data.scalar.value, text, length) == 0;
}

static unsigned int line_of(const yaml_node_t *node)
{
	return (unsigned int)node->start_mark.line + 1;
}

int config_lines_empty(const struct config_lines *lines)
{
	const yaml_node_t *root = yaml_document_get_root_node(document_of(lines));

	return !root || root->type != YAML_MAPPING_NODE;
}

static const yaml_node_pair_t *mapping_pair(yaml_document_t *document, const yaml_node_t *mapping, const char *key, size_t length)
{
	if (mapping->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
		if (scalar_is(yaml_document_get_node(document, pair->key), key, length))
			return pair;
	}
	return NULL;
}

static yaml_node_t *sequence_item(yaml_document_t *document, const yaml_node_t *sequence, unsigned long index)
{
	if (sequence->type != YAML_SEQUENCE_NODE ||
	    index >= (unsigned long)(sequence->data.sequence.items.top - sequence->data.sequence.items.start))
		return NULL;
	return yaml_document_get_node(document, sequence->data.sequence.items.start[index]);
}

/* The node at a path, or NULL; its line, or that of its nearest existing parent; the last key on the way there, NULL if there is none. */
static const yaml_node_t *node_of(const struct config_lines *lines, const char *path, unsigned int *ret_line, const yaml_node_t **ret_key)
{
	yaml_document_t *document = document_of(lines);
	const yaml_node_t *node = yaml_document_get_root_node(document);

	*ret_key = NULL;
	while (node) {
		size_t length = strcspn(path, ".[");

		*ret_line = line_of(node);
		if (*path == '\0')
			return node;
		if (*path == '[') {
			char *end;

			node = sequence_item(document, node, strtoul(path + 1, &end, 10));
			path = end + 1;
		} else {
			const yaml_node_pair_t *pair = mapping_pair(document, node, path, length);

			if (!pair)
				return NULL;
			*ret_key = yaml_document_get_node(document, pair->key);
			node = yaml_document_get_node(document, pair->value);
			path += length;
		}
		if (*path == '.')
			path++;
	}
	return NULL;
}

unsigned int config_lines_of(const struct config_lines *lines, const char *path)
{
	const yaml_node_t *key;
	unsigned int line = 1;

	node_of(lines, path, &line, &key);
	return line;
}

int config_lines_has(const struct config_lines *lines, const char *path)
{
	const yaml_node_t *key;
	unsigned int line;

	return node_of(lines, path, &line, &key) != NULL;
}

const char *config_lines_text(const struct config_lines *lines, const char *path)
{
	const yaml_node_t *key;
	unsigned int line;
	const yaml_node_t *node = node_of(lines, path, &line, &key);

	return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

int config_lines_key(const struct config_lines *lines, const char *path, size_t index, const char **ret_key, unsigned int *ret_line)
{
	const yaml_node_t *key;
	const yaml_node_t *mapping = node_of(lines, path, ret_line, &key);

	if (!mapping || mapping->type != YAML_MAPPING_NODE ||
	    index >= (size_t)(mapping->data.mapping.pairs.top - mapping->data.mapping.pairs.start))
		return 0;
	key = yaml_document_get_node(document_of(lines), mapping->data.mapping.pairs.start[index].key);
	*ret_line = line_of(key);
	*ret_key = key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : NULL;
	return 1;
}

/* Where the character with this index stands: libyaml counts characters, without a byte order mark. */
static size_t offset_of(const char *text, size_t length, size_t index)
{
	size_t at = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	for (; at < length && index > 0; index--) {
		do
			at++;
		while (at < length && ((unsigned char)text[at] & 0xc0) == 0x80);
	}
	return at;
}

static int mask(const yaml_node_t *key, char *text, size_t length)
{
	size_t at = offset_of(text, length, key->start_mark.index) + (key->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);

	/* An anchor before it, escapes in it, another encoding. */
	if (key->data.scalar.length == 0 || at > length || length - at < key->data.scalar.length ||
	    memcmp(text + at, key->data.scalar.value, key->data.scalar.length) != 0)
		return -EINVAL;
	text[at] = '_';
	return 0;
}

int config_lines_mask(const struct config_lines *lines, const char *path, char *text, size_t length)
{
	const yaml_node_t *key;
	unsigned int line;

	node_of(lines, path, &line, &key);
	return key ? mask(key, text, length) : -ENOENT;
}

/* The second of a key that stands twice in this mapping, or NULL. */
static yaml_node_pair_t *mapping_duplicate(yaml_document_t *document, const yaml_node_t *mapping)
{
	const yaml_node_pair_t *start = mapping->data.mapping.pairs.start;

	for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
		const yaml_node_t *name = yaml_document_get_node(document, pair->key);

		if (!name || name->type != YAML_SCALAR_NODE)
			continue;
		for (const yaml_node_pair_t *earlier = start; earlier < pair; earlier++) {
			if (scalar_is(yaml_document_get_node(document, earlier->key),
			              (const char *)name->data.scalar.value, name->data.scalar.length))
				return pair;
		}
	}
	return NULL;
}

int config_lines_drop_duplicate(struct config_lines *lines, char *text, size_t length, const char **ret_key, unsigned int *ret_line)
{
	yaml_document_t *document = &lines->document;
	yaml_node_t *node;

	for (int i = 1; (node = yaml_document_get_node(document, i)) != NULL; i++) {
		yaml_node_pair_t *pair = node->type == YAML_MAPPING_NODE ? mapping_duplicate(document, node) : NULL;
		const yaml_node_t *key;

		if (!pair)
			continue;
		key = yaml_document_get_node(document, pair->key);
		*ret_key = (const char *)key->data.scalar.value;
		*ret_line = line_of(key);
		memmove(pair, pair + 1, (size_t)(node->data.mapping.pairs.top - pair - 1) * sizeof(*pair));
		node->data.mapping.pairs.top--;
		return mask(key, text, length) == 0 ? 1 : -EINVAL;
	}
	return 0;
}
