/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's end of the agents' socket: accepts agents, checks and maps what they hand over
 * (include/tailor/jvm_page.h), and says when one is gone.
 */
#ifndef TAILOR_COLLECT_JVM_H
#define TAILOR_COLLECT_JVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/channel.h>
#include <tailor/jvm_page.h>

/*
 * A connected JVM. Reference-counted: workers and the observer keep it mapped for as long as they look
 * at it, also after the JVM is gone. Fields are constant but for what `page` points to.
 */
struct tailor_jvm {
	struct tailor_jvm_page *page;
	struct tailor_channel channel;
	pid_t pid;     /* of the process at the other end (SO_PEERCRED): as this process sees it */
	uint32_t own_pid; /* as the JVM sees itself: what its events carry */
	uint64_t started_ns; /* when its agent began to record */
	int wakers[TAILOR_JVM_WAKERS];
	unsigned int references; /* atomic */
	size_t bytes;
};

/* Takes and gives back a reference. Any thread. The last one unmaps and closes. */
struct tailor_jvm *tailor_jvm_ref(struct tailor_jvm *jvm);
void tailor_jvm_unref(struct tailor_jvm *jvm);

/* Called from tailor_jvm_hub_dispatch(). The hub holds a reference between attached and detached; take one to keep it longer. */
struct tailor_jvm_events {
	void (*attached)(void *context, struct tailor_jvm *jvm);
	void (*detached)(void *context, struct tailor_jvm *jvm);
	void (*refused)(void *context, pid_t pid, const char *reason); /* a peer that is no agent of this version */
	void *context;
};

struct tailor_jvm_hub;

/*
 * Listens on the Unix socket at `path` (SOCK_SEQPACKET; a stale socket file of a dead proxy is replaced, a live one is
 * not). group: whose JVMs may connect, too (mode 0660), or TAILOR_LISTEN_OWNER for only this user's and root's (0600).
 * *events is copied. Returns 0, or a negative errno with one line and the remedy in `error`: -EADDRINUSE (another proxy
 * listens there), -EEXIST (the file is no socket), -ENAMETOOLONG, -EACCES, -EPERM (not a member of that group), ...
 */
int tailor_jvm_hub_open(const char *path, gid_t group, const struct tailor_jvm_events *events,
                        struct tailor_jvm_hub **ret_hub, char *error, size_t error_size);
/*
 * The same on a socket that another process has listened on at that path and handed over: `listener`, taken over in any case.
 * Agents that connect wait until tailor_jvm_hub_dispatch().
 */
int tailor_jvm_hub_adopt(int listener, const char *path, gid_t group, const struct tailor_jvm_events *events,
                         struct tailor_jvm_hub **ret_hub, char *error, size_t error_size);
/* The listening socket, for that. */
int tailor_jvm_hub_listener(const struct tailor_jvm_hub *hub);
/* Detaches all and accepts nobody; they come back, to whoever accepts on the same socket. And accepts again: 0 or a negative errno. */
void tailor_jvm_hub_rest(struct tailor_jvm_hub *hub);
int tailor_jvm_hub_resume(struct tailor_jvm_hub *hub);
/* Whether tailor_jvm_hub_close() leaves the socket's file, because it is another process's; so it is at first of one that was handed over. */
void tailor_jvm_hub_leave(struct tailor_jvm_hub *hub, bool leave);

/* A descriptor that polls readable when tailor_jvm_hub_dispatch() has work. */
int tailor_jvm_hub_fd(const struct tailor_jvm_hub *hub);
/* Handles what is there without blocking. One thread. */
void tailor_jvm_hub_dispatch(struct tailor_jvm_hub *hub);
/* Detaches all, closes and removes the socket file. */
void tailor_jvm_hub_close(struct tailor_jvm_hub *hub);

#endif /* TAILOR_COLLECT_JVM_H */
