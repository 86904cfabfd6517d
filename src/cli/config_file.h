/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_CLI_CONFIG_FILE_H
#define TAILOR_CLI_CONFIG_FILE_H

#include "config/config.h"

/* Loads the configuration and prints each complaint as "FILE:LINE: ..." on stderr. Returns 0 or a negative errno. */
int cli_config_load(const char *path, struct tailor_config *ret_config);

#endif /* TAILOR_CLI_CONFIG_FILE_H */
