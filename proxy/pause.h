/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which servers stand still: what the JVMs' shared pages say (tailor/jvm_page.h), what the kernel says (tailor/stop.h), and whose
 * heartbeat is missing. What follows from it is in stopped.h.
 */
#ifndef TAILOR_PROXY_PAUSE_H
#define TAILOR_PROXY_PAUSE_H

#include "proxy/worker.h"

/* Listens to the kernel from now on, if there is somebody who tells. The worker's thread. */
void pause_open(struct worker *worker);

/* Looks at all who tell, and acts on what has changed since. Cheap: a load or two per server. */
void pause_look(struct worker *worker);

/* By what the server stands still at this moment, and since when (TAILOR_STOP); TAILOR_STOP_NONE where it runs. */
uint64_t pause_word(const struct worker *worker, unsigned int server);

/*
 * Why the collection that is the server's `pauses`th began, "" where that is not known (yet), or it is not the last one any more: agents of
 * some JVMs know it only later than that it began (tailor/jvm_page.h).
 */
void pause_cause(const struct server *server, uint64_t pauses, char ret_cause[TAILOR_JVM_CAUSE_BYTES]);

/* Whether somebody tells what pause_look() has not seen. */
bool pause_changed(const struct worker *worker);

/* Announces sleep to the agents. Returns false when somebody has told something meanwhile: then do not sleep. */
bool pause_may_sleep(struct worker *worker);
void pause_awake(struct worker *worker);

void pause_attach(struct worker *worker, unsigned int server, struct tailor_jvm_page *page, int waker);
/* Returns true when nothing of the JVM is in use any more; otherwise it is after pause_waker_complete() has returned
 * true. */
bool pause_detach(struct worker *worker, unsigned int server);

/* A read of a waker has completed. Returns true when that ends a detach. */
bool pause_waker_complete(struct worker *worker, unsigned int server, uint32_t generation, int result);

/* The kernel has told something. */
void pause_stops_complete(struct worker *worker, const struct tailor_completion *completion);

/* The timer of the heartbeats has rung. */
void pause_beat(struct worker *worker);
void pause_watch_beat(struct worker *worker);

/* A request has gone to the server: until it is back, a missing heartbeat matters. */
static inline void pause_watch(struct worker *worker, unsigned int server)
{
	if (worker->server[server].page && worker->beat_timer_ns == UINT64_MAX)
		pause_watch_beat(worker);
}

#endif /* TAILOR_PROXY_PAUSE_H */
