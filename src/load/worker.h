/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/load only: one thread of the generator and its connections. */
#ifndef TAILOR_LOAD_WORKER_H
#define TAILOR_LOAD_WORKER_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "http1/http1.h"
#include "load/load.h"
#include "load/schedule.h"
#include "ring/ring.h"

#define LOAD_BUFFER_BYTES 16384 /* the longest response head too */

enum connection_state {
	CONNECTION_FREE = 0,
	CONNECTION_CONNECTING,
	CONNECTION_IDLE,
	CONNECTION_BUSY,
	CONNECTION_LINGERING, /* its last answer has come; the server closes first, so that no port of ours waits */
	CONNECTION_CLOSING, /* waits until the kernel has let go of it */
	CONNECTION_STATES,
};

/* Operations, as bits in `pending` while the kernel owns them. */
enum connection_operation {
	OPERATION_CONNECT = 1,
	OPERATION_SEND = 2,
	OPERATION_RECEIVE = 4,
	OPERATION_CANCEL = 8, /* its completion tells nothing */
	OPERATION_STOP = 16,  /* of the worker */
	OPERATION_TIMER = 32, /* of the worker */
};

struct connection {
	struct connection *previous, *next; /* in the list of its state */
	uint8_t state;                      /* enum connection_state */
	uint8_t pending;                    /* enum connection_operation */
	uint32_t generation;
	int fd;
	uint64_t since_ns; /* connecting, lingering */

	/* the request under way */
	uint64_t number; /* of the worker */
	uint64_t due_ns;
	uint64_t sent_ns;
	const struct tailor_load_request *request;
	size_t sent_bytes;

	/* its response */
	struct http1_search search;
	struct http1_chunked chunked;
	uint64_t left; /* with HTTP1_LENGTH */
	uint64_t hash; /* of the body so far */
	uint64_t body_bytes;
	uint8_t framing;
	bool head_done;
	bool keep_alive;
	bool compared; /* its body is hashed */
	uint16_t status;
	char request_id[sizeof(((struct tailor_load_slow *)0)->request_id)];
	size_t filled;
	char *buffer; /* LOAD_BUFFER_BYTES, of the worker's buffers */
};

struct connection_list {
	struct connection *first, *last;
	unsigned int count;
};

/*
 * [head, next) are due and wait for a connection. In a closed loop nothing is due beforehand: a request is numbered
 * when it is sent, and nothing waits.
 */
struct worker {
	const struct tailor_load_options *options;
	struct load_schedule schedule;
	struct load_cursor next; /* to become due */
	struct load_cursor head;
	uint64_t sent;        /* in a closed loop: how many */
	uint64_t late_max_ns; /* later ones are dropped */
	uint64_t interval_end_ns;
	_Atomic uint64_t *first_bodies; /* hash of the first body for each of the plan's requests, 0 before; of all workers */

	struct tailor_ring *ring;
	struct connection *connections;
	char *buffers; /* one for each; touched only by those that are used */
	struct connection_list lists[CONNECTION_STATES];
	uint64_t retry_at_ns;   /* no new connection before */
	uint64_t retry_wait_ns; /* the last wait; 0 after a success */
	struct http1_head response_head; /* 5 KiB that no stack needs to hold */

	/*
	 * Results go to the main thread through two slots: it leaves an empty one in `spare`, and takes from `full`.
	 * While it is late, the worker goes on with the one it has, and never waits.
	 */
	struct tailor_load_result results[2];
	struct tailor_load_result *current;
	_Atomic(struct tailor_load_result *) spare;
	_Atomic(struct tailor_load_result *) full;

	struct tailor_ring_deadline timer;
	uint64_t timer_ns; /* the ring's timer is set to it; 0: not set */
	int stop_fd; /* eventfd: written to stop */
	uint64_t stop_value;
	bool stopping;
	uint64_t give_up_ns; /* when stopping */
	uint64_t measure_begin_ns, measure_begin_cpu_ns;
	double cpu_share;
	uint64_t cpu_ns;
	int error; /* negative errno: the ring failed */
	atomic_bool done;
	pthread_t thread;
	bool started;
};

/* worker.c; returns 0 or a negative errno, and needs load_worker_close() in either case. */
int load_worker_open(struct worker *worker, const struct tailor_load_options *options, unsigned int index);
void load_worker_close(struct worker *worker);
void *load_worker_run(void *worker);
/* How often a worker hands its results over: at each tick, or each interval. */
uint64_t load_worker_interval(const struct tailor_load_options *options);
/* Accounts for the end of a request. */
void load_worker_answered(struct worker *worker, const struct connection *connection, uint64_t now_ns);
void load_worker_failed(struct worker *worker, uint64_t due_ns, enum tailor_load_failure failure);
void load_worker_sent(struct worker *worker, const struct connection *connection);
/* A new connection could not be made; error is a negative errno. */
void load_worker_connect_failed(struct worker *worker, int error, uint64_t now_ns);

/* connection.c */
void load_connection_list_remove(struct connection_list *list, struct connection *connection);
void load_connection_list_append(struct connection_list *list, struct connection *connection);
/* Starts a connection in a free slot, of which there must be one. */
void load_connection_open(struct worker *worker, uint64_t now_ns);
/* Sends the worker's request with that number on an idle connection. */
void load_connection_send(struct worker *worker, struct connection *connection, uint64_t number, uint64_t due_ns);
void load_connection_complete(struct worker *worker, const struct tailor_completion *completion, uint64_t now_ns);
/* Ends the request under way and the connection. */
void load_connection_fail(struct worker *worker, struct connection *connection, enum tailor_load_failure failure);
void load_connection_close(struct worker *worker, struct connection *connection);

#endif /* TAILOR_LOAD_WORKER_H */
