/* SPDX-License-Identifier: Apache-2.0 */
/* How long things may take. A worker has its own copy, which a reload replaces between two turns of its loop. */
#ifndef TAILOR_PROXY_TIMEOUTS_H
#define TAILOR_PROXY_TIMEOUTS_H

#include "proxy/worker.h"

/* Gives those that are 0 because they were not said their value. */
void timeouts_complete(struct tailor_proxy_options *options);

/* Begins another stretch of patience with the client: its alarm rings after that, or at the request's own deadlines. UINT64_MAX: no
 * end but those. */
void timeouts_wait(struct worker *worker, struct client *client, uint64_t after_ns);

/* The request waits in the queue from now on. */
void timeouts_queue(struct worker *worker, struct client *client);

/* What the client's alarm has rung for. */
enum timeouts_verdict {
	TIMEOUTS_EARLY,    /* nothing; it has been set anew */
	TIMEOUTS_PATIENCE, /* the client's time is up */
	TIMEOUTS_REQUEST,  /* that of the whole request */
	TIMEOUTS_QUEUE,    /* that in the queue */
};
enum timeouts_verdict timeouts_judge(struct worker *worker, struct client *client);

#endif /* TAILOR_PROXY_TIMEOUTS_H */
