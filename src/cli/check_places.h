/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_CLI_CHECK_PLACES_H
#define TAILOR_CLI_CHECK_PLACES_H

#include "config/config.h"

/*
 * Warns on stderr of each place for files and sockets in a good configuration at which the proxy would fail when it starts: its
 * directory is missing, or something else is in the way. Makes nothing, and connects to nobody. Rights are not judged: the proxy may run as another user.
 */
void check_places(const char *config_path, const struct tailor_config *config);

#endif /* TAILOR_CLI_CHECK_PLACES_H */
