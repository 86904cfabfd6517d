/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data path: an HTTP/1.1 reverse proxy on io_uring in front of an active server and its backups, or of a group. Only
 * src/cli/proxy.c includes this.
 */
#ifndef TAILOR_PROXY_PROXY_H
#define TAILOR_PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tailor/channel.h>
#include <tailor/event.h>
#include <tailor/jvm_page.h>
#include <tailor/late.h>
#include <tailor/stop.h>
#include <tailor/tag.h>
#include "base/address.h"

#define TAILOR_PROXY_SERVERS_MAX TAILOR_STOP_SERVERS
#define TAILOR_PROXY_ROUTES_MAX 16
#define TAILOR_PROXY_ROUTE_BYTES 128
#define TAILOR_PROXY_WORKERS_MAX TAILOR_JVM_WAKERS
/* How long a client must take nothing of its response for TAILOR_EVENT_CLIENT_WAIT. */
#define TAILOR_PROXY_CLIENT_WAIT_NS UINT64_C(200000)

enum tailor_proxy_mode {
	TAILOR_PROXY_ACTIVE_BACKUP = 0, /* one serves; when it cannot, the next one that can does, and stays it */
	TAILOR_PROXY_BALANCED = 1,      /* each request goes to the one with the least in flight, of those that do not stand still */
};

/* When a request in flight at a server that stands still goes to another one, too. */
enum tailor_proxy_replay_when {
	TAILOR_PROXY_REPLAY_PREDICTED = 0, /* when the rest of the stop is expected to take longer than the other server will */
	TAILOR_PROXY_REPLAY_ALWAYS = 1,
	TAILOR_PROXY_REPLAY_NEVER = 2,     /* new requests still avoid it */
};

/* Which collections of servers that have been drained may be brought about, where their agents may, too. */
enum tailor_proxy_collect {
	TAILOR_PROXY_COLLECT_OFF = 0,
	TAILOR_PROXY_COLLECT_YOUNG = 1,
	TAILOR_PROXY_COLLECT_FULL = 2, /* and full ones, where one is expected */
};

/* Requests that may be sent twice. */
struct tailor_proxy_route {
	uint32_t methods; /* bits 1 << enum http1_method */
	char path[TAILOR_PROXY_ROUTE_BYTES]; /* the target without its query; a `*` stands for any characters but `/`, a last `**` for all; "" any path */
};

struct tailor_proxy_server {
	char name[32];
	struct tailor_address address;
};

/* Copied by tailor_proxy_start(); what it points to must outlive the proxy. */
struct tailor_proxy_options {
	struct tailor_address listen;
	const int *listeners; /* from tailor_proxy_listen(), for as many workers; taken over in any case. NULL: opened by start */
	bool shared; /* another process listens on the listeners, too: until tailor_proxy_accept() they are closed without harm to it */
	bool accept_later; /* nobody is accepted before tailor_proxy_accept(); whoever connects waits in the sockets' queues */
	struct tailor_proxy_server server[TAILOR_PROXY_SERVERS_MAX];
	unsigned int servers; /* server[0] is active first */
	unsigned int workers; /* 1..TAILOR_PROXY_WORKERS_MAX */
	unsigned int connections_max; /* clients, all workers together; one more is answered 503 and closed */
	unsigned int per_address_max; /* of them from one IP address, 0: no limit; one more is answered 429 and closed */
	unsigned int in_flight_max;   /* requests at once on a server, all workers together; 0: no limit */
	unsigned int queue_max;       /* requests that may wait because of it; one more is answered 503 */

	/* Protocols that a client may change to, see tunnel.h. */
	char upgrade[4][32];
	unsigned int upgrades;

	/* What servers are told about the way that requests have come, see forwarded.h. */
	char via[64];
	int x_forwarded;
	int forwarded;

	/* The priority of SCHED_FIFO, 1..99, of a worker that has had to wait for a CPU, for as long as it uses less than a quarter of one and if it
	 * may have it; else it is scheduled by its nice value, with short slices. 0: workers are scheduled as who starts the proxy. */
	unsigned int urgent_fifo;
	uint64_t busy_poll_ns; /* how long a worker that has nothing to do looks for work before it sleeps; 0: not at all */

