/* SPDX-License-Identifier: Apache-2.0 */
/* Inside src/observer only: a running observer's parts, and which file does what with them. */
#ifndef TAILOR_OBSERVER_RUNNING_H
#define TAILOR_OBSERVER_RUNNING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tailor/window.h>

#include "base/clock.h"
#include "collect/harvest.h"
#include "collect/mappings.h"
#include "collect/requests.h"
#include "collect/tail.h"
#include "collect/threads.h"
#include "observer/budget.h"
#include "observer/failovers.h"
#include "observer/latency.h"
#include "observer/observer.h"
#include "observer/presence.h"
#include "observer/queue.h"

/* How often the request channels are looked at. A worker's channel must hold what is served in this time. */
#define POLL_NS (20 * TAILOR_NS_PER_MS)
/* Events that belong to the request may come this much later than its end: the write of a server's thread that was pushed off
 * its CPU as soon as the bytes had left. */
#define SETTLE_NS (10 * TAILOR_NS_PER_MS)
#define QUEUE_MAX 4096
/* What a thread did shortly before the request tells what it was at when the request came. */
#define BEFORE_NS (20 * TAILOR_NS_PER_MS)
/* Before that, who came and went at the servers: somebody who is served for longer might be taken for nobody. And since when threads were
 * ready that had no CPU when it came. */
#define EARLIER_NS (100 * TAILOR_NS_PER_MS)

/* A server's JVM: the mapping outlives the JVM until another one takes its place. */
struct watched {
	struct tailor_jvm *jvm; /* NULL: there never was one */
	struct tailor_tail tail; /* for thread names */
	uint64_t lost[TAILOR_LOST_REASONS]; /* of the JVMs before, by that tail */
	uint64_t gone_ns; /* when its agent's connection ended; 0: it has not */
	struct tailor_presence process;
};

struct tailor_observer {
	struct tailor_observer_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* watched, options.slow, holds of JVMs; never while the disk is written to */
	pthread_mutex_t storing; /* options.store, and whoever writes to it */
	pthread_cond_t wake;
	int stopping;

	struct watched watched[TAILOR_OBSERVER_SERVERS_MAX];
	uint64_t scanned_ns;

	/* The thread's own. */
	struct tailor_threads threads;
	struct tailor_mappings mappings;
	struct tailor_slow_rule slow_rule; /* options.slow, which others may change under the lock */
	struct tailor_requests *requests;
	struct tailor_hold *holds; /* of the kernel channels and, behind them, of each server's JVM; and the lock for those */
	size_t hold_room;          /* slots that may still be held */
	uint64_t looked_ns;        /* when the channels were looked at the last time */
	uint64_t given_up_ns;      /* nothing is held any more for requests that began until then */
	struct tailor_harvest harvest;
	struct tailor_source *sources; /* kernel channels first, JVMs behind */
	struct tailor_queued *queue;
	size_t queued;
	struct tailor_budget cpu, baseline_rate, baseline_cpu;
	double cost_ns; /* of a timeline, about */
	uint64_t omitted; /* slow requests that were only counted since the last timeline stored */
	struct tailor_failovers failovers;
	struct tailor_budget stops_moved, stops_other; /* that may be stored */
	uint64_t stops_omitted; /* since the last one stored */

	atomic_uint_fast64_t ended, slow, stored, baseline, not_stored, over_budget, unjudged, windows_with_loss, events_lost, failovers_stored,
	        failovers_not_stored, failovers_over_budget;
	atomic_uint_fast64_t (*lost)[TAILOR_LOST_REASONS]; /* by the channels of workers, CPUs and servers, in this order */
	atomic_int store_error, access_log_error;
	struct tailor_latency latency[TAILOR_OBSERVER_SERVERS_MAX];
};

/* Counters are written by the observer's thread alone: nothing needs to be locked. */
static inline void observer_count(atomic_uint_fast64_t *counter, uint64_t amount)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

/* The functions below are the observer's thread's; those marked with "lock" are called with the lock held. */

/* --- watched.c: who the servers are, and were ---------------------------------------------------- */

/* The server that answered, -1 when none did. */
int observer_answering(const struct tailor_observer *observer, const struct tailor_record *record);
/* Takes names of threads, and collections, from the agents, and every second names from /proc. Lock. */
void observer_learn_names(struct tailor_observer *observer, uint64_t now_ns);
/* Once, when there are holds. */
void observer_sources_init(struct tailor_observer *observer);
/* Makes observer->sources the channels that there are now, and returns how many. Lock. */
size_t observer_list_sources(struct tailor_observer *observer);
/*
 * Who the servers were when this request was at them, and which of the missing things concern it. Now there may be others:
 * servers restart. Lock.
 */
uint32_t observer_describe_servers(const struct tailor_observer *observer, const struct tailor_record *record,
                                   struct tailor_window_server servers[TAILOR_OBSERVER_SERVERS_MAX]);

/* --- ended.c: what becomes of a request that ended ----------------------------------------------- */

/* For tailor_requests_poll(); context is the observer. */
void observer_ended(void *context, size_t worker, const struct tailor_record *record);
/* Counts slow requests that get no timeline, and keeps in mind that the next one is to say so. */
void observer_omit(struct tailor_observer *observer, atomic_uint_fast64_t *why, uint64_t requests);
/* CLOCK_REALTIME at a time that is not long ago. */
uint64_t observer_wall_of(uint64_t ns);

/* --- long.c: what is held for requests that are open for long ------------------------------------ */

/* Returns 0 or -ENOMEM. And the opposite. */
int observer_long_init(struct tailor_observer *observer);
void observer_long_free(struct tailor_observer *observer);
/* What is held of the JVM at a server. Lock. */
struct tailor_hold *observer_jvm_hold(struct tailor_observer *observer, size_t server);
/*
 * Copies the events that slow requests which are still open will need, before they are overwritten, and gives back what nobody needs any
 * more. Returns in how many ns it is to be called again at the latest. Lock.
 */
uint64_t observer_hold(struct tailor_observer *observer, uint64_t now_ns);

/* --- losses.c: what was lost, for whoever asks --------------------------------------------------- */

/* Returns 0 or -ENOMEM. */
int observer_losses_init(struct tailor_observer *observer);
/* Publishes what was lost so far. Lock. */
void observer_publish_losses(struct tailor_observer *observer);

/* --- stopped.c: what the workers did about stops of servers -------------------------------------- */

/* Before the first of them. */
void observer_stopped_init(struct tailor_observer *observer);
/* For tailor_requests_watch_stops(); context is the observer. */
void observer_stopped(void *context, size_t worker, const struct tailor_stopped *stopped);
/* Stores the failovers of which all is known by now. now_ns UINT64_MAX: whatever there is. */
void observer_store_failovers(struct tailor_observer *observer, uint64_t now_ns);

/* --- explain.c: from the queue to the store, within the budget ----------------------------------- */

/*
 * Makes timelines of the queued requests that ended long enough ago; the others stay, and so does what takes longer than
 * the request channels may go without being read. Returns 1 in that case.
 */
int observer_work_queue(struct tailor_observer *observer, uint64_t now_ns);
/* Counts what is queued as left out for want of time. */
void observer_give_up_queue(struct tailor_observer *observer);
/* Before the first of them. */
void observer_explain_init(struct tailor_observer *observer);

#endif /* TAILOR_OBSERVER_RUNNING_H */
