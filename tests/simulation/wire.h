/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections as TCP makes them: two streams of bytes in order, each with a window; an end (FIN) that comes after the
 * last byte, a reset (RST) that may swallow some; a close with unread bytes is a reset.
 */
#ifndef TAILOR_SIMULATION_WIRE_H
#define TAILOR_SIMULATION_WIRE_H

#include "world.h"

struct operation; /* fake_ring.c */

struct stream {
	char *data; /* a circle of `size` bytes, taken when first used */
	size_t size, start, length;
	uint64_t total; /* ever written */
	bool fin;       /* nothing comes after what is there */
	bool reset;
};

enum wire_kind {
	WIRE_CLIENT, /* accepted by the proxy */
	WIRE_SERVER, /* connected by the proxy */
};

struct wire {
	enum wire_kind kind;
	int fd; /* the proxy's end; -1: not accepted yet, or closed */
	uint16_t port;
	unsigned int server;
	struct stream in;  /* peer to proxy */
	struct stream out; /* proxy to peer */
	struct operation *receive, *send, *connect; /* under way */
	bool accepted, connected;
	/* When a send was told that there is no room, first and last, and how many have then waited for it for so long that
	 * it must be told. */
	uint64_t refused_first_ns, refused_ns;
	unsigned int long_waits;
	bool linger_reset;  /* SO_LINGER of 0 */
	bool proxy_closed;
	bool peer_closed; /* reads no more either */
	bool peer_called; /* peer() is on its way */
	void (*peer)(void *owner); /* something to read, room to write, or the end */
	void *owner;
	/* What the judge may blame. */
	bool kernel_fault; /* an operation failed without the peer */
	bool peer_ended;   /* the peer said FIN or RST */
	bool peer_bad;     /* the peer sent what is no response */
	bool peer_silent;  /* the peer does not answer any more */
	bool turned_away; /* closed as soon as accepted */
	bool bytes_lost;   /* bytes for the peer that a reset swallowed */
	struct wire *next; /* all of this life */
};

extern uint64_t wire_connects, wire_open;

struct wire *wire_new(enum wire_kind kind, void (*peer)(void *), void *owner);
void wire_free_all(void);
struct wire *wire_by_port(uint16_t port);

/* The peer's end. Each returns what was taken. */
size_t wire_write(struct wire *wire, const char *data, size_t length);
size_t wire_read(struct wire *wire, char *to, size_t length);
size_t wire_room(const struct wire *wire);
void wire_fin(struct wire *wire);
void wire_close(struct wire *wire);
void wire_reset(struct wire *wire);
/* True when the peer will get no byte beyond what is there. */
bool wire_ended(const struct wire *wire);
void wire_call_peer(struct wire *wire, uint64_t delay_ns);

/* The proxy's end. */
size_t wire_take(struct wire *wire, char *to, size_t length);
size_t wire_put(struct wire *wire, const char *data, size_t length);
void wire_shutdown(struct wire *wire);
void wire_proxy_close(struct wire *wire);

#endif /* TAILOR_SIMULATION_WIRE_H */
