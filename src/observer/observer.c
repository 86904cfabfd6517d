/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/observer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tailor/window.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/harvest.h"
#include "collect/requests.h"
#include "collect/tail.h"
#include "collect/text.h"
#include "collect/threads.h"
#include "correlate/correlate.h"
#include "observer/budget.h"
#include "observer/latency.h"
#include "observer/presence.h"
#include "observer/queue.h"

/* How often the request channels are looked at. A worker's channel must hold what is served in this time. */
#define POLL_NS (20 * TAILOR_NS_PER_MS)
/* Events that belong to the request may come this much later than its end: the write of a server's thread that was pushed off
 * its CPU as soon as the bytes had left. */
#define SETTLE_NS (10 * TAILOR_NS_PER_MS)
/* What a thread did shortly before the request tells what it was at when the request came. */
#define BEFORE_NS (20 * TAILOR_NS_PER_MS)
/* A collection may have begun long before the request that it delays. */
#define JVM_BEFORE_NS (10 * TAILOR_NS_PER_S)
#define QUEUE_MAX 4096
/* CPU time for timelines, in ns: a second's, and what a burst may take at once. */
#define BUDGET_NS (20 * TAILOR_NS_PER_MS)
#define BURST_NS (100 * TAILOR_NS_PER_MS)
/* A timeline's cost as long as none is known: a guess on the safe side. */
#define COST_NS (10 * TAILOR_NS_PER_MS)
/* Requests explained before it is looked again at what is left. */
#define TOGETHER_MAX 32
#define BASELINE_PER_S 10
#define SCAN_NS TAILOR_NS_PER_S
#define NICE 10

/* A server's JVM: the mapping outlives the JVM until another one takes its place. */
struct watched {
	struct tailor_jvm *jvm; /* NULL: there never was one */
	struct tailor_tail tail; /* for thread names */
	uint64_t gone_ns; /* when its agent's connection ended; 0: it has not */
	struct tailor_presence process;
};

struct tailor_observer {
	struct tailor_observer_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* watched, threads */
	pthread_mutex_t storing; /* options.store, and whoever writes to it */
	pthread_cond_t wake;
	int stopping;

	struct watched watched[TAILOR_OBSERVER_SERVERS_MAX];
	struct tailor_threads threads;
	uint64_t scanned_ns;

	/* The thread's own. */
	struct tailor_slow_rule slow_rule; /* options.slow, which others may change under the lock */
	struct tailor_requests *requests;
	struct tailor_harvest harvest;
	struct tailor_source *sources; /* kernel channels first, JVMs behind */
	struct tailor_queued *queue;
	size_t queued;
	struct tailor_budget cpu, baseline_rate;
	double cost_ns; /* of a timeline, about */
	uint64_t omitted; /* slow requests that were only counted since the last timeline stored */

	atomic_uint_fast64_t ended, slow, stored, baseline, not_stored, over_budget, windows_with_loss, events_lost;
	atomic_int store_error, access_log_error;
	struct tailor_latency latency[TAILOR_OBSERVER_SERVERS_MAX];
};

/* Counters are written by the observer's thread alone: nothing needs to be locked. */
static void add(atomic_uint_fast64_t *counter, uint64_t amount)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

/* The server that answered, -1 when none did. */
static int answering_server(const struct tailor_observer *observer, const struct tailor_record *record)
{
	if (record->answered < 0 || record->attempt[record->answered].server >= observer->options.servers)
		return -1;
	return record->attempt[record->answered].server;
}

static uint64_t wall_of(uint64_t ns)
{
	return tailor_clock_wall_ns() - (tailor_clock_ns() - ns);
}

static void log_access(struct tailor_observer *observer, const struct tailor_record *record)
{
	int server = answering_server(observer, record);
	struct tailor_record named = *record;

	if (server >= 0)
		snprintf(named.request.server, sizeof(named.request.server), "%s", observer->options.server[server].name);
	tailor_accesslog_add(observer->options.access_log, &named, wall_of(record->request.begin_ns));
}

