/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/observer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "observer/running.h"

#define BASELINE_PER_S 10

static int wait_for_next(struct tailor_observer *observer, uint64_t wait_ns)
{
	uint64_t until_ns = tailor_clock_ns() + wait_ns;
	struct timespec until = {.tv_sec = (time_t)(until_ns / TAILOR_NS_PER_S), .tv_nsec = (long)(until_ns % TAILOR_NS_PER_S)};
	int stopping;

	pthread_mutex_lock(&observer->lock);
	while (!observer->stopping && pthread_cond_timedwait(&observer->wake, &observer->lock, &until) == 0)
		;
	stopping = observer->stopping;
	pthread_mutex_unlock(&observer->lock);
	return stopping;
}

/* How long a stop waits for timelines; whoever has asked for it waits for more than these. */
#define STOP_NS (2 * TAILOR_NS_PER_S)

static void *run(void *context)
{
	struct tailor_observer *observer = context;
	uint64_t wait_ns = POLL_NS, stopping_ns = 0;
	int stopping, late = 0;

	pthread_setname_np(pthread_self(), "observer");
	/* On Linux this is the thread's own; failing to be nice is no reason not to work. */
	setpriority(PRIO_PROCESS, 0, observer->options.nice);
	do {
		uint64_t now_ns;

		stopping = wait_for_next(observer, late ? 0 : wait_ns);
		if (stopping && !late)
			usleep(2 * SETTLE_NS / TAILOR_NS_PER_US); /* the last requests' events settle, too */
		now_ns = tailor_clock_ns();
		pthread_mutex_lock(&observer->lock);
		observer_learn_names(observer, now_ns);
		observer->slow_rule = observer->options.slow;
		pthread_mutex_unlock(&observer->lock);
		/* The time from before the poll: whatever ended since has not settled. */
		tailor_requests_poll(observer->requests, now_ns, observer_ended, observer);
		observer_store_failovers(observer, stopping ? UINT64_MAX : now_ns);
		pthread_mutex_lock(&observer->lock);
		wait_ns = observer_hold(observer, now_ns);
		observer_publish_losses(observer);
		pthread_mutex_unlock(&observer->lock);
		if (observer->options.access_log)
			atomic_store_explicit(&observer->access_log_error, tailor_accesslog_flush(observer->options.access_log),
			                      memory_order_relaxed);
		late = observer_work_queue(observer, now_ns);
		if (stopping && !stopping_ns)
			stopping_ns = now_ns;
	} while (!stopping || (late && tailor_clock_ns() - stopping_ns < STOP_NS));
	observer_give_up_queue(observer);
	return NULL;
}

static void free_observer(struct tailor_observer *observer)
{
	for (size_t i = 0; i < observer->options.servers; i++) {
		if (observer->watched[i].jvm)
			tailor_jvm_unref(observer->watched[i].jvm);
	}
	tailor_threads_free(&observer->threads);
	tailor_mappings_free(&observer->mappings);
	observer_long_free(observer);
	tailor_harvest_free(&observer->harvest);
	tailor_requests_close(observer->requests);
	tailor_failovers_free(&observer->failovers);
	free(observer->lost);
	free(observer->sources);
	free(observer->queue);
	free(observer);
}

int tailor_observer_start(const struct tailor_observer_options *options, struct tailor_observer **ret_observer)
{
	struct tailor_observer *observer = calloc(1, sizeof(*observer));
	pthread_condattr_t monotonic;
	int error;

	if (!observer)
		return -ENOMEM;
	observer->options = *options;
	observer->sources = calloc(options->cpus + options->servers, sizeof(*observer->sources));
	observer->queue = calloc(QUEUE_MAX, sizeof(*observer->queue));
	observer_explain_init(observer);
	observer_stopped_init(observer);
	tailor_budget_open(&observer->baseline_rate, BASELINE_PER_S, BASELINE_PER_S, tailor_clock_ns());
	error = tailor_requests_open(options->request_channels, options->workers, options->connections_max, &observer->requests);
	if (observer_long_init(observer) || observer_losses_init(observer) || tailor_failovers_init(&observer->failovers) || error || !observer->sources || !observer->queue) {
		free_observer(observer);
		return -ENOMEM;
	}
	tailor_requests_watch_stops(observer->requests, observer_stopped, observer);
	observer_sources_init(observer);
	pthread_mutex_init(&observer->lock, NULL);
	pthread_mutex_init(&observer->storing, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&observer->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	error = pthread_create(&observer->thread, NULL, run, observer);
	if (error) {
		free_observer(observer);
		return -error;
	}
	*ret_observer = observer;
	return 0;
}

void tailor_observer_stop(struct tailor_observer *observer)
{
	pthread_mutex_lock(&observer->lock);
	observer->stopping = 1;
	pthread_cond_signal(&observer->wake);
	pthread_mutex_unlock(&observer->lock);
	pthread_join(observer->thread, NULL);
	pthread_cond_destroy(&observer->wake);
	pthread_mutex_destroy(&observer->lock);
	pthread_mutex_destroy(&observer->storing);
	free_observer(observer);
}

void tailor_observer_slow(struct tailor_observer *observer, const struct tailor_slow_rule *rule)
{
	pthread_mutex_lock(&observer->lock);
	observer->options.slow = *rule;
	pthread_mutex_unlock(&observer->lock);
}

void tailor_observer_store(struct tailor_observer *observer, struct tailor_store_writer *store)
{
	pthread_mutex_lock(&observer->storing);
	observer->options.store = store;
	pthread_mutex_unlock(&observer->storing);
}

void tailor_observer_status(struct tailor_observer *observer, struct tailor_observer_status *ret_status)
{
	*ret_status = (struct tailor_observer_status){
		.requests = atomic_load(&observer->ended),
		.slow = atomic_load(&observer->slow),
		.stored = atomic_load(&observer->stored),
		.baseline = atomic_load(&observer->baseline),
		.not_stored = atomic_load(&observer->not_stored),
		.over_budget = atomic_load(&observer->over_budget),
		.unjudged = atomic_load(&observer->unjudged),
		.windows_with_loss = atomic_load(&observer->windows_with_loss),
		.store_error = atomic_load(&observer->store_error),
		.failovers = atomic_load(&observer->failovers_stored),
		.failovers_over_budget = atomic_load(&observer->failovers_over_budget),
		.failovers_not_stored = atomic_load(&observer->failovers_not_stored),
		.request_events_lost = atomic_load(&observer->events_lost),
		.access_log_error = atomic_load(&observer->access_log_error),
		.access_log_lost = observer->options.access_log ? tailor_accesslog_lost(observer->options.access_log) : 0,
	};
	for (size_t i = 0; i < observer->options.servers; i++)
		tailor_latency_read(&observer->latency[i], &ret_status->latency[i]);
}
