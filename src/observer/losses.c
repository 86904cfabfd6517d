/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "observer/running.h"

size_t tailor_observer_channels(const struct tailor_observer *observer)
{
	return observer->options.workers + observer->options.cpus + observer->options.servers;
}

int observer_losses_init(struct tailor_observer *observer)
{
	observer->lost = calloc(tailor_observer_channels(observer) + 1, sizeof(*observer->lost));
	return observer->lost ? 0 : -ENOMEM;
}

static void publish(atomic_uint_fast64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

void observer_publish_losses(struct tailor_observer *observer)
{
	size_t workers = observer->options.workers, cpus = observer->options.cpus;
	uint64_t requests_lost = 0;

	for (size_t i = 0; i < workers; i++) {
		requests_lost += tailor_requests_lost(observer->requests, i);
		for (int why = 0; why < TAILOR_LOST_REASONS; why++)
			publish(&observer->lost[i][why], tailor_requests_lost_by(observer->requests, i, (enum tailor_lost)why));
	}
	for (size_t i = 0; i < cpus; i++) {
		for (int why = 0; why < TAILOR_LOST_REASONS; why++)
			publish(&observer->lost[workers + i][why], observer->holds[i].lost[why]);
	}
	/* Names of threads are read from all that an agent writes: nothing of a window is lost that was not lost there, too, but for what
	 * there was no room to keep. */
	for (size_t i = 0; i < observer->options.servers; i++) {
		const struct watched *watched = &observer->watched[i];

		for (int why = 0; why < TAILOR_LOST_REASONS; why++)
			publish(&observer->lost[workers + cpus + i][why],
			        watched->lost[why] + (watched->jvm ? watched->tail.lost_by[why] : 0) +
			                (why == TAILOR_LOST_THINNED ? observer_jvm_hold(observer, i)->lost[why] : 0));
	}
	publish(&observer->events_lost, requests_lost);
}

void tailor_observer_losses(struct tailor_observer *observer, size_t number, struct tailor_observer_losses *ret_losses)
{
	size_t workers = observer->options.workers, cpus = observer->options.cpus;

	for (int why = 0; why < TAILOR_LOST_REASONS; why++)
		ret_losses->lost[why] = atomic_load_explicit(&observer->lost[number][why], memory_order_relaxed);
	if (number < workers) {
		ret_losses->kind = "worker";
		snprintf(ret_losses->channel, sizeof(ret_losses->channel), "worker%zu", number);
	} else if (number < workers + cpus) {
		ret_losses->kind = "kernel";
		snprintf(ret_losses->channel, sizeof(ret_losses->channel), "cpu%zu", number - workers);
	} else {
		ret_losses->kind = "jvm";
		snprintf(ret_losses->channel, sizeof(ret_losses->channel), "jvm:%.19s",
		         observer->options.server[number - workers - cpus].name);
	}
}
