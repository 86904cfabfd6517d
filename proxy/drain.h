/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done about a collection that is near: the server gets no new requests while another one can take them, those in flight there
 * finish, and the collection meets a server that nobody waits for. Where it may be wished for, it is, as soon as the server is empty: one
 * that gets no requests may allocate nothing, and would not collect by itself. Whatever happens, it is back in service after a bounded
 * time. Pure: no clock, no I/O.
 */
#ifndef TAILOR_PROXY_DRAIN_H
#define TAILOR_PROXY_DRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <tailor/jvm_page.h>
#include <tailor/stop.h>

#include "proxy/predict.h"

/* How often a server that is drained is looked at; and the longest that nobody looks at any. */
#define DRAIN_LOOK_NS (TAILOR_JVM_HEAP_MS * UINT64_C(1000000))
#define DRAIN_LOOK_NS_MAX UINT64_C(100000000)
/* What holds the lease is shown to go on by renewing it for so long. */
#define DRAIN_LEASE_NS UINT64_C(500000000)

/* What is known of a server at a look. */
struct drain_server {
	const struct predict *predict; /* NULL: nobody tells of its heap */
	bool runs;           /* may get requests: neither down nor standing still */
	bool collects;       /* stands still */
	uint64_t pauses;     /* collections begun so far */
	uint32_t in_flight;
	uint32_t can;        /* bits 1 << enum tailor_jvm_wish: what may be wished for */
	uint64_t granted;    /* the last wish that is dealt with */
	uint64_t service_ns; /* nearly all answers take less; 0: not known */
	bool stop_known;
	uint64_t stop_ns;    /* how long a collection of its is expected to take */
};

enum drain_state {
	DRAIN_NONE,
	DRAIN_EMPTYING,   /* requests in flight there finish */
	DRAIN_EMPTY,      /* its collection may come */
	DRAIN_COLLECTING, /* it has come */
};

enum drain_end {
	DRAIN_MET,   /* the collection came while it was drained */
	DRAIN_FALSE, /* it did not come in time */
	DRAIN_LEFT,  /* it was needed, or did not empty */
	DRAIN_GONE,  /* its JVM ended */
};

struct drain {
	enum drain_state state;
	enum drain_end end;     /* of the last one, when that is over */
	unsigned int server;
	uint64_t began_ns;
	uint64_t until_ns;      /* how long it may go on being as it is */
	uint64_t due_ns;        /* when its collection was expected, at the latest */
	uint64_t pauses;        /* of the server, when it began */
	uint64_t wish;          /* TAILOR_JVM_WISH; 0: none has been made */
	bool full;              /* the collection was expected to be a full one */
	uint64_t empty_ns;      /* when no request was left, */
	uint64_t empty_used;    /* and how full eden was then */
	struct drained {
		uint64_t hold_until_ns; /* not drained again before */
		unsigned int vain;      /* drains in a row that were of no use */
		double idle_rate;       /* bytes a nanosecond that it allocates without requests */
		uint64_t idle_until_ns; /* until when that is believed; 0: it is not known */
	} held[TAILOR_STOP_SERVERS];
};

/* The server that is to be drained now; -1: none. With no drain under way. */
int drain_choose(const struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns);

/* It gets no new requests from now on. */
void drain_begin(struct drain *drain, unsigned int server, const struct drain_server *servers, uint64_t now_ns);

/* What follows from a look while one is under way. */
enum drain_action {
	DRAIN_WAIT,
	DRAIN_WISH, /* drain->wish is to be told to its JVM */
	DRAIN_OVER, /* it is back in service: drain->end. A wish that is not dealt with is to be taken back */
};
enum drain_action drain_step(struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns);

/* Ends it, for a reason that is not in what drain_step() looks at. Returns DRAIN_OVER. */
enum drain_action drain_end(struct drain *drain, enum drain_end how, uint64_t now_ns);

/* When to look again. */
uint64_t drain_next_ns(const struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns);

/*
 * The lease: who has it drains a server, or lets it collect at will; nobody else of the group does. One word, so that whoever chooses a
 * server sees with one load which one is drained; it ends by itself at its time. 0: nobody has it. Any thread.
 */
#define DRAIN_LEASE(server, until_ns) (((uint64_t)(until_ns) << 5) | ((uint64_t)(server) + 1))
#define DRAIN_LEASE_SERVER(word) ((int)((word) & 31) - 1)
#define DRAIN_LEASE_UNTIL_NS(word) ((uint64_t)(word) >> 5)
_Static_assert(TAILOR_STOP_SERVERS < 31, "a server and nobody fit into five bits");

/* Takes it for a server if nobody has it at now_ns. Returns the word to keep, or 0. */
static inline uint64_t drain_lease_take(uint64_t *lease, unsigned int server, uint64_t now_ns, uint64_t until_ns)
{
	uint64_t had = __atomic_load_n(lease, __ATOMIC_RELAXED), word = DRAIN_LEASE(server, until_ns);

	if (had && DRAIN_LEASE_UNTIL_NS(had) > now_ns)
		return 0;
	return __atomic_compare_exchange_n(lease, &had, word, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ? word : 0;
}

/* Prolongs it. Returns the new word, or 0: it ended meanwhile, and may be somebody else's. */
static inline uint64_t drain_lease_renew(uint64_t *lease, uint64_t word, uint64_t now_ns, uint64_t until_ns)
{
	uint64_t had = word, longer = DRAIN_LEASE(DRAIN_LEASE_SERVER(word), until_ns);

	if (DRAIN_LEASE_UNTIL_NS(word) <= now_ns)
		return 0;
	return __atomic_compare_exchange_n(lease, &had, longer, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ? longer : 0;
}

/* Gives it back, unless it has ended and is somebody else's. */
static inline void drain_lease_release(uint64_t *lease, uint64_t word)
{
	__atomic_compare_exchange_n(lease, &word, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

#endif /* TAILOR_PROXY_DRAIN_H */
