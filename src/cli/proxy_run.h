/* SPDX-License-Identifier: Apache-2.0 */
/* A running `tailor proxy`: its parts, and who belongs to whom. */
#ifndef TAILOR_CLI_PROXY_RUN_H
#define TAILOR_CLI_PROXY_RUN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/channel.h>
#include <tailor/store.h>
#include <tailor/tag.h>

#include "admin/admin.h"
#include "cli/takeover_wire.h"
#include "collect/jvm.h"
#include "collect/kernel.h"
#include "config/config.h"
#include "observer/observer.h"
#include "proxy/proxy.h"

#define UNMATCHED_MAX 32

/* An agent whose process listens nowhere that we know of (yet): a JVM may take minutes before it listens. */
struct proxy_unmatched {
	struct tailor_jvm *jvm; /* a reference is held */
	uint64_t since_ns;
	int said; /* that it is not used */
};

/* What is known about one configured server. */
struct proxy_server {
	pid_t pid;              /* of the process that listens at its address; 0 unknown */
	int pidfd;              /* polls readable when that process has ended; -1 where there is none */
	uint64_t looked_ns;     /* when that was last looked up */
	uint64_t alive_ns;      /* when it was last seen to run */
	struct tailor_jvm *jvm; /* its agent, NULL: none; a reference is held */
};

/* The process from which this one takes over. */
struct proxy_predecessor {
	const char *path; /* of its socket; "": where the configuration has it; NULL: there is none to take over from */
	int fd;           /* -1: there is none (any more) */
	pid_t pid;
	struct takeover_descriptors offered; /* and not yet taken */
	uint32_t taken; /* bits 1 << enum takeover_part */
};

enum successor_stage {
	SUCCESSOR_CONNECTED,
	SUCCESSOR_PREPARES, /* has the descriptors */
	SUCCESSOR_HAS_ALL,  /* what only one can have is its */
	SUCCESSOR_SERVES,
};

/* The process that takes over from this one. */
struct proxy_successor {
	int listener; /* -1: none */
	struct tailor_address address;
	bool borrowed; /* the socket's file is another process's */
	int fd;        /* -1: nobody wants to take over */
	pid_t pid;
	enum successor_stage stage;
	uint64_t since_ns; /* of this stage */
	uint32_t taken;    /* bits 1 << enum takeover_part */
	uint64_t not_stored; /* timelines, before the store was let go of */
};

/* Owned by the control thread, but for what `lock` guards: the admin thread reads it. */
struct proxy_run {
	const char *config_path;
	struct tailor_config config;
	pthread_mutex_t reloading;
	struct tailor_store_writer *store;
	struct tailor_accesslog *access_log; /* NULL: none */
	struct tailor_kernel *kernel; /* NULL: without kernel events */
	char kernel_error[256];
	struct tailor_tag *tags;
	struct tailor_tag *own_tags; /* when there is no kernel to share them with */
	struct tailor_channel *channels;
	void *channel_memory;
	size_t channel_bytes;
	int own_nice;   /* the process's own, before the workers' was set */
	unsigned int urgent_fifo; /* the workers' */
	bool keeps_nice; /* the right to have it must be kept for that */
	int group_nice; /* that of the group of processes that it leads; 0: it leads none, or it was left alone */
	struct tailor_address bound; /* config.listen with its real port */
	int listeners[TAILOR_PROXY_WORKERS_MAX];
	bool listening; /* and the proxy does not own them yet */
	struct tailor_proxy *proxy;
	struct tailor_observer *observer;
	struct tailor_jvm_hub *hub;
	struct tailor_admin *admin;
	struct proxy_predecessor predecessor;
	struct proxy_successor successor;
	uint64_t started_ns;
	int store_error_said; /* so that a full disk is one line, not one each second */
	uint64_t store_error_said_ns;
	int log_error_said;
	uint64_t log_error_said_ns;
	struct {
		char reason[80];
		uint64_t said_ns, unsaid;
	} refused; /* at the agents' socket */

	pthread_mutex_t lock; /* server[].jvm and .pid */
	struct proxy_server server[TAILOR_CONFIG_SERVERS_MAX];
	struct proxy_unmatched unmatched[UNMATCHED_MAX]; /* oldest first */
	size_t unmatched_count;
};

/* --- proxy_parts.c: starting and stopping all parts in order ----------------------------------- */

/* Starts everything; when it returns 0, requests are served. Else a negative errno, after a line about it: proxy_stop() what is there. */
int proxy_start(struct proxy_run *run);
/* Ends at once what still runs, and gives everything back but *run itself. */
void proxy_stop(struct proxy_run *run);

/* --- proxy_priority.c: how soon threads get a CPU. Control thread. ------------------------------ */

/*
 * Threads inherit how they are scheduled from the one that starts them: this one takes the workers' priority while it has the right to,
 * and goes back when they run, as far as it may without rights. Returns 0 or a negative errno, after a line about it, if what the configuration asks for cannot be had.
 */
