/* SPDX-License-Identifier: Apache-2.0 */
/* What to do with an exchange whose server stopped, refused or died. Pure: no I/O, no clock, no state. */
#ifndef TAILOR_PROXY_FAILOVER_H
#define TAILOR_PROXY_FAILOVER_H

#include <stdbool.h>
#include <tailor/event.h>

#include "proxy/proxy.h"

enum failover_action {
	FAILOVER_WAIT,   /* leave it where it is */
	FAILOVER_REPLAY, /* begin another attempt; one under way stays alive */
	FAILOVER_FAIL,   /* answer with an error */
};

struct failover_case {
	enum tailor_failover_reason reason; /* never TAILOR_FAILOVER_NONE */
	bool enabled;                       /* failover on GC is on */
	bool other_exists;
	bool other_paused;
	bool other_down;
	bool stale_connection; /* with CLOSED: a reused keep-alive connection died, so that the same server will do */
	bool method_allowed;   /* the method may be sent twice */
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
