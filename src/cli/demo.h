/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tailor demo`: two search servers whose collections stop them for 40 ms and more, once behind a proxy that only
 * watches and once behind one that moves requests, under the same load. One thread.
 */
#ifndef TAILOR_CLI_DEMO_H
#define TAILOR_CLI_DEMO_H

#include <jansson.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/demo_process.h"

#define DEMO_SERVERS 2
#define DEMO_WARM_S 5 /* load before the measured part of a run */

/*
 * Before what else runs on the machine, so that the demo measures itself, and the load before what it measures: a
 * client that gets no CPU would call a server slow. The same in both runs; without the right to it nothing changes.
 */
#define DEMO_NICE_SERVER (-5)
#define DEMO_NICE_PROXY (-10)
#define DEMO_NICE_LOAD (-15)

struct demo_options {
	char java[PATH_MAX];
	char agent[PATH_MAX];
	char jar[PATH_MAX];
	char dir[PATH_MAX];   /* absolute, exists */
	char index[PATH_MAX]; /* absolute */
	unsigned int rate;    /* requests a second */
	unsigned int seconds; /* measured part of a run */
	int json;
	int keep;
};

struct demo_server {
	char name[8];
	char address[64]; /* "127.0.0.1:PORT" */
	char gc_log[PATH_MAX];
	struct demo_process process;
};

/* What one run came to. */
struct demo_run {
	int failover;
	char timelines[PATH_MAX];
	char measured_from[40]; /* since when it was measured, RFC 3339 */
	double p50_ms, p99_ms, p999_ms, max_ms; /* client's response times, from when a request was due */
	uint64_t requests;
	uint64_t bad;         /* requests without a good answer */
	uint64_t collections; /* stops of the server that was active when they began, in the measured part */
	double longest_collection_ms;
	double host_stall_ms; /* longest time in the measured part that the machine itself stood still; -1: not known */
	uint64_t failed_over;
	unsigned int repeats; /* how often it was measured before, and thrown away because the machine stood still */
};

struct demo {
	struct demo_options options;
	struct demo_server server[DEMO_SERVERS];
	struct demo_process proxy;
	struct demo_process load;
	char sockets[PATH_MAX]; /* directory of the two below */
	int sockets_temporary;
	char admin_socket[108];
	char agent_socket[108];
	char proxy_address[64];
	uint64_t started_ns;
};

/* One line of progress on stderr, with the time since the start. */
void demo_say(const struct demo *demo, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One line on stderr that ends the demo: what failed and what to do. Returns -EIO for the caller to hand on. */
int demo_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* demo_fail() for a child that ended by itself: how, its last line, and the log to look into. */
int demo_fail_ended(struct demo_process *process);

/* All below return 0, -EINTR when asked to stop, or -EIO after demo_fail(). */

/* Starts both servers with the agent and waits until they are warm. */
int demo_servers_start(struct demo *demo);
/* -EIO after demo_fail() if one of them has ended. */
int demo_servers_check(struct demo *demo);

/*
 * Proxy, load, measured result; measured again, at most twice, when the machine itself stood still meanwhile: that is judged
 * by the load's watch of the CPUs, never by the result. With leave_proxy the proxy goes on when the run is over.
 */
int demo_run(struct demo *demo, int failover, int leave_proxy, struct demo_run *ret_run);

/* Prints table and slowest timelines, or with options.json the one object. */
int demo_print(struct demo *demo, const struct demo_run runs[2]);

/*
 * Asks the proxy's admin socket for /status. Returns a new reference, or NULL when it does not answer (yet) with JSON.
 */
json_t *demo_status(const char *socket_path);

/* Writes the load's request paths, one a line. Returns 0 or a negative errno. */
int demo_terms_write(const char *path);

/* Joins directory and file into path. Returns 0 or -ENAMETOOLONG. */
int demo_path(char path[PATH_MAX], const char *directory, const char *file);

#endif /* TAILOR_CLI_DEMO_H */
