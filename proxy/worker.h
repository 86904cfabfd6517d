/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker: a thread with a ring, a listener, and the connections that it alone touches. What workers share is in
 * struct shared and is atomic. What a request is on its way is in request.h.
 *
 *   input.c     bytes received and not used up
 *   client.c    the client's side: bytes in, state of the connection
 *   client_wait.c  when its socket takes no more
 *   exchange.c  one request: its beginning, its end
 *   attempt.c   its attempts at servers, failover
 *   body.c      its body on the way to servers; replay.c keeps what may be sent again
 *   queue.c     places at the servers, and who waits for one
 *   server.c    which server gets a request
 *   route.c     which requests may be sent twice, budget.c how many of them are
 *   timeouts.c  how long anything may take
 *   tunnel.c    what follows a change of protocol
 *   urgency.c   how soon it gets a CPU
 *   upstream.c  connections to servers and their pool; discard.c what nobody wants to read of them, warm.c what waits for those that move
 *   response.c  the chosen response, framed for the client
 *   pause.c     which servers stand still, from all who tell
 *   stopped.c   what is done about it, expect.c for how long it will be
 *   keeper.c    whose collection is near: predict.c when it will come, drain.c what is done about it
 *   worker.c    the loop
 */
#ifndef TAILOR_PROXY_WORKER_H
#define TAILOR_PROXY_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tailor/channel.h>
#include <tailor/window.h>

#include "base/clock.h"
#include "http1/http1.h"
#include "proxy/date.h"
#include "proxy/drain.h"
#include "proxy/expect.h"
#include "proxy/input.h"
#include "proxy/pool.h"
#include "proxy/predict.h"
#include "proxy/proxy.h"
#include "proxy/request.h"
#include "proxy/trace.h"
#include "proxy/wheel.h"
#include "ring/ring.h"

/* In the tokens of the ring. */
enum operation {
	OPERATION_RECEIVE,
	OPERATION_SEND,
	OPERATION_CONNECT,
	OPERATION_SHUTDOWN,
	OPERATION_CLOSE,
	OPERATION_CANCEL,
	/* with SLOT_WORKER */
	OPERATION_ACCEPT,
	OPERATION_COMMAND,
	OPERATION_TIMER,
	OPERATION_BEAT,
	OPERATION_STOPS,
	OPERATION_WAKER, /* + server */
};
#define SLOT_WORKER UINT32_MAX

/* Clients beyond the limits that are told so at a time; memory for them is taken when used. */
#define WORKER_BEYOND_MAX 1024

/* What has happened to a response in a step and is not written yet, see record.h. */
struct told {
	uint64_t request;
	uint64_t bytes;
	uint32_t attempt; /* as in events; not of the reply */
	uint16_t port;
	uint8_t what; /* RECORD_..., 0: nothing */
};

struct addresses;
struct queue;

/* See budget.h. */
struct budget {
	int64_t left; /* atomic */
	/* Whose who has set busy. */
	uint64_t at_ns, requests;
	bool busy; /* atomic */
};

struct worker;

/* What all workers see. */
struct shared_server {
	struct budget budget;
	uint64_t down_until_ns; /* atomic; 0: up */
	uint64_t back_off_ns;   /* atomic */
	bool tried;             /* atomic: by a connection, while it is believed to be down */
	uint64_t resort_ns;     /* atomic: while it is, from when on it may be asked for want of others */
	uint64_t met_pause;     /* atomic: the last pause that requests met, by the count of pauses then */
};

/* A stop of a server as one worker sees it; see stopped.h. */
struct standing {
	enum tailor_stop_kind kind; /* as known best; TAILOR_STOP_NONE: it runs */
	enum tailor_stop_kind first; /* by what it was noticed */
	uint8_t kinds;        /* bits 1 << kind: all that it was */
	bool lasting;         /* it takes too long to wait for its end */
	uint64_t word;        /* by which it is `kind` */
	uint64_t since_ns;    /* the first word's */
	uint64_t noticed_ns;
	uint64_t signal_ns;   /* of the last word, or the moment at which it had lasted too long, or at which another server went on */
	enum tailor_reaction signal; /* which of them */
	uint64_t again_ns;    /* judged anew then; UINT64_MAX: not before somebody tells more */
	uint64_t handed_ns;   /* the bytes of its last replay were the kernel's; 0: there are none */
	struct expect_rest rest;
	uint32_t in_flight, moved, not_moved[TAILOR_NOT_MOVED_REASONS];
	uint64_t pauses;      /* of a collection: the agent's count with it */
	char cause[TAILOR_JVM_CAUSE_BYTES];
};

