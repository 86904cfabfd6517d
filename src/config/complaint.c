/* SPDX-License-Identifier: Apache-2.0 */
#include "config/complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

/* Texts hold what the file holds. */
void complaint_say(struct validation *validation, unsigned int line, char *text)
{
	validation->complain(validation->context, line, tailor_printable_line(text));
	validation->complaints++;
}

void complain(struct validation *validation, const char *path, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	complaint_say(validation, config_lines_of(validation->lines, path), text);
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
	static const char unexpected[] = "Unexpected key: ";
	static const char missing[] = "Missing required mapping field: ";
	const char *wanted, *value;
	unsigned int line = problem->line;
	char text[512];

	if (strncmp(problem->text, unexpected, sizeof(unexpected) - 1) == 0) {
		const char *key = problem->text + sizeof(unexpected) - 1;
		unsigned int own = config_lines_of_key(validation->lines, key, line);

		if (own)
			line = own;
		snprintf(text, sizeof(text), "unknown key \"%s\"; the README lists the keys", key);
	} else if (strncmp(problem->text, missing, sizeof(missing) - 1) == 0) {
		const char *key = problem->text + sizeof(missing) - 1;

		/* libcyaml gives the place of the mapping's last key, also for the top. */
		if (strcmp(key, "listen") == 0 || strcmp(key, "servers") == 0)
			line = 1;
		snprintf(text, sizeof(text), "the key \"%s\" is missing and has no default", key);
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
	complaint_say(validation, line ? line : 1, text);
}
