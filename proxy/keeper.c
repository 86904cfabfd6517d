/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/keeper.h"

#include "proxy/pause.h"
#include "proxy/queue.h"
#include "proxy/server.h"
#include "proxy/stopped.h"

/* The part of answers that a drain waits for; what takes so many times as long as half of them is an outlier even so. */
#define SERVICE_PART 0.99f
#define SERVICE_TIMES 10

const uint64_t tailor_warning_bucket_ns[TAILOR_WARNING_BUCKETS] = {
        2000000, 5000000, 10000000, 20000000, 50000000, 100000000, 200000000, 500000000,
};

static bool is_on(const struct worker *worker)
{
	return worker->index == 0 && worker->options->predict && worker->options->servers > 1 && !worker->stopping;
}

/* Its JVM says how full its heap is when it is asked to. */
static bool tells(const struct server *server)
{
	return server->page && server->page->can & TAILOR_JVM_CAN_HEAP;
}

/* One that is never predicted is asked once. */
static void want(struct server *server, const struct predict *predict)
{
	uint64_t wants = __atomic_load_n(&server->page->wants, __ATOMIC_RELAXED);
	bool vain = predict->seen && !predict->fills;

	if (!vain && !(wants & TAILOR_JVM_WANTS_HEAP))
		__atomic_fetch_or(&server->page->wants, TAILOR_JVM_WANTS_HEAP, __ATOMIC_RELAXED);
	else if (vain && wants & TAILOR_JVM_WANTS_HEAP)
		__atomic_fetch_and(&server->page->wants, ~(uint64_t)TAILOR_JVM_WANTS_HEAP, __ATOMIC_RELAXED);
}

/* Returns false where it was written meanwhile. */
static bool read_heap(const struct tailor_jvm_page *page, struct tailor_jvm_heap *ret_heap)
{
	const struct tailor_jvm_heap *heap = &page->heap;
	uint64_t version = __atomic_load_n(&heap->version, __ATOMIC_ACQUIRE);

	if (version & 1)
		return false;
	/* Acquire loads keep the second look at the version behind them. */
	*ret_heap = (struct tailor_jvm_heap){
	        .version = version,
	        .time_ns = __atomic_load_n(&heap->time_ns, __ATOMIC_ACQUIRE),
	        .young_used = __atomic_load_n(&heap->young_used, __ATOMIC_ACQUIRE),
	        .young_size = __atomic_load_n(&heap->young_size, __ATOMIC_ACQUIRE),
	        .old_used = __atomic_load_n(&heap->old_used, __ATOMIC_ACQUIRE),
	        .old_size = __atomic_load_n(&heap->old_size, __ATOMIC_ACQUIRE),
	        .collected_young = __atomic_load_n(&heap->collected_young, __ATOMIC_ACQUIRE),
	        .collected_old = __atomic_load_n(&heap->collected_old, __ATOMIC_ACQUIRE),
	};
	return __atomic_load_n(&heap->version, __ATOMIC_RELAXED) == version;
}

/* When the last collection began. */
static uint64_t began_ns(const struct tailor_jvm_page *page)
{
	uint64_t state = __atomic_load_n(&page->state, __ATOMIC_ACQUIRE), length_ns = __atomic_load_n(&page->pause_ns_last, __ATOMIC_RELAXED);

	if (TAILOR_JVM_STATE_OF(state) != TAILOR_JVM_RUNNING)
		return TAILOR_JVM_SINCE_NS(state);
	return TAILOR_JVM_SINCE_NS(state) > length_ns ? TAILOR_JVM_SINCE_NS(state) - length_ns : 0;
}

static void learn(struct worker *worker, unsigned int index)
{
	const struct tailor_jvm_page *page = worker->server[index].page;
	struct kept *kept = &worker->keeper.server[index];
	char cause[TAILOR_JVM_CAUSE_BYTES];
	struct predict_collection collection = {.began_ns = began_ns(page), .cause = cause, .wished = kept->wished};
	struct tailor_jvm_heap heap;

	if (!read_heap(page, &heap) || heap.time_ns < kept->since_ns)
		return;
	pause_cause(&worker->server[index], __atomic_load_n(&page->pauses, __ATOMIC_RELAXED), cause);
	if (heap.collected_young != kept->predict.last.collected_young || heap.collected_old != kept->predict.last.collected_old)
		kept->wished = TAILOR_JVM_WISH_NONE;
	predict_read(&kept->predict, &heap, &collection);
}

