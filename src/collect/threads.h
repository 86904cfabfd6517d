/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads: the Java name that the agent told, else what the kernel calls it. */
#ifndef TAILOR_COLLECT_THREADS_H
#define TAILOR_COLLECT_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/window.h>

/* Zero at first; one thread; tailor_threads_free() at the end. */
struct tailor_threads {
	struct tailor_window_thread *list; /* ordered by tid: what a window takes */
	size_t count, capacity;
};

/* Remembers a thread's name; a name told later replaces it. Returns 0 or -ENOMEM. */
int tailor_threads_learn(struct tailor_threads *threads, uint32_t pid, uint32_t tid, const char *name);

/* Adds the threads of a process that have no name yet, with their comm from /proc. Returns 0 or a negative errno (-ESRCH). */
int tailor_threads_scan(struct tailor_threads *threads, pid_t pid);

/* Forgets the threads of a process. */
void tailor_threads_forget(struct tailor_threads *threads, uint32_t pid);
void tailor_threads_free(struct tailor_threads *threads);

#endif /* TAILOR_COLLECT_THREADS_H */
