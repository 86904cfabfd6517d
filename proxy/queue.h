/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places at the servers (limits.in_flight), and the queue of those that wait for one (limits.queue): first in, first
 * out, over all workers. Who gives a place back hands it to the first that waits, by a list of the worker that it
 * belongs to; that worker is woken if it is another one. Everything here is shared; without a limit nothing of it is.
 */
#ifndef TAILOR_PROXY_QUEUE_H
#define TAILOR_PROXY_QUEUE_H

#include "proxy/worker.h"

/* With options->in_flight_max > 0. Returns 0 and *ret_queue, or -ENOMEM. */
int queue_open(const struct tailor_proxy_options *options, struct queue **ret_queue);
void queue_close(struct queue *queue);

/* Before worker `index` runs: what to write to so that it looks at its list. */
void queue_join(struct queue *queue, unsigned int index, int wake_fd);

/* How many wait now. Any thread. */
unsigned int queue_waiting(const struct queue *queue);

/* All following: the worker's thread; true or nothing to do when there is no limit. */

/* Takes a place at the server, past those that wait; false when there is none. For requests that were there before. */
bool queue_take_place(struct worker *worker, unsigned int server);
void queue_give_place(struct worker *worker, unsigned int server);

enum queue_verdict {
	QUEUE_GO,   /* has a place at the server now */
	QUEUE_WAIT, /* exchange_granted() follows, unless it leaves before */
	QUEUE_FULL,
};

/* A new request for that server, behind all that wait. */
enum queue_verdict queue_enter(struct worker *worker, struct client *client, unsigned int server);

/* Waits no more; gives back a place that it was just handed. Does nothing for who does not wait. */
void queue_leave(struct worker *worker, struct client *client);

/* Once a turn: hands out places that have become free for other reasons (another server has become active), and begins what
 * this worker's requests were handed. */
void queue_run(struct worker *worker);

#endif /* TAILOR_PROXY_QUEUE_H */