/* Slow requests that get no timeline. */
static void omit(struct tailor_observer *observer, atomic_uint_fast64_t *why, uint64_t requests)
{
	add(why, requests);
	observer->omitted += requests;
}

static int draw_baseline(struct tailor_observer *observer, uint64_t now_ns)
{
	tailor_budget_fill(&observer->baseline_rate, now_ns);
	if (observer->baseline_rate.left < 1)
		return 0;
	tailor_budget_spend(&observer->baseline_rate, 1);
	return 1;
}

static void on_ended(void *context, size_t worker, const struct tailor_record *record)
{
	struct tailor_observer *observer = context;
	const struct tailor_request *request = &record->request;
	enum tailor_slow_verdict verdict = tailor_slow_judge(&observer->slow_rule, request->id, request->end_ns - request->begin_ns);

	add(&observer->ended, 1);
	if (answering_server(observer, record) >= 0)
		tailor_latency_count(&observer->latency[answering_server(observer, record)], request->end_ns - request->begin_ns);
	if (observer->options.access_log)
		log_access(observer, record);
	if (verdict == TAILOR_SLOW_SKIP)
		return;
	if (verdict == TAILOR_SLOW_KEEP)
		add(&observer->slow, 1);
	else if (!draw_baseline(observer, request->end_ns))
		return;
	if (observer->queued == QUEUE_MAX) {
		if (verdict == TAILOR_SLOW_KEEP)
			omit(observer, &observer->not_stored, 1);
		return;
	}
	observer->queue[observer->queued++] = (struct tailor_queued){
		.record = *record,
		.worker = worker,
		.kept = verdict == TAILOR_SLOW_KEEP ? TAILOR_KEPT_SLOW : TAILOR_KEPT_BASELINE,
	};
}

/* Takes thread names from what the agents have written since the last time. */
static void learn_names(struct tailor_observer *observer, uint64_t now_ns)
{
	for (size_t i = 0; i < observer->options.servers; i++) {
		struct watched *watched = &observer->watched[i];
		struct tailor_event event;
		uint64_t position;
		char name[TAILOR_THREAD_NAME_BYTES];

		if (!watched->jvm)
			continue;
		while (tailor_tail_next(&watched->tail, now_ns, &event, &position)) {
			/* Names are of use only where the JVM's thread ids are those that the kernel's events carry. */
			if (watched->jvm->own_pid != (uint32_t)watched->jvm->pid)
				continue;
			if (event.kind == TAILOR_EVENT_THREAD_END)
				tailor_threads_ended(&observer->threads, watched->jvm->own_pid, event.tid);
			else if (event.kind == TAILOR_EVENT_THREAD_START &&
			         tailor_text_read(&watched->tail.channel, position, &event, name, sizeof(name)) > 0)
				tailor_threads_learn(&observer->threads, watched->jvm->own_pid, event.tid, name);
		}
	}
}

/* Names of threads that no agent tells: the JVM's own (VM Thread, GC workers), the proxy's, those of servers without an agent. */
static void scan_names(struct tailor_observer *observer, uint64_t now_ns)
{
	if (now_ns - observer->scanned_ns < SCAN_NS)
		return;
	observer->scanned_ns = now_ns;
	tailor_threads_scan(&observer->threads, getpid());
	for (size_t i = 0; i < observer->options.servers; i++) {
		pid_t pid = tailor_presence_now(&observer->watched[i].process);

		if (pid)
			tailor_threads_scan(&observer->threads, pid);
	}
	tailor_threads_age(&observer->threads);
}