	enum tailor_proxy_mode mode;
	uint32_t failover_on; /* bits 1 << enum tailor_stop_kind: SAFEPOINT, GC, STALL (with SIGNAL), GONE; 0: never */
	enum tailor_proxy_replay_when replay_when;
	struct tailor_proxy_route route[TAILOR_PROXY_ROUTES_MAX];
	unsigned int routes;
	/* Replays because of stops: at most this part of all requests, and in any case so many a second; of one server's, and in all. */
	double replay_part; /* 0..1 */
	unsigned int replay_floor_per_s;
	uint64_t switch_min_ns; /* a server that became the active one because another stood still stays it for so long, while it can */
	bool predict; /* a server whose collection is near gets no new requests */
	enum tailor_proxy_collect collect; /* with `predict` */
	uint64_t replay_bytes_max;   /* of a body, kept so that it can be; 0: none but short ones' that are here anyway */
	uint64_t replay_bytes_total; /* of all bodies, all workers together */
	unsigned int replay_attempts_max; /* attempts of one request in all, 1..TAILOR_ATTEMPTS_MAX */

	size_t head_bytes_max;   /* of requests and responses */
	unsigned int fields_max; /* of a request's head; 0: as many as can be parsed */
	uint64_t body_bytes_max; /* of a request, 0: no limit; 413 beyond */
	uint64_t connect_timeout_ns;
	uint64_t response_timeout_ns; /* request sent to response head */
	uint64_t idle_timeout_ns;     /* unused connections to servers; and what the next three are where they are 0 */
	uint64_t head_timeout_ns;       /* a request's first byte to its whole head */
	uint64_t body_timeout_ns;       /* between bytes of a body, either way, at either side */
	uint64_t keep_alive_timeout_ns; /* a client without a request */
	uint64_t queue_timeout_ns;      /* in the queue; 0: idle_timeout_ns, too */
	uint64_t request_timeout_ns;    /* a request's first byte to its response's last; 0: none */

	struct tailor_tag *tags;                /* TAILOR_TAGS entries; never NULL (plain memory when there is no kernel tracing) */
	const struct tailor_late *late;         /* TAILOR_LATE_THREADS entries; NULL: nobody tells */
	struct tailor_stop *stops;              /* TAILOR_STOP_SERVERS entries; NULL: nobody tells */
	int stops_fd;                           /* polls readable when one of them has changed that a worker waits for; with `stops` */
	const struct tailor_channel *channels;  /* one request channel per worker */
};

struct tailor_proxy;

/*
 * Opens the listening sockets of `workers` workers, before rights are given up or others are told. A port of 0 is chosen by the
 * kernel and stored in *address. Returns 0, or a negative errno with one line and the remedy in `error` and nothing left open.
 */
int tailor_proxy_listen(struct tailor_address *address, unsigned int workers, int ret_listeners[TAILOR_PROXY_WORKERS_MAX],
                        char *error, size_t error_size);

/*
 * The same with sockets that another process has listened on and handed over; it keeps what it has, and so does the caller.
 * *address must be theirs, or say port 0. Where there are more workers than sockets, several share one, and the kernel spreads
 * connections less evenly; fewer are refused: nobody would accept what comes to the rest.
 */
int tailor_proxy_adopt(struct tailor_address *address, unsigned int workers, const int *sockets, unsigned int socket_count,
                       int ret_listeners[TAILOR_PROXY_WORKERS_MAX], char *error, size_t error_size);

/*
 * Listens and starts the workers. Returns 0 and *ret_proxy when every worker serves, or a negative errno
 * with one line and the remedy in `error` (-EADDRINUSE: the port is taken; -EPERM: io_uring disabled; ...) and nothing
 * left behind.
 */
int tailor_proxy_start(const struct tailor_proxy_options *options, struct tailor_proxy **ret_proxy, char *error, size_t error_size);

/* Begins to accept, where options.accept_later said so. Once. */
void tailor_proxy_accept(struct tailor_proxy *proxy);

/* The address that it listens on, with the real port where 0 was asked for. */
struct tailor_address tailor_proxy_listening(const struct tailor_proxy *proxy);

/*
 * Begins a stop and returns at once: nothing is accepted any more and the listening sockets are closed; requests in flight
 * go on until deadline_ns (CLOCK_MONOTONIC), with `Connection: close` in their responses; what is left then is cut and
 * counted (tailor_proxy_status.stopped). Connections between requests are closed now, or, if the stop is `patient`, after their
 * next request: where another process goes on listening on the same sockets, a client that just sends its next request
 * loses nothing that way. Again with another deadline, or impatiently, while it goes on. One thread at a time.
 */
