/* SPDX-License-Identifier: Apache-2.0 */
/* What the judge has heard of the proxy: its requests, and what its counters must be. */
#ifndef TAILOR_SIMULATION_HEARD_H
#define TAILOR_SIMULATION_HEARD_H

#include <stdbool.h>
#include <stdint.h>
#include <tailor/event.h>
#include <tailor/tag.h>
#include <tailor/window.h>

#include "proxy/proxy.h"
#include "traffic.h"

#define RECORDS (1u << 14)
/* The server's port in tags of others. */
#define FOREIGN 1

/* A request as its events tell it. */
struct record {
	uint64_t id;
	struct request *request; /* NULL: its head was never whole, or nobody's */
	bool began, ended, at_stop;
	uint8_t attempts, sent, ended_attempts, responses;
	uint8_t placed; /* attempts at a server, as bits */
	uint8_t server[TAILOR_ATTEMPTS_MAX]; /* of each attempt */
	bool queued, late;
	bool moved, failed_connect, failed_closed, failed_bad, failed_timeout, down;
	uint16_t status;
	uint64_t bytes;
	enum tailor_request_end how;
	uint32_t winner;
	uint64_t began_ns;
	unsigned int client_waits, long_waits_before;
	uint64_t client_waited_ns; /* until when the last one was */
};

struct heard {
	struct tailor_tag tags[TAILOR_TAGS];
	struct record record[RECORDS]; /* by id */
	/* What the counters must be. */
	uint64_t begun, ended, refused, gone, cut, failed_over;
	uint64_t born_ns;
	/* Clients' connections that ended because a request on them had taken too long; those behind it end with it. */
	bool late_port[1u << 16];
	/* Attempts at each server now. */
	unsigned int at_server[TAILOR_PROXY_SERVERS_MAX];
	uint64_t sent[TAILOR_PROXY_SERVERS_MAX], responses[TAILOR_PROXY_SERVERS_MAX];
	uint64_t moved_away, moved_here[TAILOR_PROXY_SERVERS_MAX];
};
extern struct heard heard;

/* The one with that id, made where there was none. */
struct record *heard_record(uint64_t id);

#endif /* TAILOR_SIMULATION_HEARD_H */