static size_t list_sources(struct tailor_observer *observer)
{
	size_t count = 0;

	for (size_t i = 0; i < observer->options.cpus; i++, count++) {
		observer->sources[count] = (struct tailor_source){.channel = observer->options.kernel_channels[i], .before_ns = BEFORE_NS};
		snprintf(observer->sources[count].name, sizeof(observer->sources[count].name), "cpu%zu", i);
	}
	for (size_t i = 0; i < observer->options.servers; i++) {
		const struct tailor_jvm *jvm = observer->watched[i].jvm;
		struct tailor_source *source = &observer->sources[count];

		if (!jvm)
			continue;
		*source = (struct tailor_source){
			.channel = jvm->channel, .own_pid = jvm->own_pid, .pid = (uint32_t)jvm->pid, .before_ns = JVM_BEFORE_NS};
		snprintf(source->name, sizeof(source->name), "jvm:%.19s", observer->options.server[i].name);
		count++;
	}
	return count;
}

/* Whether the agent whose channel is at hand recorded what the server's JVM did from that time on. */
static int has_agent_since(const struct watched *watched, uint64_t time_ns)
{
	return watched->jvm && watched->jvm->started_ns <= time_ns && (watched->gone_ns == 0 || watched->gone_ns > time_ns);
}

static uint64_t begin_of(const struct tailor_record *record, const struct tailor_attempt *attempt)
{
	return attempt->begin_ns ? attempt->begin_ns : record->request.begin_ns;
}

/*
 * Who the servers were when this request was at them, and which of the missing things concern it. Now there may be others:
 * servers restart.
 */
static uint32_t describe_servers(const struct tailor_observer *observer, const struct tailor_record *record,
                                 struct tailor_window_server servers[TAILOR_OBSERVER_SERVERS_MAX])
{
	uint32_t missing = observer->options.missing;

	for (size_t i = 0; i < observer->options.servers; i++) {
		snprintf(servers[i].name, sizeof(servers[i].name), "%s", observer->options.server[i].name);
		servers[i].port = observer->options.server[i].port;
		servers[i].pid = (uint32_t)tailor_presence_at(&observer->watched[i].process, record->request.begin_ns);
	}
	for (unsigned int i = 0; i < record->attempts; i++) {
		unsigned int server = record->attempt[i].server;
		uint64_t begin_ns = begin_of(record, &record->attempt[i]);

		if (server >= observer->options.servers)
			continue;
		servers[server].pid = (uint32_t)tailor_presence_at(&observer->watched[server].process, begin_ns);
		if (!has_agent_since(&observer->watched[server], begin_ns))
			missing |= TAILOR_MISSING_AGENT;
		if (!servers[server].pid)
			missing |= TAILOR_MISSING_SERVER_PID;
		else if (observer->options.kernel)
			missing |= tailor_kernel_process_missing(observer->options.kernel, (pid_t)servers[server].pid);
	}
	return missing;
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
	window.missing = describe_servers(observer, &queued->record, servers);
	if (answering_server(observer, &queued->record) >= 0)
		memcpy(request->server, servers[answering_server(observer, &queued->record)].name, sizeof(request->server));
	request->wall_ns = wall_of(request->begin_ns);
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
		add(&observer->windows_with_loss, 1);
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
		omit(observer, &observer->not_stored, 1);
	else if (!error)
		add(slow ? &observer->stored : &observer->baseline, 1);
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
		error = tailor_harvest_read(&observer->harvest, observer->sources, list_sources(observer), queue[0].record.request.begin_ns,
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

/*
 * Makes timelines of the queued requests that ended long enough ago; the others stay, and so does what takes longer than
 * the request channels may go without being read. Returns 1 in that case.
 */
static int work_queue(struct tailor_observer *observer, uint64_t now_ns)
{
	size_t settled = tailor_queue_settle(observer->queue, observer->queued, now_ns - SETTLE_NS), done;
	int late;

	if (settled == 0)
		return 0;
	done = explain_within_budget(observer, settled, now_ns, &late);
	if (!late) {
		for (size_t i = done; i < settled; i++) {
			if (observer->queue[i].kept == TAILOR_KEPT_SLOW)
				omit(observer, &observer->over_budget, 1);
		}
		done = settled;
	}
	observer->queued -= done;
	memmove(observer->queue, observer->queue + done, observer->queued * sizeof(*observer->queue));
	return late && done < settled;
}

static void count_losses(struct tailor_observer *observer)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < observer->options.workers; i++)
		lost += tailor_requests_lost(observer->requests, i);
	atomic_store_explicit(&observer->events_lost, lost, memory_order_relaxed);
}

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