/* Requests at each server now, of one worker, which alone writes it. */
struct shared_load {
	_Alignas(64) uint32_t server[TAILOR_PROXY_SERVERS_MAX]; /* atomic */
};
_Static_assert(sizeof(struct shared_load) == 64, "a line each");

struct shared {
	unsigned int active;  /* atomic */
	uint64_t drain;       /* atomic: the lease, see drain.h */
	unsigned int active_before; /* atomic; with switched_ns */
	uint64_t switched_ns; /* atomic: when a stop last made it the active one; 0: none has */
	unsigned int clients; /* atomic */
	uint64_t replay_bytes; /* atomic; reserved */
	struct budget budget;
	const struct worker *workers; /* all of them; for their counters */
	struct addresses *addresses; /* NULL: no limit */
	struct queue *queue;         /* NULL: no limit */
	struct shared_server server[TAILOR_PROXY_SERVERS_MAX];
	struct shared_load load[TAILOR_PROXY_WORKERS_MAX];
};

struct server {
	struct upstream *idle; /* most recently used first */
	struct upstream *in_flight;
	struct upstream *discarding; /* and those that connect for nobody yet */
	/* the JVM; page NULL: none */
	struct tailor_jvm_page *page;
	int waker;
	bool waker_reading;
	uint32_t waker_generation;
	uint64_t waker_value;
	uint64_t state; /* as last looked at */
	uint64_t pauses_seen;
	/* Its heartbeat, while it is looked at. */
	uint64_t beat_ns;   /* as last looked at */
	uint64_t beat_due_ns;
	bool suspected, stalled;
	uint64_t told, told_stops; /* the kernel's word as last looked at, and its count */
	bool waits;                /* it is to wake this worker */
	uint64_t gone_ns; /* its process has ended: who waits for its answer from then on waits in vain; 0: not as far as known */
	uint64_t alive_ns; /* with it: what was connected by then was connected to that process, and not to the next one */
	struct standing standing;
	uint64_t stood_ns; /* when it last began to run again */
	struct learned *learned;
};

/* What one worker has learned of a server. */
struct learned {
	struct expect_stops stops;
	struct expect_lengths service; /* of its answers */
	uint64_t answers;    /* how many of them */
	uint64_t service_ns; /* what one was expected to take not long ago: worked out again now and then, not when it stops; 0: unknown */
};

/* Owned by the worker, read by tailor_proxy_status(): see count(). */
struct counters {
	uint64_t tunnels, tunnels_open, tunnels_idle, tunnel_bytes_to_server, tunnel_bytes_to_client;
	uint64_t refused_by[TAILOR_REFUSALS];
	uint64_t requests, refused, client_gone, cut, failed_over, stale_completions, stopped;
	uint64_t not_moved[TAILOR_NOT_MOVED_REASONS];
	struct tailor_reaction_times reaction[TAILOR_REACTIONS];
	uint64_t switches, switch_backs, urgent;
	struct {
		uint64_t stops[TAILOR_STOP_KINDS], stop, service_ns;
		uint64_t requests, responses, connects, connect_failures, last_resorts, pauses, moved_away, moved_here;
		uint64_t in_flight, connections, agent, paused;
		uint64_t pauses_met, requests_met, drains, false_drains, predicted, missed, wishes, granted;
		uint64_t warning[TAILOR_WARNING_BUCKETS + 1], warning_ns_total;
	} server[TAILOR_PROXY_SERVERS_MAX];
};

/* What the first worker knows of the heaps, and what it does about them; see keeper.h. */
struct kept {
	struct predict predict;
	uint64_t since_ns; /* what is older says nothing */
	uint64_t pauses; /* counted so far */
	enum tailor_jvm_wish wished; /* the next collection will be this one */
	bool gone;               /* its JVM was there and is not any more; it may be as before when it has answered, */
	uint64_t gone_responses; /* more often than this */
};

struct keeper {
	struct kept server[TAILOR_PROXY_SERVERS_MAX];
	struct drain drain;
	bool on;
	uint64_t lease;   /* while a drain is under way */
	uint64_t next_ns; /* looks again then; UINT64_MAX: there is nobody to look at */
	bool warned;      /* the collection that this drain is for has been counted */
};

enum command_kind {
	COMMAND_ACCEPT,
	COMMAND_ATTACH,
	COMMAND_DETACH,
	COMMAND_GONE,
	COMMAND_APPLY,
	COMMAND_STOP,
};

/* From another thread; lives until `done` is posted. */
struct command {
	enum command_kind kind;
	unsigned int server;
	struct tailor_jvm_page *page;
	const int *wakers;
	const struct tailor_proxy_settings *settings;
	uint64_t deadline_ns;
	uint64_t alive_ns; /* COMMAND_GONE: see tailor_proxy_server_gone() */
	bool patient; /* COMMAND_STOP: see tailor_proxy_stop_begin() */
	sem_t done;
};

