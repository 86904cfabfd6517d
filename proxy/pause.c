/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/pause.h"

#include "proxy/exchange.h"
#include "proxy/server.h"

static uint64_t load_state(const struct server *server)
{
	return __atomic_load_n(&server->page->state, __ATOMIC_SEQ_CST);
}

/* Another server takes over what arrives from now on, if it can do better. */
static void hand_over(struct worker *worker, unsigned int index)
{
	int next = server_next(worker, index);

	if (next < 0 || !server_avoids_stops(worker) || worker->options->mode == TAILOR_PROXY_BALANCED)
		return;
	/* One of several workers does it. */
	__atomic_compare_exchange_n(&worker->shared->active, &index, (unsigned int)next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void judge_in_flight(struct worker *worker, unsigned int index, bool again)
{
	struct upstream *next;

	/* A verdict adds attempts to the other server's list only. */
	for (struct upstream *upstream = worker->server[index].in_flight; upstream; upstream = next) {
		next = upstream->next;
		exchange_server_paused(worker, upstream, again);
	}
}

static void began(struct worker *worker, unsigned int index)
{
	worker->server[index].paused = true;
	count(&worker->counters.server[index].paused);
	hand_over(worker, index);
	judge_in_flight(worker, index, false);
}

static void ended(struct worker *worker, unsigned int index)
{
	worker->server[index].paused = false;
	count_add(&worker->counters.server[index].paused, (uint64_t)-1);
	/* Requests that found all stopped have waited at the others; they need not any longer. Those stops may be over, too, and
	 * only be noticed after this one's end. */
	for (unsigned int other = 0; other < worker->options->servers; other++) {
		if (other == index || !worker->server[other].paused || !server_is_paused(worker, other))
			continue;
		hand_over(worker, other);
		judge_in_flight(worker, other, true);
	}
}

void pause_look(struct worker *worker)
{
	bool collecting[TAILOR_PROXY_SERVERS_MAX] = {false};

	/* All pages first: what is done about one depends on the others. */
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];
		uint64_t pauses;

		if (!server->page)
			continue;
		server->state = load_state(server);
		collecting[i] = TAILOR_JVM_STATE_OF(server->state) == TAILOR_JVM_COLLECTING;
		/* Counts those too that were over before anybody looked. */
		pauses = __atomic_load_n(&server->page->pauses, __ATOMIC_RELAXED);
		if (pauses > server->pauses_seen)
			count_add(&worker->counters.server[i].pauses, pauses - server->pauses_seen);
		server->pauses_seen = pauses;
	}
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (worker->server[i].paused && !collecting[i])
			ended(worker, i);
	}
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (!worker->server[i].paused && collecting[i])
			began(worker, i);
	}
}

bool pause_changed(const struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		const struct server *server = &worker->server[i];

		if (server->page && load_state(server) != server->state)
			return true;
	}
	return false;
}

bool pause_may_sleep(struct worker *worker)
{
	bool unchanged = true;

	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];

		if (!server->page)
			continue;
		/* Store, full fence, load, against the agent's store of the state, fence, and load of `sleeping`: one
		 * of the two sees the other. Both accesses being sequentially consistent is that fence. */
		__atomic_store_n(&server->page->waker[worker->index].sleeping, 1, __ATOMIC_SEQ_CST);
		if (load_state(server) != server->state)
			unchanged = false;
	}
	return unchanged;
}

void pause_awake(struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (worker->server[i].page)
			__atomic_store_n(&worker->server[i].page->waker[worker->index].sleeping, 0, __ATOMIC_RELAXED);
	}
}

static uint64_t waker_token(const struct server *server, unsigned int index)
{
	return TAILOR_TOKEN(SLOT_WORKER, server->waker_generation, OPERATION_WAKER + index);
}

static void read_waker(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];

	server->waker_reading = true;
	tailor_ring_read(worker->ring, server->waker, &server->waker_value, sizeof(server->waker_value),
	                 waker_token(server, index));
}

void pause_attach(struct worker *worker, unsigned int index, struct tailor_jvm_page *page, int waker)
{
	struct server *server = &worker->server[index];

	server->page = page;
	server->waker = waker;
	server->waker_generation++;
	server->pauses_seen = __atomic_load_n(&page->pauses, __ATOMIC_RELAXED);
	server->state = load_state(server);
	__atomic_store_n(&worker->counters.server[index].agent, 1, __ATOMIC_RELAXED);
	read_waker(worker, index);
	/* It may be in a collection already, and would wake nobody until that ends. */
	pause_look(worker);
}

bool pause_detach(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];

	if (!server->page)
		return true;
	__atomic_store_n(&server->page->waker[worker->index].sleeping, 0, __ATOMIC_RELAXED);
	server->page = NULL;
	__atomic_store_n(&worker->counters.server[index].agent, 0, __ATOMIC_RELAXED);
	if (server->paused)
		ended(worker, index);
	if (!server->waker_reading)
		return true;
	tailor_ring_cancel(worker->ring, waker_token(server, index), TAILOR_TOKEN(SLOT_WORKER, 0, OPERATION_CANCEL));
	return false;
}

bool pause_waker_complete(struct worker *worker, unsigned int index, uint32_t generation, int result)
{
	struct server *server = &worker->server[index];

	if (generation != (server->waker_generation & 0xffffff)) {
		count(&worker->counters.stale_completions);
		return false;
	}
	server->waker_reading = false;
	if (!server->page)
		return true;
	/* A waker that cannot be read would spin here; the state is then looked at on every turn of the loop only. */
	if (result > 0)
		read_waker(worker, index);
	return false;
}
