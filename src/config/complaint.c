/* SPDX-License-Identifier: Apache-2.0 */
#include "config/complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

struct complaint_held {
	unsigned int line;
	char path[64]; /* of the value; "" where it is about none */
	char *text;
};

static void hold(struct validation *validation, const char *path, unsigned int line, char *text)
{
	struct complaint_held *held = reallocarray(validation->held, validation->held_count + 1, sizeof(*held));
	char *copy = strdup(tailor_printable_line(text));
	size_t at = validation->held_count;

	validation->complaints++;
	if (held)
		validation->held = held;
	if (!held || !copy) {
		/* Out of its order is better than never. */
		validation->complain(validation->context, line, text);
		free(copy);
		return;
	}
	while (at > 0 && held[at - 1].line > line)
		at--;
	memmove(held + at + 1, held + at, (validation->held_count++ - at) * sizeof(*held));
	held[at] = (struct complaint_held){.line = line, .text = copy};
	snprintf(held[at].path, sizeof(held[at].path), "%s", path);
}

void complaint_say(struct validation *validation, unsigned int line, char *text)
{
	hold(validation, "", line, text);
}

bool complained_about(const struct validation *validation, const char *path)
{
	for (size_t i = 0; i < validation->held_count; i++) {
		if (strcmp(validation->held[i].path, path) == 0)
			return true;
	}
	return false;
}

void complaints_tell(struct validation *validation)
{
	for (size_t i = 0; i < validation->held_count; i++) {
		validation->complain(validation->context, validation->held[i].line, validation->held[i].text);
		free(validation->held[i].text);
	}
	free(validation->held);
	validation->held = NULL;
	validation->held_count = 0;
}

void complain(struct validation *validation, const char *path, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	hold(validation, path, config_lines_of(validation->lines, path), text);
}

/* What a value of the wrong kind should have been; NULL when libcyaml's own words must do. */
static const char *wanted_instead(const struct file_problem *problem, const char **ret_value)
{
	static const struct {
		const char *begins, *says;
	} table[] = {
		{"Unknown flag: ", NULL},
		{"Invalid ENUM value: ", NULL},
		{"Expecting FLAGS", "is not a list; write it in brackets, like [GET, HEAD], or [] for none"},
		{"Expecting SEQUENCE", "is not a list; write it in brackets or with a dash before each item"},
		{"Expecting MAPPING", "is not a section; write {KEY: VALUE} or indented lines; the README lists the keys"},
		{"Expecting ", "is not a single value"},
		{"Insufficient entries", "is empty; name one server, or more to have a backup"},
		{"Excessive entries", "has too many items; at most 16"},
	};

	*ret_value = NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t length = strlen(table[i].begins);

		if (strncmp(problem->text, table[i].begins, length) != 0)
			continue;
		if (table[i].begins[length - 2] == ':')
			*ret_value = problem->text + length;
		/* The servers' list is the one that has a least. */
		if (strncmp(problem->text, "Excessive", 9) == 0 && strcmp(problem->field, "upgrade") == 0)
			return "has too many items; at most 4";
		if (strncmp(problem->text, "Excessive", 9) == 0 && strcmp(problem->field, "failover.replay") == 0)
			return "has too many items; at most 64";
		if (table[i].says)
			return table[i].says;
		return strcmp(problem->field, "failover.on") == 0       ? "is not one of: gc, safepoint, stall, crash"
		       : strcmp(problem->field, "failover.when") == 0   ? "is not one of: predicted, always, never"
		       : strcmp(problem->field, "failover.predict") == 0 ? "is not one of: off, on"
		       : strcmp(problem->field, "failover.collect") == 0 ? "is not one of: off, young, full"
		       : strcmp(problem->field, "mode") == 0            ? "is not one of: active-backup, balanced"
		       : strcmp(problem->field, "access_log.format") == 0 ? "is not one of: text, json"
		                                                        : "is not one of: auto, off, required";
	}
	return NULL;
}

/* Turns libcyaml's words into ours: the thing, then the remedy. */
void complain_about_problem(struct validation *validation, const struct file_problem *problem)
{
	static const char missing[] = "Missing required mapping field: ";
	const char *wanted, *value;
	char text[512];

	if (strncmp(problem->text, missing, sizeof(missing) - 1) == 0) {
		snprintf(text, sizeof(text), "the key \"%s.%s\" is missing and has no default", problem->field, problem->text + sizeof(missing) - 1);
	} else if ((wanted = wanted_instead(problem, &value)) != NULL && problem->field[0]) {
		/* Some come in libcyaml's quotes. */
		int length = value ? (int)strcspn(value + (*value == '\''), "'") : 0;

		if (value)
			snprintf(text, sizeof(text), "%s: \"%.*s\" %s", problem->field, length, value + (*value == '\''), wanted);
		else
			snprintf(text, sizeof(text), "%s: %s", problem->field, wanted);
	} else if (problem->field[0]) {
		snprintf(text, sizeof(text), "%s: %s", problem->field, problem->text);
	} else {
		snprintf(text, sizeof(text), "%s", problem->text);
	}
	hold(validation, problem->field, problem->line ? problem->line : 1, text);
}
