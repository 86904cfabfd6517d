/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way: its client, the exchange, its attempts at servers, and the connections that carry them. All of one worker. */
#ifndef TAILOR_PROXY_REQUEST_H
#define TAILOR_PROXY_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tailor/tag.h>
#include <tailor/window.h>

#include "http1/http1.h"
#include "proxy/input.h"
#include "proxy/pool.h"
#include "proxy/proxy.h"
#include "proxy/wheel.h"

/* What clients and upstreams have in common. Memory and descriptor go back when nobody holds either any more. */
struct connection {
	struct alarm alarm; /* first: the wheel hands it back */
	int fd;
	uint32_t slot;
	uint32_t generation;
	uint8_t operations; /* 1 << operation: the kernel owns it */
	uint8_t cancels;    /* cancellations under way */
	uint8_t holds;      /* sends of other connections out of this one's memory */
	bool closing;
	bool multishot; /* the receive under way goes on by itself, into the ring's buffers */
	bool stopped;   /* it was told to end */
	bool stopping;  /* the cancellation that says so is under way: it must not hit the next one */
};

enum upstream_state {
	UPSTREAM_FREE,
	UPSTREAM_CONNECTING,
	UPSTREAM_WARMING, /* connects, for nobody yet */
	UPSTREAM_IDLE, /* in the pool */
	UPSTREAM_BUSY, /* carries an attempt */
	UPSTREAM_DISCARDING, /* has carried one that lost; its answer is awaited, and thrown away */
	UPSTREAM_CLOSING,
};

struct client;

/* See discard.h. */
struct discard {
	uint64_t left; /* of the body */
	uint8_t method; /* enum http1_method */
	bool in_body;   /* the head has been read */
};

struct upstream {
	struct connection connection;
	enum upstream_state state;
	uint8_t server;
	uint8_t attempt; /* index into the exchange's attempts */
	uint8_t port_tries;
	bool reused; /* has carried an exchange before */
	uint64_t turn; /* of the loop, in which it was taken out of the pool */
	uint64_t connected_ns; /* it was by then; of an earlier connection until it is */
	bool dirty;  /* cannot carry another exchange */
	bool loads;  /* is among the requests at its server */
	uint16_t port;
	struct tailor_tag *tag; /* NULL: untagged */
	struct client *client;  /* whose attempt it carries */
	struct client *sending; /* whose buffer the send under way reads */
	struct upstream *next;  /* in the free list, the pool or the list of those in flight */
	struct upstream **link;
	struct http1_search search;
	struct input in;
	bool ended; /* the server sends no more; what it has sent comes first */
	int end_result;
	struct discard discard;
};

struct attempt {
	struct upstream *upstream; /* NULL: ended, or the response has been read whole */
	uint8_t server;
	uint16_t reason; /* enum tailor_failover_reason */
	uint16_t port;
	bool placed;         /* has one of the places that limits.in_flight gives its server */
	bool sent;           /* ATTEMPT_SENT is written */
	bool response_begun; /* RESPONSE_BEGIN is written */
	bool answered;       /* some of its response is here; interim ones (1xx) are none */
	/* In the stop that its server is in, each as 1 + enum tailor_not_moved: */
	uint8_t stays;       /* why it waits there for now, counted when it has; 0: it does not */
	uint8_t stayed;      /* why it was not moved; 0: it was, or that is not known yet */
	bool moved;          /* it was */
	uint8_t from;        /* with signal_ns: the server that stands still */
	uint8_t signal;      /* with it: enum tailor_reaction */
	uint64_t signal_ns;  /* since when this attempt was called for by a stop; 0: it was not, or is with the kernel */
	uint64_t stop_ns;    /* with it: which stop that was, its standing's noticed_ns */
	uint64_t sent_ns;    /* the turn in which it began to be sent */
	uint32_t sent_bytes; /* of exchange.forward */
	uint64_t response_bytes;
};

/* How the response's body goes from the server's framing to the client's. */
enum reframing {
	REFRAME_NONE,
	REFRAME_TO_CHUNKED,   /* until-close -> chunked */
	REFRAME_FROM_CHUNKED, /* chunked -> until-close, for HTTP/1.0 */
};

