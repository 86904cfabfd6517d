/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a config file, said in one line each: the thing, its line, the remedy. */
#ifndef TAILOR_CONFIG_COMPLAINT_H
#define TAILOR_CONFIG_COMPLAINT_H

#include "config/config.h"
#include "config/file.h"
#include "config/lines.h"

struct validation {
	const struct config_lines *lines;
	tailor_config_complaint *complain;
	void *context;
	unsigned int complaints; /* so far */
};

/* Makes `text` printable, in place, and passes it on with that line. Texts may hold what the file holds. */
void complaint_say(struct validation *validation, unsigned int line, char *text);

/* About the value at a path, "slow.threshold" or "servers[1].name", whose line it names. */
__attribute__((format(printf, 3, 4))) void complain(struct validation *validation, const char *path, const char *format, ...);

/* Turns libcyaml's words into ours. */
void complain_about_problem(struct validation *validation, const struct file_problem *problem);

#endif /* TAILOR_CONFIG_COMPLAINT_H */
