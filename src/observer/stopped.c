/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "observer/running.h"

/* Whether a worker lost events that may have been of this stop. */
static int has_lost(const struct tailor_observer *observer, const struct tailor_failover *failover)
{
	for (size_t i = 0; i < observer->options.workers; i++) {
		struct tailor_loss loss = tailor_requests_last_loss(observer->requests, i);

		if (loss.events && loss.to_ns >= failover->begin_ns && loss.from_ns <= failover->end_ns + TAILOR_FAILOVER_SETTLE_NS)
			return 1;
	}
	return 0;
}

static void describe(const struct tailor_observer *observer, unsigned int server, unsigned int why_not, struct tailor_failover *failover)
{
	const char *(*word)(unsigned int why_not) = observer->options.not_moved_name;

	snprintf(failover->server, sizeof(failover->server), "%s", observer->options.server[server].name);
	if (failover->not_moved && word)
		snprintf(failover->why_not, sizeof(failover->why_not), "%s", word(why_not));
	failover->wall_ns = observer_wall_of(failover->begin_ns);
	failover->incomplete = (uint8_t)has_lost(observer, failover);
}

void observer_store_failovers(struct tailor_observer *observer, uint64_t now_ns)
{
	struct tailor_failover failover;
	unsigned int server, why_not;

	while (tailor_failovers_settled(&observer->failovers, now_ns, &failover, &server, &why_not)) {
		int error;

		describe(observer, server, why_not, &failover);
		pthread_mutex_lock(&observer->storing);
		error = observer->options.store ? tailor_store_append_failover(observer->options.store, &failover) : -ESTALE;
		pthread_mutex_unlock(&observer->storing);
		/* That there is no store just now is no error of one. */
		if (error != -ESTALE)
			atomic_store_explicit(&observer->store_error, error, memory_order_relaxed);
		observer_count(error ? &observer->failovers_not_stored : &observer->failovers_stored, 1);
	}
}

void observer_stopped(void *context, size_t worker, const struct tailor_stopped *stopped)
{
	struct tailor_observer *observer = context;

	if (stopped->server >= observer->options.servers || stopped->kind >= TAILOR_STOP_KINDS)
		return;
	tailor_failovers_stopped(&observer->failovers, worker, stopped);
	/* There may be no room for another one. What has settled is for later: other workers' channels are still to be read. */
	observer_store_failovers(observer, 0);
}