static uint32_t in_flight(const struct worker *worker, unsigned int index)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < worker->options->workers; i++)
		sum += __atomic_load_n(&worker->shared->load[i].server[index], __ATOMIC_RELAXED);
	return sum;
}

static uint32_t what_it_may(const struct worker *worker, const struct tailor_jvm_page *page)
{
	uint32_t may = 0;

	if (worker->options->collect != TAILOR_PROXY_COLLECT_OFF && page->can & TAILOR_JVM_CAN_COLLECT_YOUNG)
		may |= 1u << TAILOR_JVM_WISH_YOUNG;
	if (worker->options->collect == TAILOR_PROXY_COLLECT_FULL && page->can & TAILOR_JVM_CAN_COLLECT_FULL)
		may |= 1u << TAILOR_JVM_WISH_FULL;
	return may;
}

static uint64_t responses(const struct worker *worker, unsigned int index)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < worker->options->workers; i++)
		sum += __atomic_load_n(&worker->shared->workers[i].counters.server[index].responses, __ATOMIC_RELAXED);
	return sum;
}

/* It may get requests now, and nothing says that it would not answer them: the last one that tried to connect could, and its JVM has not ended. */
static bool runs(struct worker *worker, unsigned int index)
{
	struct kept *kept = &worker->keeper.server[index];

	if (kept->gone && responses(worker, index) > kept->gone_responses)
		kept->gone = false;
	return !kept->gone && worker->server[index].standing.kind == TAILOR_STOP_NONE && !server_is_paused(worker, index) &&
	       server_may_serve(worker, (int)index) && __atomic_load_n(&worker->shared->server[index].back_off_ns, __ATOMIC_RELAXED) == 0;
}

static uint64_t service_ns(const struct worker *worker, unsigned int index)
{
	uint64_t most_ns = expect_lengths_most(&worker->server[index].learned->service, SERVICE_PART);
	uint64_t times_ns = SERVICE_TIMES * stopped_service_ns(worker, index);

	return most_ns < times_ns ? most_ns : times_ns;
}

static void view(struct worker *worker, unsigned int index, struct drain_server *ret_view)
{
	struct server *server = &worker->server[index];
	struct expect_rest stop = expect_stop_rest(&server->learned->stops, TAILOR_STOP_GC, "", 0);

	*ret_view = (struct drain_server){
	        .runs = runs(worker, index),
	        .collects = server->standing.kind != TAILOR_STOP_NONE,
	        .in_flight = in_flight(worker, index),
	        .service_ns = service_ns(worker, index),
	        .stop_known = stop.known,
	        .stop_ns = stop.ns,
	};
	if (!tells(server))
		return;
	learn(worker, index);
	ret_view->predict = &worker->keeper.server[index].predict;
	want(server, ret_view->predict);
	ret_view->pauses = __atomic_load_n(&server->page->pauses, __ATOMIC_RELAXED);
	ret_view->can = what_it_may(worker, server->page);
	ret_view->granted = __atomic_load_n(&server->page->granted, __ATOMIC_ACQUIRE);
}

static bool is_under_way(const struct keeper *keeper, unsigned int index)
{
	return keeper->drain.state != DRAIN_NONE && keeper->drain.server == index;
}

static void count_warning(struct worker *worker, unsigned int index)
{
	uint64_t at_ns = began_ns(worker->server[index].page), since_ns = worker->keeper.drain.began_ns;
	uint64_t warning_ns = at_ns > since_ns ? at_ns - since_ns : 0;
	unsigned int bucket = 0;

	while (bucket < TAILOR_WARNING_BUCKETS && warning_ns > tailor_warning_bucket_ns[bucket])
		bucket++;
	count(&worker->counters.server[index].warning[bucket]);
	count_add(&worker->counters.server[index].warning_ns_total, warning_ns);
	worker->keeper.warned = true;
}

