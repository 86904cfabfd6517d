/* SPDX-License-Identifier: Apache-2.0 */
/* What clients asked, what servers answered, what came back: the truth that the proxy is measured by. */
#ifndef TAILOR_SIMULATION_TRAFFIC_H
#define TAILOR_SIMULATION_TRAFFIC_H

#include "http1/http1.h"
#include "world.h"

enum outcome {
	OUTCOME_OPEN,    /* still waited for */
	OUTCOME_WHOLE,   /* a server's whole response */
	OUTCOME_REFUSED, /* a whole answer of the proxy's own */
	OUTCOME_BROKEN,  /* the connection ended in the middle of a response */
	OUTCOME_NOTHING, /* the connection ended before */
};

struct wire;

struct request {
	uint32_t number;
	enum http1_method method;
	uint8_t minor;
	bool hostile;      /* not what HTTP allows */
	bool hostile_head; /* so that no server may see it */
	bool chunked;
	bool expects;      /* 100-continue */
	bool last;         /* says Connection: close, or is HTTP/1.0 without keep-alive */
	bool has_body;
	uint64_t body_bytes;
	bool written;      /* whole */
	/* The client does something that entitles the proxy to give up: aborts, stalls, ends too early, breaks rules. */
	bool client_cause;
	/* Servers' side. */
	unsigned int deliveries; /* heads that reached servers */
	/* Client's side. */
	enum outcome outcome;
	uint16_t status;
	uint32_t answer;      /* OUTCOME_WHOLE: which */
	uint64_t id;          /* X-Tailor-Request-Id; 0: none came */
	uint64_t reply_bytes; /* interim responses included */
	bool close_announced;
	bool behind_close; /* pipelined behind a response that ended the connection */
	const struct wire *wire; /* the client's */
	bool at_stop;      /* came to nothing while the proxy stopped */
	bool connection_refused; /* 503 without having been read */
};

struct answer {
	uint32_t request;
	unsigned int server;
	uint16_t status;
	uint64_t bytes;
	bool until_close;
	bool cut; /* not sent whole */
};

struct request *traffic_request(uint32_t number); /* NULL: there is none */
struct request *traffic_request_new(void);
uint32_t traffic_requests(void);
struct answer *traffic_answer(uint32_t number);
uint32_t traffic_answer_new(void);
void traffic_free(void);

const char *traffic_method(enum http1_method method);
enum http1_method traffic_method_of(const char *text, size_t length);

/* The body's key in world_pattern(). */
#define TRAFFIC_REQUEST_KEY(number) ((uint64_t)(number) << 1)
#define TRAFFIC_ANSWER_KEY(number) ((uint64_t)(number) << 1 | 1)

/* The value of a field in a head that ends with an empty line; NULL when it is not there. *ret_count: how often it is. */
const char *traffic_field(const char *head, size_t length, const char *name, size_t *ret_length, unsigned int *ret_count);

/* A chunked body, one run at a time: none of the parser under test. */
struct unchunk {
	uint64_t left;
	unsigned int state;
	unsigned int line; /* bytes of the current line of the trailer section */
	bool done, bad;
};
/* Takes bytes from `data`, returns how many; a run of content among them is *ret_run, *ret_bytes (0: none). */
size_t unchunk_take(struct unchunk *unchunk, const char *data, size_t length, const char **ret_run, size_t *ret_bytes);

/* Servers and JVMs. */
void server_open(void);
/* Before the proxy: the kernel's table of stops, if this life has one. */
void server_table_open(void);
void server_close(void);
/* At the top level only: attaches or detaches JVMs when it is time. */
void server_turn(void);
/* No pauses, no faults from here on; everything that was silent ends. */
void server_calm(void);
unsigned int server_connections(unsigned int server);
/* It stands still at this moment, or somebody says so; `known`: and the proxy is among those that are told. */
bool server_stands(unsigned int server, bool known);
/* For a while already it has been drained, by what the proxy says. */
bool server_is_drained(unsigned int server);
/* All is calm: what came of drains. */
void server_heap_end(void);
/* The proxy may have been told that its process has ended. */
bool server_was_gone(unsigned int server);

/* Clients. */
void client_open(void);
void client_free_all(void);
bool client_all_done(void);

#endif /* TAILOR_SIMULATION_TRAFFIC_H */
