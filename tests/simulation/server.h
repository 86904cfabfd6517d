/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the servers share: server.c reads and answers, server_answer.c decides what, server_jvm.c stops and
 * fails whole servers. */
#ifndef TAILOR_SIMULATION_SERVER_H
#define TAILOR_SIMULATION_SERVER_H

#include <tailor/jvm_page.h>

#include "output.h"
#include "traffic.h"
#include "wire.h"

enum ending {
	END_KEEP,   /* the connection serves on */
	END_CLOSE,  /* as announced, or as the framing needs it */
	END_STALE,  /* closed without a word, at once or later */
	END_RESET,  /* all of these at some byte of the answer: */
	END_FIN,
	END_SILENT,
};

struct serving {
	struct wire *wire;
	struct serving *next;
	unsigned int server;
	bool gone;
	bool waiting;   /* run() is on its way */
	uint64_t turns; /* to forget old timers */
	/* The request. */
	char *in;
	size_t in_length;
	bool in_body, body_done, reads; /* a server that has answered early may read no more */
	bool slow;
	struct request *request;
	bool chunked;
	uint64_t body_left, body_offset;
	struct unchunk unchunk;
	/* The answer. */
	bool planned, answering;
	struct output out;
	size_t out_at, out_stop;
	struct answer *answer;
	enum ending ending;
	uint64_t answer_ns;
};

struct server {
	bool refuses, silent_to_connects;
	bool gone; /* its process has ended, and the proxy is to be told so */
	bool paused; /* it stands still */
	bool frozen; /* and so does its heartbeat */
	uint64_t resume_ns, alive_ns, tell_ns, gone_ns;
	bool told; /* the kernel tells of its stops */
	struct tailor_jvm_page *page;
	int wakers[TAILOR_JVM_WAKERS];
	bool attached;
	uint64_t change_ns;
};

extern struct server servers[TAILOR_PROXY_SERVERS_MAX];
extern struct serving *servings; /* of all servers */
extern bool server_is_calm;      /* nothing fails on purpose any more */

/* Whether something goes wrong here that does so in per_mille of 1000 cases, times how much goes wrong in this life. */
bool server_faulty(unsigned int per_mille);
/* Writes the answer to serving->request into serving->out, and how the connection ends. */
void server_plan(struct serving *serving);
/* Its connection has ended. */
void server_gone(struct serving *serving);
/* A collection of that length begins; false: it stands still already. */
bool server_collect(struct server *server, uint64_t length_ns);
/* A request leaves garbage. */
void server_heap_fill(unsigned int server);
void server_heap_open(void);
void server_heap_turn(void);
/* The first port that connections come from. */
void server_ports_begin(uint16_t port);

#endif /* TAILOR_SIMULATION_SERVER_H */