static void count_pauses(struct worker *worker, unsigned int index, const struct drain_server *its)
{
	struct keeper *keeper = &worker->keeper;
	struct kept *kept = &keeper->server[index];

	if (!its->predict || its->pauses == kept->pauses)
		return;
	if (is_under_way(keeper, index)) {
		count_add(&worker->counters.server[index].predicted, its->pauses - kept->pauses);
		if (!keeper->warned)
			count_warning(worker, index);
	} else {
		count_add(&worker->counters.server[index].missed, its->pauses - kept->pauses);
	}
	kept->pauses = its->pauses;
}

/* Whether the others have places for what is in flight, where those are limited. */
static bool has_room(const struct worker *worker, const struct drain_server *servers, unsigned int index)
{
	uint64_t in_flight = servers[index].in_flight, places = 0;

	if (!worker->shared->queue)
		return true;
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (i == index || !servers[i].runs)
			continue;
		in_flight += servers[i].in_flight;
		places += worker->options->in_flight_max;
	}
	if (worker->options->mode == TAILOR_PROXY_ACTIVE_BACKUP)
		places = worker->options->in_flight_max;
	return queue_waiting(worker->shared->queue) == 0 && 2 * in_flight <= places;
}

/* What comes from now on goes to another server, which stays the active one. */
static void begin(struct worker *worker, const struct drain_server *servers, unsigned int index)
{
	struct keeper *keeper = &worker->keeper;
	uint64_t now_ns = tailor_clock_ns();
	unsigned int active = index;
	int next;

	keeper->lease = drain_lease_take(&worker->shared->drain, index, now_ns, now_ns + DRAIN_LEASE_NS);
	if (!keeper->lease)
		return;
	drain_begin(&keeper->drain, index, servers, now_ns);
	keeper->warned = false;
	count(&worker->counters.server[index].drains);
	next = worker->options->mode == TAILOR_PROXY_ACTIVE_BACKUP ? server_next(worker, index) : -1;
	if (next >= 0)
		__atomic_compare_exchange_n(&worker->shared->active, &active, (unsigned int)next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Only what the keeper of this page has wished for is taken back. */
static void take_back(struct tailor_jvm_page *page, uint64_t wish)
{
	__atomic_compare_exchange_n(&page->wish, &wish, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* The server is back in service. */
static void over(struct worker *worker)
{
	struct keeper *keeper = &worker->keeper;
	const struct drain *drain = &keeper->drain;
	struct server *server = &worker->server[drain->server];

	drain_lease_release(&worker->shared->drain, keeper->lease);
	keeper->lease = 0;
	if (drain->end == DRAIN_FALSE || drain->end == DRAIN_LEFT)
		count(&worker->counters.server[drain->server].false_drains);
	if (!drain->wish || !server->page)
		return;
	if (drain->end == DRAIN_MET && __atomic_load_n(&server->page->granted, __ATOMIC_RELAXED) == drain->wish)
		count(&worker->counters.server[drain->server].granted);
	if (drain->end != DRAIN_MET)
		keeper->server[drain->server].wished = TAILOR_JVM_WISH_NONE;
	take_back(server->page, drain->wish);
}

static void wish(struct worker *worker)
{
	const struct drain *drain = &worker->keeper.drain;

	worker->keeper.server[drain->server].wished = TAILOR_JVM_WISH_OF(drain->wish);
	count(&worker->counters.server[drain->server].wishes);
	__atomic_store_n(&worker->server[drain->server].page->wish, drain->wish, __ATOMIC_RELEASE);
}

static void go_on(struct worker *worker, const struct drain_server *servers)
{
	struct keeper *keeper = &worker->keeper;
	uint64_t now_ns = tailor_clock_ns();
	enum drain_action action;

	keeper->lease = drain_lease_renew(&worker->shared->drain, keeper->lease, now_ns, now_ns + DRAIN_LEASE_NS);
	/* Nobody has looked for too long, and it has been back in service; or somebody needs its places. */
	if (!keeper->lease || queue_waiting(worker->shared->queue) > 0)
		action = drain_end(&keeper->drain, keeper->warned ? DRAIN_MET : DRAIN_LEFT, now_ns);
	else
		action = drain_step(&keeper->drain, servers, worker->options->servers, now_ns);
	if (action == DRAIN_WISH)
		wish(worker);
	else if (action == DRAIN_OVER)
		over(worker);
}

void keeper_look(struct worker *worker)
{
	struct keeper *keeper = &worker->keeper;
	struct drain_server servers[TAILOR_PROXY_SERVERS_MAX];
	bool somebody = false;
	uint64_t now_ns;
	int chosen;

	for (unsigned int i = 0; i < worker->options->servers; i++) {
		view(worker, i, &servers[i]);
		count_pauses(worker, i, &servers[i]);
		somebody |= servers[i].predict != NULL;
	}
	now_ns = tailor_clock_ns();
	if (keeper->drain.state != DRAIN_NONE) {
		go_on(worker, servers);
	} else {
		chosen = drain_choose(&keeper->drain, servers, worker->options->servers, now_ns);
		if (chosen >= 0 && has_room(worker, servers, (unsigned int)chosen))
			begin(worker, servers, (unsigned int)chosen);
	}
	keeper->next_ns = somebody ? drain_next_ns(&keeper->drain, servers, worker->options->servers, now_ns) : UINT64_MAX;
}

/* There is somebody to look at, or there is not. */
static void set_next(struct worker *worker)
{
	worker->keeper.next_ns = UINT64_MAX;
	for (unsigned int i = 0; worker->keeper.on && i < worker->options->servers; i++) {
		if (tells(&worker->server[i]))
			worker->keeper.next_ns = worker->now_ns;
	}
}

static void leave(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];

	if (is_under_way(&worker->keeper, index)) {
		drain_end(&worker->keeper.drain, DRAIN_GONE, tailor_clock_ns());
		over(worker);
	}
	if (tells(server))
		__atomic_fetch_and(&server->page->wants, ~(uint64_t)TAILOR_JVM_WANTS_HEAP, __ATOMIC_RELAXED);
}

/* What happened before is not counted, nor learned from. */
static void begin_anew(struct worker *worker, unsigned int index)
{
	const struct tailor_jvm_page *page = worker->server[index].page;

	worker->keeper.server[index] = (struct kept){.since_ns = tailor_clock_ns(), .pauses = __atomic_load_n(&page->pauses, __ATOMIC_RELAXED)};
}

void keeper_open(struct worker *worker)
{
	worker->keeper.on = is_on(worker);
	worker->keeper.next_ns = UINT64_MAX;
}

void keeper_attached(struct worker *worker, unsigned int index)
{
	if (worker->index != 0)
		return;
	begin_anew(worker, index);
	set_next(worker);
}

void keeper_detaching(struct worker *worker, unsigned int index)
{
	if (worker->index != 0)
		return;
	leave(worker, index);
	worker->keeper.server[index] = (struct kept){.gone = true, .gone_responses = responses(worker, index)};
}

void keeper_changed(struct worker *worker)
{
	struct keeper *keeper = &worker->keeper;
	bool was_on = keeper->on;

	if (worker->index != 0)
		return;
	/* What was begun by other settings is not for these. */
	if (keeper->drain.state != DRAIN_NONE) {
		drain_end(&keeper->drain, keeper->warned ? DRAIN_MET : DRAIN_LEFT, tailor_clock_ns());
		over(worker);
	}
	keeper->on = is_on(worker);
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (!keeper->on)
			leave(worker, i);
		else if (!was_on && worker->server[i].page)
			begin_anew(worker, i);
	}
	set_next(worker);
}

void keeper_met(struct worker *worker, unsigned int index, uint32_t requests)
{
	uint64_t pause = worker->server[index].pauses_seen;

	count_add(&worker->counters.server[index].requests_met, requests);
	if (__atomic_exchange_n(&worker->shared->server[index].met_pause, pause, __ATOMIC_RELAXED) != pause)
		count(&worker->counters.server[index].pauses_met);
}
