/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "correlate/correlate.h"
#include "observer/running.h"

/* CPU time for timelines, in ns: a second's, and what a burst may take at once. */
#define BUDGET_NS (20 * TAILOR_NS_PER_MS)
#define BURST_NS (100 * TAILOR_NS_PER_MS)
/* Of that, those that are only to compare with: on a busy server one takes ms, and they are not what anybody waits for. */
#define BASELINE_NS (3 * TAILOR_NS_PER_MS)
#define BASELINE_BURST_NS (6 * TAILOR_NS_PER_MS)
/* A timeline's cost as long as none is known: a guess on the safe side. */
#define COST_NS (10 * TAILOR_NS_PER_MS)
/* Requests explained before it is looked again at what is left. */
#define TOGETHER_MAX 32
/* Events that a timeline is made of: more would take more than what a burst may take. */
#define WINDOW_EVENTS_MAX ((size_t)256 << 10)
/* A suspicion that came to nothing. */
#define NOT_SLOW 1
/* Memory for so many is kept between timelines. */
#define HARVEST_EVENTS ((size_t)128 << 10)

void observer_explain_init(struct tailor_observer *observer)
{
	observer->cost_ns = COST_NS;
	tailor_budget_open(&observer->cpu, BUDGET_NS, BURST_NS, tailor_clock_ns());
	tailor_budget_open(&observer->baseline_cpu, BASELINE_NS, BASELINE_BURST_NS, tailor_clock_ns());
}

/* The servers that a request was sent to. */
static size_t list_concerned(const struct tailor_record *record, const struct tailor_window_server *servers,
                             struct tailor_window_server concerned[TAILOR_ATTEMPTS_MAX])
{
	for (unsigned int i = 0; i < record->attempts; i++)
		concerned[i] = servers[record->attempt[i].server % TAILOR_OBSERVER_SERVERS_MAX];
	return record->attempts;
}

/* Makes the harvest's window that of this request. */
static int cut_window(struct tailor_observer *observer, const struct tailor_queued *queued, const struct tailor_window_server *servers)
{
	const struct tailor_record *record = &queued->record;
	struct tailor_window_server concerned[TAILOR_ATTEMPTS_MAX];
	struct tailor_concern concern = {.servers = concerned, .proxy_pid = record->worker_pid, .worker_tid = record->worker_tid};
	struct tailor_loss loss = tailor_requests_last_loss(observer->requests, queued->worker);
	int error = tailor_harvest_cut(&observer->harvest, tailor_queued_begin(queued), record->request.end_ns + SETTLE_NS);

	if (error)
		return error;
	concern.server_count = list_concerned(record, servers, concerned);
	if (tailor_harvest_thin(&observer->harvest, &concern, WINDOW_EVENTS_MAX) < 0)
		return -ENOMEM;
	if (loss.events && loss.to_ns >= tailor_queued_begin(queued) && loss.from_ns <= record->request.end_ns)
		return tailor_harvest_add_loss(&observer->harvest, &loss);
	return 0;
}

/* Explains a request from what the harvest at hand has of it. The lock is held only where others may change what is read. */
static int make_timeline(struct tailor_observer *observer, struct tailor_queued *queued, struct tailor_timeline *ret_timeline)
{
	struct tailor_window_server servers[TAILOR_OBSERVER_SERVERS_MAX] = {0};
	struct tailor_request *request = &queued->record.request;
	struct tailor_window window = {.servers = servers, .server_count = observer->options.servers};
	int error;

	pthread_mutex_lock(&observer->lock);
	window.missing = observer_describe_servers(observer, &queued->record, servers);
	pthread_mutex_unlock(&observer->lock);
	error = cut_window(observer, queued, servers);
	if (error)
		return error;
	if (observer_answering(observer, &queued->record) >= 0)
		memcpy(request->server, servers[observer_answering(observer, &queued->record)].name, sizeof(request->server));
	request->wall_ns = observer_wall_of(request->begin_ns);
	window.record = queued->record;
	window.events = observer->harvest.events;
	window.event_count = observer->harvest.event_count;
	window.earlier = observer->harvest.earlier;
	window.earlier_count = observer->harvest.earlier_count;
	window.earlier_scheduling = observer->harvest.scheduling;
	window.earlier_scheduling_count = observer->harvest.scheduling_count;
	window.earlier_whole_ns = observer->harvest.whole_ns;
	window.losses = observer->harvest.losses;
	window.loss_count = observer->harvest.loss_count;
	window.threads = observer->threads.list;
	window.thread_count = observer->threads.count;
	tailor_mappings_for(&observer->mappings, &window, tailor_clock_ns());
	error = tailor_correlate(&window, ret_timeline);
	if (!error)
		ret_timeline->kept = queued->kept;
	return error;
}

