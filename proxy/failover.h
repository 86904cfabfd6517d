/* SPDX-License-Identifier: Apache-2.0 */
/* What to do with an exchange whose server stopped, refused or died. Pure: no I/O, no clock, no state. */
#ifndef TAILOR_PROXY_FAILOVER_H
#define TAILOR_PROXY_FAILOVER_H

#include <stdbool.h>
#include <tailor/event.h>

#include "proxy/expect.h"
#include "proxy/proxy.h"

enum failover_action {
	FAILOVER_WAIT,   /* leave it where it is */
	FAILOVER_REPLAY, /* begin another attempt; one under way stays alive */
	FAILOVER_FAIL,   /* answer with an error */
};

/* A stop unlike any before is waited for that long: the pauses of collectors that hardly stop are over by then. */
#define FAILOVER_UNKNOWN_NS UINT64_C(200000)
/* What a move costs beyond the other server's answer, and more than the error of a good guess. */
#define FAILOVER_MARGIN_NS UINT64_C(100000)

struct failover_stop {
	enum tailor_proxy_replay_when when;
	struct expect_rest rest; /* of the stop, as it is expected */
	uint64_t lasted_ns;
	uint64_t service_ns; /* what another server is expected to take */
};

/* Whether the stop lasts longer than it takes another server to answer, as far as can be known. With NEVER, too: others take over then. */
bool failover_stop_lasts(const struct failover_stop *stop);

struct failover_case {
	enum tailor_failover_reason reason; /* never TAILOR_FAILOVER_NONE */
	bool enabled;                       /* failover on such a stop is on */
	bool lasts;                         /* failover_stop_lasts() */
	bool other_exists;
	bool other_paused;
	bool other_down;
	bool stale_connection; /* with CLOSED: a reused keep-alive connection died, so that the same server will do */
	bool method_allowed;   /* it may be sent twice, by method and path */
	bool request_complete; /* the whole request has been read from the client */
	bool request_kept;     /* no byte of it has left the replay buffer */
	bool response_begun;   /* a complete response head was chosen */
	bool retried;          /* a dead connection was made good at another server already */
	unsigned int attempts; /* begun so far */
	unsigned int attempts_max;
};

struct failover_verdict {
	enum failover_action action;
	enum tailor_not_moved why; /* unless FAILOVER_REPLAY */
};

struct failover_verdict failover_judge(const struct failover_case *c);

#endif /* TAILOR_PROXY_FAILOVER_H */