/* One request. The request side and the response side advance independently: a server may answer early. */
struct exchange {
	uint64_t id;
	/* request side */
	enum http1_method method;
	uint8_t minor;
	bool keep_alive; /* the client's wish */
	bool parsed;
	enum http1_framing framing;
	uint64_t body_left;
	struct http1_chunked chunked;
	bool request_complete; /* read from the client */
	bool request_lost;     /* forward no longer holds it from its beginning */
	bool unkept;           /* nor will it: too long */
	uint8_t upgrade;       /* asks for another protocol: tunnel_asked() */
	bool replayable;       /* may be sent twice, by method and path */
	bool replay_full;      /* or others had all the memory for that */
	uint32_t forward_end;
	uint64_t deadline_ns; /* by which it must be over; UINT64_MAX: none */
	/* waiting for a place at a server */
	uint32_t queued;          /* 0: not; see queue.c */
	uint64_t queued_until_ns;
	uint16_t queued_reason; /* of the attempt that will follow: enum tailor_failover_reason */
	bool queued_fresh;      /* that wants a new connection */
	/* attempts, see below */
	uint8_t attempts;
	int8_t winner; /* -1: none */
	bool retried;
	bool moved; /* because of a pause */
	/* after a change of protocol */
	bool tunnel;
	bool server_ended;              /* sends no more */
	bool client_told, server_told;  /* that the other side sends no more */
	/* response side */
	uint16_t status;
	bool refused;           /* answered by the proxy itself */
	uint8_t refusal;        /* enum tailor_refusal */
	bool response_complete; /* read from the server, or made here */
	bool tail_written;      /* the last chunk that REFRAME_TO_CHUNKED adds */
	bool reply_begun;
	uint64_t reply_ns; /* when it did */
	bool close;       /* the client's connection ends after this response */
	bool until_close; /* only the close tells the client the end */
	enum reframing reframing;
	enum http1_framing response_framing;
	uint64_t response_left;
	struct http1_chunked response_chunked;
	uint64_t chunk_left; /* REFRAME_FROM_CHUNKED: data in the current chunk */
	uint8_t chunk_state;
	uint32_t out_start;
	uint32_t out_end;
	struct upstream *direct; /* the send under way reads this upstream's buffer */
	uint64_t reply_bytes;
	uint64_t begin_ns; /* REQUEST_BEGIN is still to be written */
	/* Last, since it is not cleared for each request: each attempt is, when it begins. */
	struct attempt attempt[TAILOR_ATTEMPTS_MAX];
};

enum client_state {
	CLIENT_FREE,
	CLIENT_IDLE,     /* between requests */
	CLIENT_HEAD,     /* the head is being read */
	CLIENT_EXCHANGE, /* from the head to the end of the response */
	CLIENT_HELD,     /* the next request waits until no server's send reads the last one's buffer any more */
	CLIENT_DRAIN,    /* answered for the last time: reads until the client has closed, so that it gets the answer */
	CLIENT_CLOSING,
};

/* See client_wait.h. */
struct client_wait {
	uint64_t since_ns; /* the socket has taken nothing since; 0: it does, as far as known */
	uint64_t bytes; /* of the send that waits */
	uint64_t window_us, buffer_us; /* TCP's counters then */
	bool asked;         /* what TCP has said is here */
	bool window_closed; /* the client's, then */
	bool all_sent;      /* nothing but the socket's own buffer was in the way then */
};

/* Waits of one response that follow each other: told together when it is known that there are no more. */
struct client_waits {
	unsigned int count; /* and one more if it is since the response's beginning; 0: there are none to tell */
	bool from_zero;     /* TCP's counters were 0 when the response began, and this is its first wait: the connection's first */
	uint64_t since_ns, until_ns;
	uint64_t sum_ns;
	uint64_t bytes;                 /* the most that waited */
	uint64_t window_us, buffer_us;  /* of each one, in sum */
	uint64_t first_window_us, first_buffer_us, last_window_us, last_buffer_us; /* TCP's counters at since_ns and until_ns */
};

struct client {
	struct connection connection;
	enum client_state state;
	bool eof;     /* the client has shut down its sending side */
	bool fresh;   /* has not begun a request yet */
	bool counted; /* among those of its address */
	bool beyond;  /* a limit of connections: it is told so, and is not among those that are counted */
	uint16_t port;
	uint32_t ip;
	uint8_t address[16]; /* as tailor_address_ip(); zeros for a Unix socket */
	struct client *next; /* free list */
	uint64_t patience_ns; /* until when what it does now may take; the alarm may ring for another reason */
	uint64_t ended_ns;   /* when its last request did, by the turn; 0: it had none */
	uint64_t early_ns;   /* when bytes behind the current request were read; 0: none */
	struct http1_search search;
	struct input in;
	/* All NULL between requests. */
	char *forward; /* the request as servers get it, from its beginning unless it is too long */
	char *replay;  /* instead, when it is longer; see replay.h */
	char *out;     /* heads, reframed and small bodies for the client */
	struct client_wait wait;
	struct client_waits waits;
	struct exchange exchange;
};

#endif /* TAILOR_PROXY_REQUEST_H */