static void *run(void *context)
{
	struct tailor_observer *observer = context;
	int stopping, late = 0;

	pthread_setname_np(pthread_self(), "observer");
	/* On Linux this is the thread's own; failing to be nice is no reason not to work. */
	setpriority(PRIO_PROCESS, 0, NICE);
	do {
		uint64_t now_ns;

		stopping = wait_for_next(observer, late ? 0 : POLL_NS);
		if (stopping && !late)
			usleep(2 * SETTLE_NS / TAILOR_NS_PER_US); /* the last requests' events settle, too */
		now_ns = tailor_clock_ns();
		pthread_mutex_lock(&observer->lock);
		learn_names(observer, now_ns);
		scan_names(observer, now_ns);
		observer->slow_rule = observer->options.slow;
		pthread_mutex_unlock(&observer->lock);
		/* The time from before the poll: whatever ended since has not settled. */
		tailor_requests_poll(observer->requests, now_ns, on_ended, observer);
		count_losses(observer);
		if (observer->options.access_log)
			atomic_store_explicit(&observer->access_log_error, tailor_accesslog_flush(observer->options.access_log),
			                      memory_order_relaxed);
		late = work_queue(observer, now_ns);
	} while (!stopping || late);
	return NULL;
}

static void free_observer(struct tailor_observer *observer)
{
	for (size_t i = 0; i < observer->options.servers; i++) {
		if (observer->watched[i].jvm)
			tailor_jvm_unref(observer->watched[i].jvm);
	}
	tailor_threads_free(&observer->threads);
	tailor_harvest_free(&observer->harvest);
	tailor_requests_close(observer->requests);
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
	observer->cost_ns = COST_NS;
	tailor_budget_open(&observer->cpu, BUDGET_NS, BURST_NS, tailor_clock_ns());
	tailor_budget_open(&observer->baseline_rate, BASELINE_PER_S, BASELINE_PER_S, tailor_clock_ns());
	error = tailor_requests_open(options->request_channels, options->workers, options->connections_max, &observer->requests);
	if (error || !observer->sources || !observer->queue) {
		free_observer(observer);
		return -ENOMEM;
	}
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

void tailor_observer_jvm(struct tailor_observer *observer, size_t server, struct tailor_jvm *jvm)
{
	struct watched *watched = &observer->watched[server];

	pthread_mutex_lock(&observer->lock);
	watched->gone_ns = jvm ? 0 : tailor_clock_ns();
	if (jvm) {
		tailor_jvm_unref(watched->jvm);
		watched->jvm = tailor_jvm_ref(jvm);
		tailor_tail_open(&watched->tail, &jvm->channel, 1);
	}
	pthread_mutex_unlock(&observer->lock);
}

void tailor_observer_process(struct tailor_observer *observer, size_t server, pid_t pid)
{
	pthread_mutex_lock(&observer->lock);
	tailor_presence_note(&observer->watched[server].process, pid, tailor_clock_ns());
	observer->scanned_ns = 0;
	pthread_mutex_unlock(&observer->lock);
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
		.windows_with_loss = atomic_load(&observer->windows_with_loss),
		.store_error = atomic_load(&observer->store_error),
		.request_events_lost = atomic_load(&observer->events_lost),
		.access_log_error = atomic_load(&observer->access_log_error),
		.access_log_lost = observer->options.access_log ? tailor_accesslog_lost(observer->options.access_log) : 0,
	};
	for (size_t i = 0; i < observer->options.servers; i++)
		tailor_latency_read(&observer->latency[i], &ret_status->latency[i]);
}
