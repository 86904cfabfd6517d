/* SPDX-License-Identifier: Apache-2.0 */
/* What `tailor load` was asked to do. */
#ifndef TAILOR_CLI_LOAD_OPTIONS_H
#define TAILOR_CLI_LOAD_OPTIONS_H

#include "load/load.h"
#include "load/print.h"

#define LOAD_HEADERS_MAX 64
#define LOAD_CONDITIONS_MAX 32

/* Strings belong to the command line, or live as long as this. */
struct load_arguments {
	struct tailor_load_options options;
	struct tailor_load_common common;
	struct tailor_load_condition conditions[LOAD_CONDITIONS_MAX];
	size_t condition_count;
	const char *headers[LOAD_HEADERS_MAX];
	const char *url;
	const char *url_path; /* of url */
	char host[TAILOR_LOAD_HOST_BYTES];
	const char *paths;
	const char *replay;
	const char *body_file;
	const char *csv, *hdr;
	const char *timelines;
	enum tailor_load_format format;
	bool json;
	bool allow_late;
};

/*
 * Reads the command line. Wrong usage ends the process with exit code 2 and one line that says what to write, as argp does;
 * --help ends it with 0.
 */
void load_parse_arguments(int argc, char **argv, struct load_arguments *arguments);

#endif /* TAILOR_CLI_LOAD_OPTIONS_H */
