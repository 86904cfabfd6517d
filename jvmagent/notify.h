/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells the proxy and how: the shared page and channel (include/tailor/jvm_page.h), and the wakers. */
#ifndef TAILOR_JVMAGENT_NOTIFY_H
#define TAILOR_JVMAGENT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <tailor/event.h>
#include <tailor/jvm_page.h>

/* Limits of the option slots=N: 4 KiB and 256 MiB of memory. */
#define NOTIFY_SLOTS_MIN 64
#define NOTIFY_SLOTS_MAX (UINT64_C(1) << 22)

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/*
 * Creates memory and eventfds; the memory's name tells whoever may look at the process (`tailor attach`) which socket it is for. Once per
 * process, before any other function here. Returns 0, or a negative errno with what failed in *ret_what (static text); nothing is left
 * behind then.
 */
int notify_open(uint64_t slots, const char *socket, const char **ret_what);

/* Takes that back, as long as nobody has used it. */
void notify_close(void);

/* The shared page; valid after notify_open() for the rest of the process. */
struct tailor_jvm_page *notify_page(void);

/*
 * Writes one event of the calling thread `tid` at time_ns: kind, arg and extra as the caller set them, the rest is
 * filled in here. Any thread; never blocks, allocates or takes a lock.
 */
void notify_event(struct tailor_event *event, uint32_t tid, uint64_t time_ns, const char *text, uint64_t text_length);

/*
 * Publishes a state that began at since_ns, unless the JVM is gone already: a last collection may run beside VMDeath.
 * Any thread; never blocks.
 */
void notify_state(enum tailor_jvm_state state, uint64_t since_ns);

/* Wakes the workers that said they sleep. Call it after the state was stored. Any thread; never blocks; keeps errno. */
void notify_wake(void);

/* The JVM is gone: publishes that, and wakes. */
void notify_gone(void);
bool notify_is_gone(void);

/* Sends the hello with the memory and the wakers over a connection to the proxy. Returns 0 or a negative errno; never waits. */
int notify_hand_over(int fd);

/* Nobody of that proxy waits, wants or wishes any more. */
void notify_forget_proxy(void);

/*
 * One line "tailor-agent: ..." on stderr, unless stderr is a pipe that is full: a line lost is better than a JVM that
 * waits. Never from a GC callback.
 */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* TAILOR_JVMAGENT_NOTIFY_H */
