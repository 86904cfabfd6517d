/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the room: the table of servers that stand still (bpf/stop.bpf.h), whose stops are told there, and the descriptor that wakes
 * whoever polls it at each change that somebody waits for. A record of the change stays in a ring buffer that nobody reads, as each worker is to see it: a thread of
 * this takes the old ones out, all but the last.
 */
#ifndef TAILOR_COLLECT_KERNEL_STOPS_H
#define TAILOR_COLLECT_KERNEL_STOPS_H

#include <sys/types.h>
#include <tailor/stop.h>

struct tailor_kernel_stops;

/*
 * table, changes: descriptors of the maps `stops` and `stop_changes`, and signal_stops: the programs' word of that name; all the caller's, and
 * to outlive this. Returns 0 or a negative errno: -ENOMEM, or the mapping's.
 */
int tailor_kernel_stops_open(int table, int changes, uint64_t *signal_stops, struct tailor_kernel_stops **ret_stops);
void tailor_kernel_stops_close(struct tailor_kernel_stops *stops); /* NULL is nothing */

/*
 * The process's stops are told in that entry from now on (0: nobody's), which is cleared. Waits some ms for programs that run on behalf of the
 * one before. The thread starts with the first process, and has its caller's rights; it needs none. Returns 0, -EINVAL (server, pid)
 * or pthread_create()'s error. Any thread.
 */
int tailor_kernel_stops_tell(struct tailor_kernel_stops *stops, unsigned int server, pid_t pid);

/* Clears the words of a process that is traced no more, whose stops would have no end. Any thread. */
void tailor_kernel_stops_forget(struct tailor_kernel_stops *stops, pid_t pid);

/* As tailor_kernel_stops() and tailor_kernel_stops_fd(). */
struct tailor_stop *tailor_kernel_stops_table(const struct tailor_kernel_stops *stops);
int tailor_kernel_stops_changes(const struct tailor_kernel_stops *stops);

#endif /* TAILOR_COLLECT_KERNEL_STOPS_H */
