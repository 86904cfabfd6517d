/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the kernel's recording share: the kernel opened or the reason to skip, children that are watched,
 * what was recorded. */
#ifndef TAILOR_TESTS_KERNEL_HARNESS_H
#define TAILOR_TESTS_KERNEL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/types.h>

#include "collect/kernel.h"

/* Opens the kernel, or prints why it cannot and exits 77. */
struct tailor_kernel *harness_open(size_t slots_per_cpu);

/* A process with a control socket: the body runs in the child, and the child ends with it or with this process. */
struct child {
	pid_t pid;
	int control;
};
struct child child_start(const char *name, void (*body)(int control, void *context), void *context);
/* Sends a number and waits for the child's answer; fails the test when it gives none. */
int64_t child_ask(const struct child *child, int64_t number);
void child_tell(const struct child *child, int64_t number);
int64_t child_hear(const struct child *child);
void child_stop(struct child *child);

/* The child's side; control_hear() ends the process when the parent has closed. */
int64_t control_hear(int control);
void control_tell(int control, int64_t number);

/* ThreadSanitizer adds a thread of its own to every process, which shows in the recording like any other. */
#ifdef __SANITIZE_THREAD__
#define CHILD_HAS_ONE_THREAD 0
#else
#define CHILD_HAS_ONE_THREAD 1
#endif

/* Keeps a process on one CPU. */
void pin(pid_t pid, int cpu);

/* Two processes that pass a byte to and fro over pipes; pong waits delay_us before it answers. */
struct ping_pong {
	struct child ping;
	struct child pong;
	int pipes[2][2];
};
void ping_pong_start(struct ping_pong *pair, int delay_us);
void ping_pong_rounds(const struct ping_pong *pair, int64_t rounds);
void ping_pong_stop(struct ping_pong *pair);

/* The events between begin and end, by time. */
struct recording {
	struct tailor_kernel *kernel;
	uint64_t *begin; /* position by channel */
	struct tailor_event *events;
	size_t count;
	uint64_t lost;
	int stalls; /* set after recording_begin(): with the machine's stalls, which are nobody's and come when they like */
};
void recording_begin(struct recording *recording, struct tailor_kernel *kernel);
/* Replaces what an earlier call found. */
void recording_end(struct recording *recording);
void recording_free(struct recording *recording);

/* The first event at or after *index of that kind and thread (0: any), and moves *index behind it; NULL when there is
 * none. */
const struct tailor_event *recording_next(const struct recording *recording, size_t *index, enum tailor_event_kind kind,
                                          pid_t tid);
size_t recording_count(const struct recording *recording, enum tailor_event_kind kind, pid_t pid);

#endif /* TAILOR_TESTS_KERNEL_HARNESS_H */
