/* SPDX-License-Identifier: Apache-2.0 */
#include "config/shape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Looking for each takes time; a file with more of them is none that a person wrote. */
#define DUPLICATES_MAX 16

#define PATH_BYTES 64

/* Of two values that have one key libcyaml would keep both, and free one. */
static int drop_duplicates(struct validation *validation, struct config_lines *lines, char *text, size_t length)
{
	const char *key;
	unsigned int line;

	for (unsigned int i = 0; i < DUPLICATES_MAX; i++) {
		int dropped = config_lines_drop_duplicate(lines, text, length, &key, &line);
		char complaint[160];

		if (dropped == 0)
			return 0;
		snprintf(complaint, sizeof(complaint), "key \"%.100s\" stands twice; remove one", key);
		complaint_say(validation, line, complaint);
		if (dropped < 0)
			return dropped;
	}
	return -EINVAL;
}

static const cyaml_schema_field_t *field_of(const cyaml_schema_field_t *fields, const char *key)
{
	for (; fields->key; fields++) {
		if (strcmp(fields->key, key) == 0)
			return fields;
	}
	return NULL;
}

static void look_for_unknown_keys(struct validation *validation, const cyaml_schema_field_t *fields, const char *path);

/* Of the sections in a value, itself or the items of a list. */
static void look_into(struct validation *validation, const cyaml_schema_value_t *value, const char *path)
{
	char item[PATH_BYTES];

	if (value->type == CYAML_MAPPING)
		look_for_unknown_keys(validation, value->mapping.fields, path);
	if (value->type != CYAML_SEQUENCE || value->sequence.entry->type != CYAML_MAPPING)
		return;
	for (unsigned int i = 0; i <= value->sequence.max; i++) {
		snprintf(item, sizeof(item), "%s[%u]", path, i);
		look_for_unknown_keys(validation, value->sequence.entry->mapping.fields, item);
	}
}

static void look_for_unknown_keys(struct validation *validation, const cyaml_schema_field_t *fields, const char *path)
{
	const char *key, *dot = *path ? "." : "";
	unsigned int line;

	for (size_t i = 0; config_lines_key(validation->lines, path, i, &key, &line); i++) {
		const cyaml_schema_field_t *field = key ? field_of(fields, key) : NULL;
		char inner[PATH_BYTES], complaint[512];

		if (field) {
			snprintf(inner, sizeof(inner), "%s%s%s", path, dot, field->key);
			look_into(validation, &field->value, inner);
		} else if (key) {
			snprintf(complaint, sizeof(complaint), "unknown key \"%s%s%.200s\"; the README lists the keys", path, dot, key);
			complaint_say(validation, line, complaint);
		}
	}
}

static void look_for_missing_keys(struct validation *validation)
{
	static const char *const keys[] = {"listen", "servers"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char complaint[64];

		if (config_lines_has(validation->lines, keys[i]))
			continue;
		snprintf(complaint, sizeof(complaint), "the key \"%s\" is missing and has no default", keys[i]);
		complaint_say(validation, 1, complaint);
	}
}

/* Whether what libcyaml misses is there, but had to be left out. */
static bool was_left_out(const struct validation *validation, const struct file_problem *problem)
{
	static const char missing[] = "Missing required mapping field: ";
	char path[PATH_BYTES * 2];

	if (strncmp(problem->text, missing, sizeof(missing) - 1) != 0)
		return false;
	snprintf(path, sizeof(path), "%s.%.*s", problem->field, PATH_BYTES - 1, problem->text + sizeof(missing) - 1);
	return complained_about(validation, path);
}

int shape_read(struct validation *validation, struct config_lines *lines, char *text, size_t length, struct file_config **ret_file)
{
	int error = drop_duplicates(validation, lines, text, length);

	look_for_unknown_keys(validation, file_config_fields(), "");
	look_for_missing_keys(validation);
	while (!error) {
		struct file_problem problem;

		if (file_config_load(text, length, ret_file, &problem) == 0)
			return 0;
		if (!was_left_out(validation, &problem))
			complain_about_problem(validation, &problem);
		/* It tells one at a time: the next one without this value. A key can be masked only once, so this comes to an end. */
		error = problem.field[0] && !problem.alias ? config_lines_mask(validation->lines, problem.field, text, length) : -EINVAL;
	}
	return -EINVAL;
}
