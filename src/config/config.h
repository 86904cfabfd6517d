/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy's configuration: YAML, validated whole before anything starts. Values carry their units,
 * unknown keys are refused, every complaint names its line.
 */
#ifndef TAILOR_CONFIG_CONFIG_H
#define TAILOR_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/stop.h>

#include "base/address.h"

#define TAILOR_CONFIG_SERVERS_MAX TAILOR_STOP_SERVERS
#define TAILOR_CONFIG_WORKERS_MAX 16
#define TAILOR_CONFIG_NAME_BYTES 32
#define TAILOR_CONFIG_PATH_BYTES 4096
#define TAILOR_CONFIG_VIA_BYTES 64
#define TAILOR_CONFIG_UPGRADES_MAX 4
#define TAILOR_CONFIG_ROUTES_MAX 16
#define TAILOR_CONFIG_ROUTE_BYTES 128
#define TAILOR_CONFIG_UPGRADE_BYTES 32

enum tailor_config_trace {
	TAILOR_CONFIG_TRACE_AUTO = 0,     /* trace if this host allows it, else say so and serve */
	TAILOR_CONFIG_TRACE_OFF = 1,
	TAILOR_CONFIG_TRACE_REQUIRED = 2, /* refuse to start without it */
};

enum tailor_config_log_format {
	TAILOR_CONFIG_LOG_TEXT = 0,
	TAILOR_CONFIG_LOG_JSON = 1,
};

struct tailor_config_server {
	char name[TAILOR_CONFIG_NAME_BYTES];
	struct tailor_address address;
};

enum tailor_config_mode {
	TAILOR_CONFIG_ACTIVE_BACKUP = 0,
	TAILOR_CONFIG_BALANCED = 1,
};

enum tailor_config_replay_when {
	TAILOR_CONFIG_REPLAY_PREDICTED = 0,
	TAILOR_CONFIG_REPLAY_ALWAYS = 1,
	TAILOR_CONFIG_REPLAY_NEVER = 2,
};

enum tailor_config_collect {
	TAILOR_CONFIG_COLLECT_OFF = 0,
	TAILOR_CONFIG_COLLECT_YOUNG = 1,
	TAILOR_CONFIG_COLLECT_FULL = 2,
};

/* Requests that may be sent twice. */
struct tailor_config_route {
	uint32_t methods; /* bits 1 << enum http1_method */
	char path[TAILOR_CONFIG_ROUTE_BYTES]; /* as in struct tailor_proxy_route; "" any */
};

/* Owned by value. Paths are as written; a relative one is relative to the working directory. */
struct tailor_config {
	struct tailor_address listen;
	struct tailor_config_server server[TAILOR_CONFIG_SERVERS_MAX];
	size_t servers;
	unsigned int workers; /* `auto` is one for each CPU that this process may use, at most as many as there can be */

	/* Of the workers' threads. */
	bool priority_given; /* refused where it is not allowed; the default is left out there */
	int nice;            /* -20..19 */
	unsigned int fifo;   /* of SCHED_FIFO, 1..99; 0: not that */
	uint64_t busy_poll_ns; /* how long a worker looks for work before it sleeps */

	bool has_user;
	uid_t user; /* whom to become when everything that needs root has been opened */
	gid_t user_group;

	uint64_t slow_threshold_ns;
	uint32_t baseline_one_in; /* 0: none */

	enum tailor_config_mode mode;
	uint32_t failover_on; /* bits 1 << enum tailor_stop_kind */
	enum tailor_config_replay_when replay_when;
	struct tailor_config_route route[TAILOR_CONFIG_ROUTES_MAX];
	size_t routes;
	double replay_part; /* of all requests, 0..1 */
	unsigned int replay_floor_per_s;
	uint64_t switch_min_ns;
	bool predict; /* collections, and keep requests away from them */
	enum tailor_config_collect collect; /* which of them it may bring about; with predict */

	char timelines_path[TAILOR_CONFIG_PATH_BYTES];
	uint64_t timelines_bytes_max;

	bool has_access_log;
	char access_log_path[TAILOR_CONFIG_PATH_BYTES];
	enum tailor_config_log_format access_log_format;

	bool has_admin;
	struct tailor_address admin;

	bool has_agent;
	char agent_socket[TAILOR_CONFIG_PATH_BYTES];
	bool has_agent_group;
	gid_t agent_group; /* whose JVMs may connect to the socket, too */

	uint64_t connect_timeout_ns;
	uint64_t response_timeout_ns;
	uint64_t idle_timeout_ns;
	uint64_t head_timeout_ns; /* these three are idle_timeout_ns unless said */
	uint64_t body_timeout_ns;
	uint64_t keep_alive_timeout_ns;
	uint64_t request_timeout_ns; /* 0: none */
	uint64_t queue_timeout_ns;
	uint64_t stop_timeout_ns; /* of a graceful stop */

	unsigned int connections_max;
	unsigned int per_address_max; /* connections of one client address; 0: no limit */
	unsigned int in_flight_max;   /* requests at once on a server; 0: no limit */
	unsigned int queue_max;       /* requests that may wait for a server at in_flight_max; 0 without that */
	unsigned int fields_max;      /* of a request's head */
	size_t head_bytes_max;
	uint64_t body_bytes_max; /* 0: no limit */
	size_t replay_bytes;     /* of a request's body, kept so that it can be sent again */
	uint64_t replay_bytes_total;

	char via[TAILOR_CONFIG_VIA_BYTES]; /* this proxy's name in Via; "": no such field */
	bool x_forwarded;
	bool forwarded;
	char upgrade[TAILOR_CONFIG_UPGRADES_MAX][TAILOR_CONFIG_UPGRADE_BYTES]; /* protocols that may pass, as written */
	size_t upgrades;

	enum tailor_config_trace trace;
	size_t events_per_cpu; /* power of two */
	bool trace_interrupts;
};

/* One complaint: line is 1-based, 0 where there is none (unreadable file). Text is one line that names the thing and the remedy. */
typedef void tailor_config_complaint(void *context, unsigned int line, const char *text);

/*
 * Reads and validates the file. Returns 0 and *ret_config, or -EINVAL (or a negative errno for a file
 * that can't be read, -ETIMEDOUT for a pipe whose end does not come within 2 s) after one or more complaints. No global
 * state; any thread.
 */
int tailor_config_load(const char *path, struct tailor_config *ret_config, tailor_config_complaint *complain, void *context);

#endif /* TAILOR_CONFIG_CONFIG_H */
