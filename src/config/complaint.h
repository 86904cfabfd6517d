/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a config file, said in one line each: the thing, its line, the remedy. */
#ifndef TAILOR_CONFIG_COMPLAINT_H
#define TAILOR_CONFIG_COMPLAINT_H

#include <stdbool.h>

#include "config/config.h"
#include "config/file.h"
#include "config/lines.h"

struct validation {
	const struct config_lines *lines;
	tailor_config_complaint *complain;
	void *context;
	unsigned int complaints; /* so far */
	struct complaint_held *held; /* sorted by their lines */
	size_t held_count;
};

/* Makes `text` printable, in place, and keeps it with that line for complaints_tell(). Texts may hold what the file holds. */
void complaint_say(struct validation *validation, unsigned int line, char *text);

/* About the value at a path, "slow.threshold" or "servers[1].name", whose line it names. */
__attribute__((format(printf, 3, 4))) void complain(struct validation *validation, const char *path, const char *format, ...);

/* Whether there was a complaint about the value at that path: what was not read is no ground to judge another one. */
bool complained_about(const struct validation *validation, const char *path);

/* Passes all of them on, in the order of their lines, and forgets them. */
void complaints_tell(struct validation *validation);

/* Turns libcyaml's words into ours. */
void complain_about_problem(struct validation *validation, const struct file_problem *problem);

#endif /* TAILOR_CONFIG_COMPLAINT_H */
