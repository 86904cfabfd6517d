/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config_file.h"

#include <stdio.h>

static void print_complaint(void *context, unsigned int line, const char *text)
{
	const char *path = context;

	if (line)
		fprintf(stderr, "%s:%u: %s\n", path, line, text);
	else
		fprintf(stderr, "%s: %s\n", path, text);
}

const char *cli_config_option(const struct argp_state *state, const char *earlier, const char *value)
{
	if (earlier)
		argp_error(state, "-c is given twice: %s and %s; name one file", earlier, value);
	return value;
}

int cli_config_load(const char *path, struct tailor_config *ret_config)
{
	return tailor_config_load(path, ret_config, print_complaint, (void *)path);
}