int proxy_priority_raise(struct proxy_run *run);
void proxy_priority_restore(const struct proxy_run *run);
/* For setpriority(2): what makes a thread that nice beside workers that want a CPU as well, whatever the nice value of the group. */
int proxy_priority_nice(const struct proxy_run *run, int nice);

/* --- proxy_loop.c: signals and agents while it serves. Control thread. ------------------------- */

/* Blocks the signals that it lives by, for this thread and all that it starts, and returns what proxy_serve() reads them from. */
int proxy_signals_open(void);
/*
 * Serves until a signal says that it is enough, or another process serves instead. True when there is one that goes on with the
 * same sockets.
 */
bool proxy_serve(struct proxy_run *run, int signals);
/* Lets requests in flight end until timeouts.stop is over or another signal comes, and says what goes on; `patient` as in tailor_proxy_stop_begin(). */
void proxy_drain(struct proxy_run *run, int signals, bool patient);

/* --- proxy_takeover.c: taking over from a running process. Control thread; all but the first do nothing where there is none. --- */

/* Asks the running process for its descriptors; forgets predecessor.path if there is none where it is looked for. Returns 0 or a negative errno, after a line about it. */
int proxy_takeover_begin(struct proxy_run *run);
/* Takes one of them, the caller's from here on, if there is one, and it is bound to `address`, if that is not NULL; else -1. */
int proxy_takeover_take(struct proxy_run *run, enum takeover_part part, const struct tailor_address *address);
/* Says that everything is open, and waits until the old process has let go. Returns 0 or a negative errno, after a line about it. */
int proxy_takeover_claim(struct proxy_run *run);
/* -EINTR, after a line about it, when this process was told to stop: then it must not take over. */
int proxy_takeover_check(const struct proxy_run *run);
/* Says that this one serves; from here on everything is its own. */
void proxy_takeover_finish(struct proxy_run *run);
/* Unless it serves: lets the old process go on, and says why. Once nothing of what it had let go of is used any more. */
void proxy_takeover_give_up(struct proxy_run *run);

/* --- proxy_successor.c: another process takes over from this one. Control thread. --------------- */

/* Listens for one. Without, it serves as well: returns 0, perhaps after a line about it. After the store is open. */
int proxy_successor_open(struct proxy_run *run);
void proxy_successor_close(struct proxy_run *run);
/* To be called every now and then, and when something came on the connection or at the listener. */
void proxy_successor_dispatch(struct proxy_run *run, int connection, int listener);
/* Whether there is one that has everything, and does not serve yet. */
bool proxy_successor_is_due(const struct proxy_run *run);
/* Says what the other one cannot know: which slow requests were the last here, when the store was gone. After the observer has seen them. */
void proxy_successor_say_lost(struct proxy_run *run);
/* This process stops: a new one that has not got everything yet must not go on. True when there is one that has. */
bool proxy_successor_turn_away(struct proxy_run *run);

/* --- proxy_say.c: what a person is told -------------------------------------------------------- */

/* Prints one line about what goes on, "tailor: ...", on stderr. */
__attribute__((format(printf, 1, 2))) void proxy_say(const char *format, ...);
/* The last of them, without "tailor: ". */
const char *proxy_said_last(void);
/* Says what the timelines will lack, and how to get it. */
void proxy_say_missing(const struct proxy_run *run);
/* Says when timelines or lines of the access log begin to be lost, and when they are kept again. */
void proxy_say_trouble(struct proxy_run *run);

/* --- proxy_servers.c: which process and which JVM is which server. Control thread. ------------- */

/* Before all others. */
void proxy_servers_init(struct proxy_run *run);

/* For tailor_jvm_hub_open(); context is the struct proxy_run. */
void proxy_servers_attached(void *context, struct tailor_jvm *jvm);
void proxy_servers_detached(void *context, struct tailor_jvm *jvm);
void proxy_servers_refused(void *context, pid_t pid, const char *reason);

/* Looks again who listens at the servers' addresses, follows changes and matches waiting agents. Milliseconds. */
void proxy_servers_refresh(struct proxy_run *run);
/* 1 while an agent waits that came lately, so that refreshing soon is worth it. */
int proxy_servers_unsettled(const struct proxy_run *run);
/* Gives back all references. After the proxy and the observer have stopped. */
void proxy_servers_release(struct proxy_run *run);

/* --- proxy_status.c: what the admin interface answers ------------------------------------------ */

/* A tailor_admin_handler; context is the struct proxy_run. */
void proxy_status_answer(void *context, const char *method, const char *path, struct tailor_admin_reply *ret_reply);
/* A tailor_admin_refused; the same context. */
void proxy_status_refused(void *context, pid_t pid, uid_t uid);

#endif /* TAILOR_CLI_PROXY_RUN_H */