/* Returns 0, NOT_SLOW, or a negative errno. */
static int store_timeline(struct tailor_observer *observer, struct tailor_queued *queued)
{
	struct tailor_timeline timeline;
	int error = make_timeline(observer, queued, &timeline);

	if (error)
		return error;
	if (queued->suspected && timeline.request.end_ns - timeline.request.begin_ns < observer->slow_rule.threshold_ns) {
		tailor_timeline_free(&timeline);
		return NOT_SLOW;
	}
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

	if (error == NOT_SLOW)
		return;
	if (queued->suspected && !error)
		observer_count(&observer->slow, 1);
	/* That there is no store just now is no error of one. */
	if (error != -ESTALE)
		atomic_store_explicit(&observer->store_error, error, memory_order_relaxed);
	if (error && queued->suspected)
		observer_count(&observer->unjudged, 1);
	else if (error && slow)
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
		error = tailor_harvest_read(&observer->harvest, observer->sources, observer_list_sources(observer),
		                            tailor_queued_begin(&queue[0]), end_ns);
		pthread_mutex_unlock(&observer->lock);
		for (size_t i = 0; i < together; i++)
			count_stored(observer, &queue[i], error ? error : store_timeline(observer, &queue[i]));
		tailor_harvest_shrink(&observer->harvest, HARVEST_EVENTS);
	}
}

static uint64_t cpu_time_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * TAILOR_NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Takes what these timelines took from the budgets. */
static void spend(struct tailor_observer *observer, const struct tailor_queued *queue, size_t count, uint64_t spent_ns)
{
	size_t baseline = 0;

	for (size_t i = 0; i < count; i++)
		baseline += queue[i].kept == TAILOR_KEPT_BASELINE;
	tailor_budget_spend(&observer->cpu, (double)spent_ns);
	tailor_budget_spend(&observer->baseline_cpu, (double)spent_ns * (double)baseline / (double)count);
	observer->cost_ns = (observer->cost_ns + (double)spent_ns / (double)count) / 2;
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
		uint64_t before_ns = cpu_time_ns();

		if (next == 0)
			break;
		explain(observer, observer->queue + done, next);
		spend(observer, observer->queue + done, next, cpu_time_ns() - before_ns);
		done += next;
		*ret_late = tailor_clock_ns() - now_ns > POLL_NS;
	}
	return done;
}

/* That these are explained by nobody. */
static void count_unexplained(struct tailor_observer *observer, const struct tailor_queued *queue, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (queue[i].suspected)
			observer_count(&observer->unjudged, 1);
		else if (queue[i].kept == TAILOR_KEPT_SLOW)
			observer_omit(observer, &observer->over_budget, 1);
	}
}

void observer_give_up_queue(struct tailor_observer *observer)
{
	count_unexplained(observer, observer->queue, observer->queued);
	observer->queued = 0;
}

int observer_work_queue(struct tailor_observer *observer, uint64_t now_ns)
{
	size_t settled = tailor_queue_settle(observer->queue, observer->queued, now_ns - SETTLE_NS), done;
	int late;

	if (settled == 0)
		return 0;
	done = explain_within_budget(observer, settled, now_ns, &late);
	if (!late) {
		count_unexplained(observer, observer->queue + done, settled - done);
		done = settled;
	}
	observer->queued -= done;
	memmove(observer->queue, observer->queue + done, observer->queued * sizeof(*observer->queue));
	return late && done < settled;
}
