/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting an agent into a running JVM, by HotSpot's attach protocol (attachListener_posix.cpp,
 * VirtualMachineImpl.java). Inside `tailor attach`. Every function that fails says why in error, in words for a person,
 * and returns a negative errno.
 */
#ifndef TAILOR_CLI_ATTACH_H
#define TAILOR_CLI_ATTACH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#define ATTACH_ERROR_BYTES 1024
/* HotSpot takes no longer words (AttachOperation::arg_length_max). */
#define ATTACH_WORD_MAX 1024

struct attach_jvm {
	pid_t pid;     /* as we see it */
	pid_t own_pid; /* as it sees itself, in a container of its own */
	uid_t user;
	gid_t group;
	int fd;        /* pidfd: nobody else's process can take its number meanwhile */
	int root, tmp; /* its / and its /tmp, wherever its mounts have them */
	int has_agent; /* at work already */
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* that one connects to; "" not known */
};

/*
 * Looks whether the process is a HotSpot JVM that we may attach to, and changes nothing. Whoever calls it with success
 * closes it by attach_jvm_close().
 */
int attach_jvm_open(pid_t pid, struct attach_jvm *ret_jvm, char *error, size_t error_size);
void attach_jvm_close(struct attach_jvm *jvm);

/* Whether the JVM would take the signal that asks it to listen: one that does not would be ended by it (SIGQUIT with
 * -Xrs, or early). */
int attach_jvm_catches_quit(pid_t pid);

/* Whether it was told on its command line never to listen. */
int attach_jvm_refuses_to_listen(pid_t pid);

/* Whether the agent that is at work there is known to connect to another socket than `socket`, an absolute path as the JVM sees it. */
int attach_jvm_is_for_another(const struct attach_jvm *jvm, const char *socket);

/* Whether SIGSTOP or a debugger keeps it from answering. */
int attach_jvm_is_stopped(pid_t pid);

/*
 * Becomes the JVM's user for good: it lets nobody else attach, and what the JVM's side names is opened with no more
 * than its rights. Returns 0 also where we are that user already.
 */
int attach_become_user(const struct attach_jvm *jvm, char *error, size_t error_size);

/* Whether the JVM can read the agent's library at that absolute path, below its own root. As the JVM's user. */
int attach_check_library(const struct attach_jvm *jvm, const char *path, char *error, size_t error_size);

/*
 * Has the JVM load the library with these options, and waits for its word, until deadline_ns at most. As the JVM's
 * user; the working directory changes to the JVM's /tmp. -ETIMEDOUT: the JVM did not answer; it may yet do it.
 */
int attach_load(const struct attach_jvm *jvm, const char *path, const char *options, uint64_t deadline_ns, char *error,
                size_t error_size);

#endif /* TAILOR_CLI_ATTACH_H */