void tailor_proxy_stop_begin(struct tailor_proxy *proxy, uint64_t deadline_ns, bool patient);
/* True once all that was left has ended, so that tailor_proxy_stop() will not wait. */
bool tailor_proxy_stopped(const struct tailor_proxy *proxy);
/* Begins an impatient stop if none has begun, waits for its end and frees. */
void tailor_proxy_stop(struct tailor_proxy *proxy, uint64_t deadline_ns);

/*
 * Gives the workers the shared page and wakers of a server's JVM; both must stay valid until
 * tailor_proxy_jvm_detach() has returned, which waits until no worker looks at them any more.
 * Attaching replaces an earlier JVM of that server. One thread at a time.
 */
void tailor_proxy_jvm_attach(struct tailor_proxy *proxy, unsigned int server, struct tailor_jvm_page *page,
                             const int wakers[TAILOR_JVM_WAKERS]);
void tailor_proxy_jvm_detach(struct tailor_proxy *proxy, unsigned int server);

/*
 * The server's process has ended, which was alive at alive_ns. What is in flight on connections from before that and has not been answered
 * moves where it may, or is answered 502 now: the end of a connection that another process still holds would never be told. Later ones may
 * be the next process's, and tell by themselves. Only with TAILOR_STOP_GONE in failover_on. One thread at a time.
 */
void tailor_proxy_server_gone(struct tailor_proxy *proxy, unsigned int server, uint64_t alive_ns);

/* Why a request in flight at a server that stopped was not moved to the other. */
enum tailor_not_moved {
	TAILOR_NOT_MOVED_OFF,         /* failover is off */
	TAILOR_NOT_MOVED_NO_BACKUP,   /* there is no other server */
	TAILOR_NOT_MOVED_BOTH_PAUSED,
	TAILOR_NOT_MOVED_METHOD,      /* not replayable by policy */
	TAILOR_NOT_MOVED_BODY,        /* its body is not in the replay buffer */
	TAILOR_NOT_MOVED_BEGUN,       /* the response had begun */
	TAILOR_NOT_MOVED_ATTEMPTS,    /* attempts used up */
	TAILOR_NOT_MOVED_DOWN,        /* the other server is down */
	TAILOR_NOT_MOVED_REPLAY_FULL, /* its body would be, but others' had used up replay_bytes_total */
	TAILOR_NOT_MOVED_FULL,        /* the other server is at in_flight_max */
	TAILOR_NOT_MOVED_SHORT,       /* the stop was expected to be over before another server would have answered */
	TAILOR_NOT_MOVED_BUDGET,      /* too many had been moved lately */
	TAILOR_NOT_MOVED_REASONS,     /* how many there are */
};

/* The reason as a word for metrics and JSON ("both-paused"). Never NULL. */
const char *tailor_not_moved_name(enum tailor_not_moved reason);

/* How long before its collection a server was drained: by bucket i all up to tailor_warning_bucket_ns[i], the last one is all others. */
#define TAILOR_WARNING_BUCKETS 8
extern const uint64_t tailor_warning_bucket_ns[TAILOR_WARNING_BUCKETS];

struct tailor_proxy_server_status {
	uint64_t requests;     /* attempts sent */
	uint64_t responses;    /* complete ones */
	uint64_t connects;
	uint64_t connect_failures;
	uint64_t last_resorts; /* times it was asked although it counted as down, as no other could be */
	uint64_t pauses;       /* pause starts seen */
	uint64_t moved_away;   /* requests moved to another server when this one paused */
	uint64_t moved_here;   /* requests moved to this one then: its extra load */
	uint64_t stops[TAILOR_STOP_KINDS]; /* stops seen that are over, by their kind as known at the end */
	uint64_t service_ns;   /* what half of its answers took at most, when it was last of use to know; 0: not known */
	/* With options.predict: */
	uint64_t pauses_predicted; /* begun while it was drained */
	uint64_t pauses_missed;    /* begun while it was not */
	uint64_t drains;           /* begun */
	uint64_t false_drains;     /* of them, those that ended without a pause */
	uint64_t wishes;           /* collections that its JVM was asked for, */
	uint64_t wishes_granted;   /* and has brought about */
	uint64_t warning[TAILOR_WARNING_BUCKETS + 1]; /* drains by how long before the pause they began */
	uint64_t warning_ns_total;
	/* With it or without: */
	uint64_t pauses_met;   /* collections that requests in flight met */
	uint64_t requests_met; /* these requests */
	uint32_t in_flight; /* requests that it has not answered whole; tunnels are none */
	uint32_t connections;
	uint8_t drained;       /* it gets no new requests, as its collection is near */
	uint8_t agent;         /* a JVM is attached */
	uint8_t paused;        /* it stands still */
	uint8_t down;          /* no connection to it could be made the last time */
	uint8_t stop;          /* by what: enum tailor_stop_kind */
};

