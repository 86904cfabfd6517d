/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of `tailor demo`: started with a log, watched, and stopped whatever happens to us. One thread. */
#ifndef TAILOR_CLI_DEMO_PROCESS_H
#define TAILOR_CLI_DEMO_PROCESS_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct demo_process {
	char name[32];      /* for messages: "server a" */
	char log[PATH_MAX]; /* its stderr; absolute */
	pid_t pid;          /* also its process group; 0: not started, or ended and reaped */
	int status;         /* of waitpid(), once ended */
};

/* Blocks the signals that demo_process_wait() takes and ignores SIGPIPE. Once, before the first child. */
void demo_process_setup(void);

/* How to start one. All but directory and out must be set. */
struct demo_start {
	const char *name;
	char *const *argv;     /* argv[0] is looked up in PATH */
	const char *directory; /* to run in; NULL: ours */
	const char *out;       /* file for stdout; NULL: in the log, too */
	const char *log;       /* file for stderr */
	int death_signal;      /* sent to it should we die first */
	int nice;              /* negative: before others, where we may ask for that */
};

/*
 * Starts a child in a process group of its own. Returns 0, or the negative errno of what failed, exec included; then
 * *ret_process is as it was.
 */
int demo_process_start(const struct demo_start *start, struct demo_process *ret_process);

/* 1 while it runs, else 0: then `status` holds how it ended. */
int demo_process_running(struct demo_process *process);

/* Sends SIGTERM to the group, after grace_ms SIGKILL, and reaps. Does nothing to a process that is not running. */
void demo_process_stop(struct demo_process *process, int grace_ms);

/* Writes how it ended ("exit code 1", "signal 9, Killed") and returns buffer. */
char *demo_process_ending(const struct demo_process *process, char *buffer, size_t size);

/*
 * Waits for `ms`, or less when a child ends. Returns 0, or -EINTR when we are asked to stop (SIGINT, SIGTERM, SIGHUP),
 * then and in every later call.
 */
int demo_process_wait(int ms);

/* Copies the rest of the first complete line of a file that contains `prefix`, from behind it. 1 found, 0 not (yet). */
int demo_log_find(const char *path, const char *prefix, char *buffer, size_t size);

/* Copies the last line with something on it; "" if there is none. Returns buffer. */
char *demo_log_last_line(const char *path, char *buffer, size_t size);

#endif /* TAILOR_CLI_DEMO_PROCESS_H */
