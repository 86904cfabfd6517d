/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up what is not needed any more. */
#ifndef TAILOR_CLI_PRIVILEGES_H
#define TAILOR_CLI_PRIVILEGES_H

#include <stddef.h>

#include "config/config.h"

/*
 * Keeps of root's capabilities (capabilities(7)) only CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, which finding out who serves a
 * server's port needs, and CAP_PERFMON where needs_perfmon (tailor_kernel_needs_perfmon()), and becomes config->user, if there is one. For the calling thread: to be called before any other
 * is started; the bounding set and no_new_privs see to it that nothing comes back. Without root there is nothing to give up.
 * The directory of timelines, the access log and the sockets are given to the user first. Returns 0, or a negative errno with one line and
 * the remedy in `error`.
 */
int privileges_drop(const struct tailor_config *config, int needs_perfmon, char *error, size_t error_size);

#endif /* TAILOR_CLI_PRIVILEGES_H */
