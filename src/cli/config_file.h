/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_CLI_CONFIG_FILE_H
#define TAILOR_CLI_CONFIG_FILE_H

#include <argp.h>

#include "config/config.h"

/* For -c in a command's options: returns value; where there was an earlier one (not NULL), ends the process as wrong usage. */
const char *cli_config_option(const struct argp_state *state, const char *earlier, const char *value);

/* Loads the configuration and prints each complaint as "FILE:LINE: ..." on stderr. Returns 0 or a negative errno. */
int cli_config_load(const char *path, struct tailor_config *ret_config);

#endif /* TAILOR_CLI_CONFIG_FILE_H */
