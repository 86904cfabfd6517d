/* SPDX-License-Identifier: Apache-2.0 */
/* Names of threads: the Java name that the agent told, else what the kernel calls it. */
#ifndef TAILOR_COLLECT_THREADS_H
#define TAILOR_COLLECT_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/window.h>

struct tailor_thread_life {
	uint8_t told;   /* the name is what the agent told, of a thread that lives as far as it said */
	uint8_t missed; /* times in a row that it was not found */
};

/* Zero at first; one thread; tailor_threads_free() at the end. */
struct tailor_threads {
	struct tailor_window_thread *list; /* ordered by tid: what a window takes */
	struct tailor_thread_life *lives;  /* of the same ones */
	size_t count, capacity;
};

/* Remembers a thread's name as the agent told it; a name told later replaces it. Returns 0 or -ENOMEM. */
int tailor_threads_learn(struct tailor_threads *threads, uint32_t pid, uint32_t tid, const char *name);

/* The agent said that the thread ended: its name stays for what has passed, until the id is found in use again. */
void tailor_threads_ended(struct tailor_threads *threads, uint32_t pid, uint32_t tid);

/* Finds the threads of a process; those whose name no agent told get their comm from /proc. Returns 0 or a negative errno (-ESRCH). */
int tailor_threads_scan(struct tailor_threads *threads, pid_t pid);

/* To be called after each round of scans, a second apart: forgets threads that were not found for ten rounds. */
void tailor_threads_age(struct tailor_threads *threads);
void tailor_threads_free(struct tailor_threads *threads);

#endif /* TAILOR_COLLECT_THREADS_H */
