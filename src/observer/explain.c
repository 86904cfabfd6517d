/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "correlate/correlate.h"
#include "observer/running.h"

/* CPU time for timelines, in ns: a second's, and what a burst may take at once. */
#define BUDGET_NS (20 * TAILOR_NS_PER_MS)
#define BURST_NS (100 * TAILOR_NS_PER_MS)
/* A timeline's cost as long as none is known: a guess on the safe side. */
#define COST_NS (10 * TAILOR_NS_PER_MS)
/* Requests explained before it is looked again at what is left. */
#define TOGETHER_MAX 32

void observer_explain_init(struct tailor_observer *observer)
{
	observer->cost_ns = COST_NS;
	tailor_budget_open(&observer->cpu, BUDGET_NS, BURST_NS, tailor_clock_ns());
}

/* Explains a request from what the harvest at hand has of it. Under the lock. */
static int make_timeline(struct tailor_observer *observer, struct tailor_queued *queued, struct tailor_timeline *ret_timeline)
{
	struct tailor_window_server servers[TAILOR_OBSERVER_SERVERS_MAX] = {0};
	struct tailor_request *request = &queued->record.request;
	struct tailor_loss request_loss = tailor_requests_last_loss(observer->requests, queued->worker);
	struct tailor_window window = {.servers = servers, .server_count = observer->options.servers};
	int error = tailor_harvest_cut(&observer->harvest, request->begin_ns, request->end_ns + SETTLE_NS);

	if (error)
		return error;
	window.missing = observer_describe_servers(observer, &queued->record, servers);
	if (observer_answering(observer, &queued->record) >= 0)
		memcpy(request->server, servers[observer_answering(observer, &queued->record)].name, sizeof(request->server));
	request->wall_ns = observer_wall_of(request->begin_ns);
	if (request_loss.events && request_loss.to_ns >= request->begin_ns && request_loss.from_ns <= request->end_ns)
		error = tailor_harvest_add_loss(&observer->harvest, &request_loss);
	if (error)
		return error;
	window.record = queued->record;
	window.events = observer->harvest.events;
	window.event_count = observer->harvest.event_count;
	window.losses = observer->harvest.losses;
	window.loss_count = observer->harvest.loss_count;
	window.threads = observer->threads.list;
	window.thread_count = observer->threads.count;
	error = tailor_correlate(&window, ret_timeline);
	if (!error)
		ret_timeline->kept = queued->kept;
	return error;
}

/* The lock is not held while the disk is written to: whoever tells us that a JVM has gone must not wait for that. */
static int store_timeline(struct tailor_observer *observer, struct tailor_queued *queued)
{
	struct tailor_timeline timeline;
	int error;

	pthread_mutex_lock(&observer->lock);
	error = make_timeline(observer, queued, &timeline);
	pthread_mutex_unlock(&observer->lock);
	if (error)
		return error;
	if (timeline.loss_count)
		observer_count(&observer->windows_with_loss, 1);
	timeline.omitted = observer->omitted;
	pthread_mutex_lock(&observer->storing);
	error = observer->options.store ? tailor_store_append(observer->options.store, &timeline) : -ESTALE;
	pthread_mutex_unlock(&observer->storing);
	if (!error)
		observer->omitted = 0;
	tailor_timeline_free(&timeline);
	return error;
}

static void count_stored(struct tailor_observer *observer, const struct tailor_queued *queued, int error)
{
	int slow = queued->kept == TAILOR_KEPT_SLOW;

	/* That there is no store just now is no error of one. */
	if (error != -ESTALE)
		atomic_store_explicit(&observer->store_error, error, memory_order_relaxed);
	if (error && slow)
		observer_omit(observer, &observer->not_stored, 1);
	else if (!error)
		observer_count(slow ? &observer->stored : &observer->baseline, 1);
}

/* Makes timelines of these requests; what overlaps in time is read once. */
static void explain(struct tailor_observer *observer, struct tailor_queued *queue, size_t count)
{
	size_t together;

	tailor_queue_by_begin(queue, count);
	for (; count > 0; queue += together, count -= together) {
		uint64_t end_ns;
		int error;

		together = tailor_queue_overlap(queue, count, BEFORE_NS, SETTLE_NS, &end_ns);
		pthread_mutex_lock(&observer->lock);
		error = tailor_harvest_read(&observer->harvest, observer->sources, observer_list_sources(observer), queue[0].record.request.begin_ns,
		                            end_ns);
		pthread_mutex_unlock(&observer->lock);
		for (size_t i = 0; i < together; i++)
			count_stored(observer, &queue[i], error ? error : store_timeline(observer, &queue[i]));
	}
}

static uint64_t cpu_time_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * TAILOR_NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Explains as many as the budget allows, the first first. Returns how many; *ret_late says whether it was time that ran out. */
static size_t explain_within_budget(struct tailor_observer *observer, size_t count, uint64_t now_ns, int *ret_late)
{
	size_t done = 0;

	tailor_budget_fill(&observer->cpu, now_ns);
	*ret_late = 0;
	while (done < count && !*ret_late) {
		size_t left = count - done < TOGETHER_MAX ? count - done : TOGETHER_MAX;
		size_t next = tailor_budget_allows(&observer->cpu, observer->cost_ns, left);
		uint64_t before_ns = cpu_time_ns(), spent_ns;

		if (next == 0)
			break;
		explain(observer, observer->queue + done, next);
		done += next;
		spent_ns = cpu_time_ns() - before_ns;
		tailor_budget_spend(&observer->cpu, (double)spent_ns);
		observer->cost_ns = (observer->cost_ns + (double)spent_ns / (double)next) / 2;
		*ret_late = tailor_clock_ns() - now_ns > POLL_NS;
	}
	return done;
}

int observer_work_queue(struct tailor_observer *observer, uint64_t now_ns)
{
	size_t settled = tailor_queue_settle(observer->queue, observer->queued, now_ns - SETTLE_NS), done;
	int late;

	if (settled == 0)
		return 0;
	done = explain_within_budget(observer, settled, now_ns, &late);
	if (!late) {
		for (size_t i = done; i < settled; i++) {
			if (observer->queue[i].kept == TAILOR_KEPT_SLOW)
				observer_omit(observer, &observer->over_budget, 1);
		}
		done = settled;
	}
	observer->queued -= done;
	memmove(observer->queue, observer->queue + done, observer->queued * sizeof(*observer->queue));
	return late && done < settled;
}