/* See urgency.h. */
struct urgency {
	bool has;           /* it has the priority now */
	int schedstat_fd;   /* -1: none */
	uint64_t look_ns;   /* when it is seen to again; UINT64_MAX: never */
	uint64_t waited_ns, times; /* without the priority: as schedstat said the last time */
	uint64_t until_ns;  /* with it: until when... */
	uint64_t period_ns, cpu_ns; /* since when the quota of now counts, and what the thread had used of a CPU until then */
	uint64_t calm_ns;   /* from when on it may have it again */
};

struct worker {
	struct tailor_ring *ring;
	const struct tailor_proxy_options *options; /* own_options */
	struct tailor_proxy_options own_options;
	struct shared *shared;
	struct trace_source trace;
	uint64_t now_ns; /* of this turn of the loop; for deadlines, not for events */
	uint64_t last_ns, before_ns; /* of the turn before this one, and of the one before that */
	const struct tailor_late *late; /* of this thread; NULL: nobody tells */
	uint64_t turn;    /* of the loop: what is queued in one goes to the kernel with the next */
	uint64_t step_ns; /* what events recorded now have as their time (record.h); 0: what the clock says */
	struct told told;
	uint32_t pid, tid;
	unsigned int index;
	struct wheel wheel;
	struct server server[TAILOR_PROXY_SERVERS_MAX];
	struct counters counters;
	struct urgency urgency;

	struct client *clients;
	struct client *client_free;
	uint32_t beyond_count; /* clients beyond the limit, of whose slots nobody else is deprived */
	uint32_t client_slots, client_used,
	        client_count; /* used: slots that were ever taken, the others are untouched memory */
	struct upstream *upstreams;
	struct upstream *upstream_free;
	uint32_t upstream_slots, upstream_used, upstream_count;
	uint32_t in_bytes, forward_bytes, out_bytes, upstream_in_bytes; /* sizes of the buffers */
	struct pool in_pool, forward_pool, out_pool, upstream_in_pool;
	uint64_t warm_ns;                       /* when it is seen to again that replays find connections */
	int warm_without;                       /* the server whose requests they are for, -1: it need not be seen to */
	uint64_t warm_again_ns;                 /* those that were made since... */
	unsigned int warmed;                    /* ...so many, are not made once more before that */
	uint64_t trim_ns;                       /* when the pools are looked at again */
	struct input_lent lent[INPUT_BUFFERS];  /* of the ring's buffers that are not the kernel's */
	unsigned int lent_count;
	struct date date;
	struct pool replay_pool;
	uint32_t replay_bytes; /* of its blocks; 0: there are none */
	struct http1_limits limits, response_limits;
	struct http1_head head; /* of the message at hand; valid until the next parse */
	struct learned *learned; /* of each server */
	struct keeper keeper;    /* of the first worker */
	void *memory;           /* clients and upstreams */
	size_t memory_bytes;

	int listener;
	/* The ring's timer: stays under way while completions wake the thread up. UINT64_MAX: none. */
	uint64_t timer_ns;
	struct tailor_ring_deadline timer;
	/* The same for the heartbeats, while one is looked at. */
	uint64_t beat_timer_ns;
	struct tailor_ring_deadline beat_timer;
	bool accepting, accept_wanted;
	uint64_t accept_retry_ns;
	int command_fd;
	uint64_t command_value;
	struct command *command;   /* atomic */
	struct command *detaching; /* acknowledged when the waker's read is back */
	bool stopping, patient;
	bool left;  /* atomic: the listener is not used any more */
	bool ended; /* atomic: the thread has nothing left to do */
	uint64_t stop_deadline_ns;
	pthread_t thread;
	sem_t started;
	int start_result;
};

/* Adds to a counter that only this worker writes. */
static inline void count_add(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, *counter + value, __ATOMIC_RELAXED);
}

static inline void count(uint64_t *counter)
{
	count_add(counter, 1);
}

/* Sizes and maps the worker's memory. Returns 0 or -ENOMEM. Any thread, before worker_run(). */
int worker_open(struct worker *worker);
void worker_close(struct worker *worker);

/* A free slot, not closing, without memory for bytes, no descriptor; NULL when all are taken. */
struct client *worker_take_client(struct worker *worker);
struct upstream *worker_take_upstream(struct worker *worker);

/* The thread: posts worker->started with start_result set, serves until COMMAND_STOP is done. */
void *worker_run(void *worker);

#endif /* TAILOR_PROXY_WORKER_H */