/* What a request is moved upon. */
enum tailor_reaction {
	TAILOR_REACTION_STOP,   /* the word that its server stands still, or the moment at which that was judged to last too long */
	TAILOR_REACTION_RETURN, /* there was none that could have served it, and one goes on: all that wait move at once, one after the other */
	TAILOR_REACTIONS,
};

/*
 * Times from that to the bytes of the request that was therefore sent to another server being the kernel's. By bucket i all up to
 * tailor_reaction_bucket_ns[i] that are longer than the one before; the last one is all others.
 */
#define TAILOR_REACTION_BUCKETS 20
extern const uint64_t tailor_reaction_bucket_ns[TAILOR_REACTION_BUCKETS];
struct tailor_reaction_times {
	uint64_t count[TAILOR_REACTION_BUCKETS + 1];
	uint64_t ns_total;
};

/* As a word for metrics ("stop"). Never NULL. */
const char *tailor_reaction_name(enum tailor_reaction reaction);

/* A snapshot of the counters; sums over workers. Counters only grow. */
struct tailor_proxy_status {
	uint64_t requests;    /* REQUEST_ENDs written */
	uint64_t refused;     /* answered by the proxy itself */
	uint64_t refused_by[TAILOR_REFUSALS]; /* of these; none by TAILOR_REFUSED_NONE */
	uint64_t client_gone;
	uint64_t cut;
	uint64_t failed_over; /* requests with more than one attempt because of a pause */
	uint64_t not_moved[TAILOR_NOT_MOVED_REASONS];
	struct tailor_reaction_times reaction[TAILOR_REACTIONS]; /* each replay in one bucket of one of them */
	uint32_t urgent;        /* workers that have options.urgent_fifo now */
	uint64_t switches;      /* another server became the active one because that one stood still */
	uint64_t switch_backs;  /* of them, to the one that had been it before, within ten times switch_min_ns */
	uint64_t stopped;     /* cut at the deadline of a stop; among client_gone */
	uint64_t stale_completions;
	uint64_t tunnels;     /* connections that have changed their protocol */
	uint64_t tunnels_idle; /* of them ended because nothing moved */
	uint64_t tunnel_bytes_to_server, tunnel_bytes_to_client;
	uint32_t tunnels_open;
	uint32_t clients;     /* connections now */
	uint32_t queued;      /* requests that wait for a place at a server now */
	enum tailor_proxy_mode mode;
	unsigned int active;  /* index of the active server; without a meaning when balanced */
	unsigned int servers;
	struct tailor_proxy_server_status server[TAILOR_PROXY_SERVERS_MAX];
};
void tailor_proxy_status(const struct tailor_proxy *proxy, struct tailor_proxy_status *ret_status);

/* What can change while the proxy serves; as in tailor_proxy_options. */
struct tailor_proxy_settings {
	enum tailor_proxy_mode mode;
	uint32_t failover_on;
	enum tailor_proxy_replay_when replay_when;
	struct tailor_proxy_route route[TAILOR_PROXY_ROUTES_MAX];
	unsigned int routes;
	double replay_part;
	unsigned int replay_floor_per_s;
	uint64_t switch_min_ns;
	bool predict;
	enum tailor_proxy_collect collect;
	uint64_t connect_timeout_ns;
	uint64_t response_timeout_ns;
	uint64_t idle_timeout_ns;
	uint64_t head_timeout_ns;
	uint64_t body_timeout_ns;
	uint64_t keep_alive_timeout_ns;
	uint64_t queue_timeout_ns;
	uint64_t request_timeout_ns;
};

/* Writes them into options for tailor_proxy_start(). */
void tailor_proxy_set(struct tailor_proxy_options *options, const struct tailor_proxy_settings *settings);

/* Waits until every worker has taken them; requests under way keep the deadlines that they have. One thread at a time. */
void tailor_proxy_apply(struct tailor_proxy *proxy, const struct tailor_proxy_settings *settings);

/* Makes the next server active by hand. Returns 0, -ENODEV when there is only one, -EOPNOTSUPP where all are (balanced). Any thread. */
int tailor_proxy_swap(struct tailor_proxy *proxy);

#endif /* TAILOR_PROXY_PROXY_H */
