/* SPDX-License-Identifier: Apache-2.0 */
/* Files that belong to this program, by where it is itself. */
#ifndef TAILOR_CLI_BESIDE_H
#define TAILOR_CLI_BESIDE_H

#include <limits.h>

/* The agent's library, of an installation or of a build directory (build/NAME/src/cli/tailor). Writes its absolute
 * path, or "". */
void cli_find_agent(char path[PATH_MAX]);

/* The first of the candidates, relative to this program's directory and ended by NULL, that can be read. Likewise. */
void cli_find_beside(char path[PATH_MAX], const char *const *candidates);

#endif /* TAILOR_CLI_BESIDE_H */
