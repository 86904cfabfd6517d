/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observer: a thread of its own that follows the request channels and, when a request is worth it,
 * reads its window back out of all channels, has it correlated, and stores the timeline. Nothing on the data path
 * waits for it; what it is too late for is counted.
 *
 * It also joins what the workers say of stops of servers, and stores each as a failover some half a second after it is over:
 * ten a second of those that moved requests, and one of the others, of which a JVM with short pauses has many; a minute's may be saved up.
 *
 * Timelines take a fiftieth of a CPU at most, over time; a tenth of a second of it may be saved up for a burst. Beyond that slow requests,
 * the least slow of those that ended together first, are only counted: over_budget, and in the next timeline stored. One in N
 * ordinary requests has a timeline too, but no more than ten a second.
 */
#ifndef TAILOR_OBSERVER_OBSERVER_H
#define TAILOR_OBSERVER_OBSERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/channel.h>
#include <tailor/store.h>

#include "accesslog/accesslog.h"
#include "collect/hold.h"
#include "collect/jvm.h"
#include "collect/kernel.h"
#include "correlate/slow.h"

#define TAILOR_OBSERVER_SERVERS_MAX 16

/* Copied; what it points to must outlive the observer. */
struct tailor_observer_options {
	const struct tailor_channel *request_channels; /* one per worker */
	size_t workers;
	size_t connections_max;
	const struct tailor_channel *kernel_channels; /* one per CPU; NULL without kernel tracing */
	size_t cpus;
	uint32_t missing; /* enum tailor_missing bits that hold for every request */
	const struct tailor_kernel *kernel; /* asked for those that hold for one server's process; NULL: it is not */
	struct {
		const char *name;
		uint16_t port;
	} server[TAILOR_OBSERVER_SERVERS_MAX];
	size_t servers;
	struct tailor_slow_rule slow;
	const char *(*not_moved_name)(unsigned int why_not); /* words for enum tailor_not_moved (proxy/proxy.h); NULL: there are none */
	struct tailor_store_writer *store; /* only the observer uses it while it runs; see tailor_observer_store() */
	struct tailor_accesslog *access_log; /* the same; NULL: none */
	int nice; /* its thread's, as for setpriority(2) */
};

/* Upper bounds of the buckets of what clients waited, in ns, as Prometheus has them; one more holds what is beyond. */
#define TAILOR_OBSERVER_BUCKETS 17
extern const uint64_t tailor_observer_bucket_ns[TAILOR_OBSERVER_BUCKETS];

/* How long requests took that a server answered, from the client's first byte to its last. Not cumulative. */
struct tailor_observer_latency {
	uint64_t bucket[TAILOR_OBSERVER_BUCKETS + 1];
	uint64_t sum_ns;
};

/* Counters; they only grow. */
struct tailor_observer_status {
	uint64_t requests;        /* ended ones seen */
	uint64_t slow;            /* judged slow; once it has settled each of them is stored, not_stored or over_budget */
	uint64_t stored;          /* timelines of slow requests written */
	uint64_t baseline;        /* timelines of ordinary ones written */
	uint64_t not_stored;      /* slow, but the queue was full or the store failed */
	uint64_t over_budget;     /* slow, but there were too many to explain them all */
	uint64_t unjudged;        /* perhaps slow, as the proxy was held up when they came; there was no time to find out */
	uint64_t request_events_lost; /* by the workers' channels, in all */
	uint64_t windows_with_loss;
	uint64_t access_log_lost; /* lines */
	int access_log_error;     /* what its last write failed with, a negative errno; 0: it was written */
	struct tailor_observer_latency latency[TAILOR_OBSERVER_SERVERS_MAX];
	uint64_t failovers;       /* stops of servers with requests in flight: written */
	uint64_t failovers_not_stored;
	uint64_t failovers_over_budget; /* only counted: there were too many */
	int store_error;          /* what the last timeline or failover failed with, a negative errno; 0: it was stored */
};

/* What a channel's events were lost by that the observer wanted: all of the workers', those of windows of the others. They only grow. */
struct tailor_observer_losses {
	char channel[24]; /* "worker0", "cpu3", "jvm:a" */
	const char *kind; /* "worker", "kernel" or "jvm" */
	uint64_t lost[TAILOR_LOST_REASONS];
};

struct tailor_observer;

/* Starts the thread (at nice 10: serving comes first). Returns 0 or a negative errno. */
int tailor_observer_start(const struct tailor_observer_options *options, struct tailor_observer **ret_observer);
/* Handles what has ended so far, then stops and frees. */
void tailor_observer_stop(struct tailor_observer *observer);

/* Tells whose JVM is at a server now (a reference is taken), or NULL when it has gone; what the last one recorded stays readable. Any thread. */
void tailor_observer_jvm(struct tailor_observer *observer, size_t server, struct tailor_jvm *jvm);
/* Tells the server's process from now on, 0 when unknown; call it once the process is traced. Any thread. */
void tailor_observer_process(struct tailor_observer *observer, size_t server, pid_t pid);

/* Judges by another rule from now on. Any thread. */
void tailor_observer_slow(struct tailor_observer *observer, const struct tailor_slow_rule *rule);

/*
 * Stores timelines somewhere else from now on, or, with NULL, nowhere: they are counted as not stored. When it returns, nothing is
 * written any more to the store before. Any thread.
 */
void tailor_observer_store(struct tailor_observer *observer, struct tailor_store_writer *store);

void tailor_observer_status(struct tailor_observer *observer, struct tailor_observer_status *ret_status);

/* How many channels there are, and what the number-th of them has lost. Any thread. */
size_t tailor_observer_channels(const struct tailor_observer *observer);
void tailor_observer_losses(struct tailor_observer *observer, size_t number, struct tailor_observer_losses *ret_losses);

#endif /* TAILOR_OBSERVER_OBSERVER_H */
