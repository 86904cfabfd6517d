/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up what is not needed any more. */
#ifndef TAILOR_CLI_PRIVILEGES_H
#define TAILOR_CLI_PRIVILEGES_H

#include <stddef.h>

#include "config/config.h"

/* What is needed beyond what always is, as bits. */
enum {
	PRIVILEGES_PERFMON = 1 << 0, /* CAP_PERFMON: where tailor_kernel_needs_perfmon() */
	PRIVILEGES_NICE = 1 << 1,    /* CAP_SYS_NICE: where workers take a priority later, and that is not allowed without */
};

/*
 * Keeps of root's capabilities (capabilities(7)) only CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, which finding out who serves a
 * server's port needs, and those of `needs`, and becomes config->user, if there is one. For the calling thread: to be called before any other
 * is started; the bounding set and no_new_privs see to it that nothing comes back. Without root there is nothing to give up.
 * The directory of timelines, the access log and the sockets are given to the user first. Returns 0, or a negative errno with one line and
 * the remedy in `error`.
 */
int privileges_drop(const struct tailor_config *config, unsigned int needs, char *error, size_t error_size);

#endif /* TAILOR_CLI_PRIVILEGES_H */
