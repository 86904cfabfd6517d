/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "observer/running.h"

/* Failovers a second, by whether requests were moved; and how many may be saved up. They share the store with timelines. */
#define MOVED_PER_S 10
#define OTHER_PER_S 1
#define SAVED_S 60

void observer_stopped_init(struct tailor_observer *observer)
{
	uint64_t now_ns = tailor_clock_ns();

	tailor_budget_open(&observer->stops_moved, MOVED_PER_S, MOVED_PER_S * SAVED_S, now_ns);
	tailor_budget_open(&observer->stops_other, OTHER_PER_S, OTHER_PER_S * SAVED_S, now_ns);
}

static int within_budget(struct tailor_observer *observer, const struct tailor_failover *failover)
{
	struct tailor_budget *budget = failover->moved ? &observer->stops_moved : &observer->stops_other;

	tailor_budget_fill(budget, tailor_clock_ns());
	if (budget->left < 1)
		return 0;
	tailor_budget_spend(budget, 1);
	return 1;
}

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

static void store(struct tailor_observer *observer, const struct tailor_failover *failover)
{
	int error;

	pthread_mutex_lock(&observer->storing);
	error = observer->options.store ? tailor_store_append_failover(observer->options.store, failover) : -ESTALE;
	pthread_mutex_unlock(&observer->storing);
	/* That there is no store just now is no error of one. */
	if (error != -ESTALE)
		atomic_store_explicit(&observer->store_error, error, memory_order_relaxed);
	observer_count(error ? &observer->failovers_not_stored : &observer->failovers_stored, 1);
	observer->stops_omitted = error ? observer->stops_omitted + 1 : 0;
}

void observer_store_failovers(struct tailor_observer *observer, uint64_t now_ns)
{
	struct tailor_failover failover;
	unsigned int server, why_not;

	while (tailor_failovers_settled(&observer->failovers, now_ns, &failover, &server, &why_not)) {
		if (!within_budget(observer, &failover)) {
			observer_count(&observer->failovers_over_budget, 1);
			observer->stops_omitted++;
			continue;
		}
		describe(observer, server, why_not, &failover);
		failover.omitted = observer->stops_omitted;
		store(observer, &failover);
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
