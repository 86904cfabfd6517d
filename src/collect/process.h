/* SPDX-License-Identifier: Apache-2.0 */
/* Which process listens where, and what its threads are called: read from /proc. */
#ifndef TAILOR_COLLECT_PROCESS_H
#define TAILOR_COLLECT_PROCESS_H

#include <stddef.h>
#include <sys/types.h>
#include "base/address.h"

/*
 * Finds the process that listens on the TCP address (also by a wildcard listener on that port, IPv4 or
 * IPv6) in this network namespace. *pid is who did the last time, or 0: as long as it still does, few others are looked at. Returns
 * 0 and *pid; -ESRCH when nobody listens here (a remote
 * server, or one that is down); -EACCES when a listener exists but its process may not be looked into; another negative errno
 * when it could not be found out (-EMFILE, -ENFILE, -ENOMEM).
 * Walks /proc: milliseconds; not for the data path.
 */
int tailor_process_listening(const struct tailor_address *address, pid_t *pid);

/* Calls `found` for every thread of the process. Returns 0 or a negative errno (-ESRCH). */
int tailor_process_tids(pid_t pid, void (*found)(void *context, pid_t tid), void *context);

#define TAILOR_COMM_BYTES 16
/* What the kernel calls a thread, terminated. Returns 0 or a negative errno: it has ended. */
int tailor_process_comm(pid_t pid, pid_t tid, char ret_comm[TAILOR_COMM_BYTES]);

/* Calls `found` for every thread of the process with its comm (at most 15 bytes). Returns 0 or a negative errno (-ESRCH). */
int tailor_process_threads(pid_t pid, void (*found)(void *context, pid_t tid, const char *comm), void *context);

#endif /* TAILOR_COLLECT_PROCESS_H */
