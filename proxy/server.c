/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/server.h"

#include <string.h>

#include "proxy/pause.h"
#include "proxy/stopped.h"

#define BACK_OFF_MIN_NS (100 * TAILOR_NS_PER_MS)
#define BACK_OFF_MAX_NS (2 * TAILOR_NS_PER_S)
/* Between two requests that find out whether a server is back for want of others: little enough for clients, and for a host that refuses. */
#define RESORT_NS (10 * TAILOR_NS_PER_MS)

bool server_is_paused(const struct worker *worker, unsigned int server)
{
	return TAILOR_STOP_KIND(pause_word(worker, server)) != TAILOR_STOP_NONE;
}

static bool is_after_now(uint64_t time_ns)
{
	return time_ns != 0 && time_ns > tailor_clock_ns();
}

/* It was down, and somebody finds out whether it still is. */
static bool is_tried(const struct worker *worker, unsigned int server)
{
	const struct shared_server *shared = &worker->shared->server[server];

	return __atomic_load_n(&shared->tried, __ATOMIC_RELAXED) && is_after_now(__atomic_load_n(&shared->down_until_ns, __ATOMIC_RELAXED));
}

bool server_is_down(const struct worker *worker, unsigned int server)
{
	const struct shared_server *shared = &worker->shared->server[server];

	return is_after_now(__atomic_load_n(&shared->down_until_ns, __ATOMIC_RELAXED)) && !__atomic_load_n(&shared->tried, __ATOMIC_RELAXED);
}

void server_connecting(struct worker *worker, unsigned int server)
{
	struct shared_server *shared = &worker->shared->server[server];
	uint64_t until_ns = __atomic_load_n(&shared->down_until_ns, __ATOMIC_RELAXED);

	if (until_ns == 0 || is_after_now(until_ns))
		return;
	/* Whoever comes now had better ask another one until this connection has told more. */
	if (__atomic_compare_exchange_n(&shared->down_until_ns, &until_ns,
	                                tailor_clock_ns() + worker->options->connect_timeout_ns + BACK_OFF_MIN_NS, 0, __ATOMIC_RELAXED,
	                                __ATOMIC_RELAXED))
		__atomic_store_n(&shared->tried, true, __ATOMIC_RELAXED);
}

void server_mark_up(struct worker *worker, unsigned int server)
{
	struct shared_server *shared = &worker->shared->server[server];

	if (__atomic_load_n(&shared->back_off_ns, __ATOMIC_RELAXED) == 0)
		return;
	__atomic_store_n(&shared->tried, false, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->back_off_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->down_until_ns, 0, __ATOMIC_RELAXED);
}

/* That no new connection could be made says nothing about one that stands. */
static bool is_reachable(const struct worker *worker, unsigned int server)
{
	return !server_is_down(worker, server) || worker->server[server].idle;
}

/* It stands still by what the configuration wants to be heeded; also in the rest of a safepoint behind a collection. */
static bool is_avoided(const struct worker *worker, unsigned int server)
{
	enum tailor_stop_kind kind = TAILOR_STOP_KIND(pause_word(worker, server));

	if (kind == TAILOR_STOP_NONE)
		return false;
	return stopped_matters(worker, kind) || (kind == TAILOR_STOP_SAFEPOINT && worker->server[server].standing.kind == TAILOR_STOP_GC &&
	                                         stopped_matters(worker, TAILOR_STOP_GC));
}

bool server_may_serve(const struct worker *worker, int server)
{
	return server >= 0 && !server_is_down(worker, (unsigned int)server) && !is_avoided(worker, (unsigned int)server);
}

/* Somebody who has not looked after it for long does not drain it any more. */
static bool is_drained(const struct worker *worker, unsigned int server)
{
	uint64_t lease = __atomic_load_n(&worker->shared->drain, __ATOMIC_RELAXED);

	return lease && DRAIN_LEASE_SERVER(lease) == (int)server && is_after_now(DRAIN_LEASE_UNTIL_NS(lease));
}

/* How little it is to be hoped that it answers soon. A stopped server answers late, one that is down never. */
enum rank {
	RANK_RUNS,
	RANK_DRAINED, /* runs, but its collection is near */
	RANK_STOPPED,
	RANK_TRIED,
	RANK_REACHABLE, /* down, but with a connection that stands */
	RANK_DOWN,
	RANKS,
};

static enum rank rank(const struct worker *worker, unsigned int server)
{
	if (is_tried(worker, server))
		return RANK_TRIED;
	if (server_is_down(worker, server))
		return is_reachable(worker, server) ? RANK_REACHABLE : RANK_DOWN;
	if (!server_may_serve(worker, (int)server))
		return RANK_STOPPED;
	return is_drained(worker, server) ? RANK_DRAINED : RANK_RUNS;
}

/* Requests at each server, of all workers. Each has a line of its own for that: reading them all costs little, writing one nothing. */
static void sum_loads(const struct worker *worker, uint32_t loads[TAILOR_PROXY_SERVERS_MAX])
{
	memset(loads, 0, TAILOR_PROXY_SERVERS_MAX * sizeof(*loads));
	for (unsigned int i = 0; i < worker->options->workers; i++) {
		for (unsigned int j = 0; j < worker->options->servers; j++)
			loads[j] += __atomic_load_n(&worker->shared->load[i].server[j], __ATOMIC_RELAXED);
	}
}

/* What decides between servers of the same rank before their order. */
enum preference {
	BY_ORDER,
	BY_LOAD,
	BY_LOAD_AND_CONNECTION, /* of the same load, one to which a connection stands: it has the request sooner */
};

/* What makes a server the last one of its rank. */
#define LOAD_LAST (UINT32_C(1) << 30)

/*
 * The best but for `without`, up to `worst`, or -1: of several the preferred one, of several of those the first in order from `first` on.
 * `last`: as bits, those that come last with BY_LOAD_AND_CONNECTION.
 */
static int best(const struct worker *worker, unsigned int first, int without, enum rank worst, enum preference preference, uint32_t last)
{
	uint32_t loads[TAILOR_PROXY_SERVERS_MAX] = {0};
	enum rank found = RANKS;
	int server = -1;

	if (preference != BY_ORDER)
		sum_loads(worker, loads);
	for (unsigned int i = 0; i < worker->options->servers && preference == BY_LOAD_AND_CONNECTION; i++)
		loads[i] = 2 * loads[i] + !worker->server[i].idle + (last & 1u << i ? LOAD_LAST : 0);
	for (unsigned int i = 0; i < worker->options->servers && (preference != BY_ORDER || found != RANK_RUNS); i++) {
		unsigned int index = (first + i) % worker->options->servers;
		enum rank this = (int)index == without ? RANKS : rank(worker, index);

		if (this > worst || this > found || (this == found && loads[index] >= loads[server]))
			continue;
		found = this;
		server = (int)index;
	}
	return server;
}

/* The one that is drained, if it has a place, and `server` of the same group has none: better there than nowhere. */
static int relieve(const struct worker *worker, int server)
{
	int drained = DRAIN_LEASE_SERVER(__atomic_load_n(&worker->shared->drain, __ATOMIC_RELAXED));
	uint32_t loads[TAILOR_PROXY_SERVERS_MAX];

	if (drained < 0 || server < 0 || worker->options->in_flight_max == 0 || rank(worker, (unsigned int)drained) != RANK_DRAINED)
		return server;
	sum_loads(worker, loads);
	return loads[server] >= worker->options->in_flight_max && loads[drained] < loads[server] ? drained : server;
}

int server_choose(const struct worker *worker)
{
	/* Of those with nothing in flight another one each time: not only one of them is to be warm. */
	if (worker->options->mode == TAILOR_PROXY_BALANCED)
		return relieve(worker, best(worker, (unsigned int)(worker->counters.requests % worker->options->servers), -1,
		                            RANK_REACHABLE, BY_LOAD, 0));
	return best(worker, __atomic_load_n(&worker->shared->active, __ATOMIC_RELAXED), -1, RANK_REACHABLE, BY_ORDER, 0);
}

int server_next(const struct worker *worker, unsigned int server)
{
	return best(worker, server + 1, (int)server, RANK_RUNS, BY_ORDER, 0);
}

int server_other(const struct worker *worker, unsigned int server, uint32_t tried)
{
	return best(worker, server + 1, (int)server, RANK_DOWN, BY_LOAD_AND_CONNECTION, tried);
}

int server_last_resort(struct worker *worker, int failed)
{
	unsigned int first = __atomic_load_n(&worker->shared->active, __ATOMIC_RELAXED);
	uint64_t now_ns = tailor_clock_ns();

	for (unsigned int i = 0; i < worker->options->servers; i++) {
		unsigned int index = (first + i) % worker->options->servers;
		struct shared_server *shared = &worker->shared->server[index];
		uint64_t resort_ns = __atomic_load_n(&shared->resort_ns, __ATOMIC_RELAXED);

		bool goes_along = failed >= 0 && resort_ns > now_ns + RESORT_NS;

		if ((int)index == failed || !server_is_down(worker, index) || (now_ns < resort_ns && !goes_along))
			continue;
		/* Until it is known, or nobody waits for that any more. */
		if (!goes_along && !__atomic_compare_exchange_n(&shared->resort_ns, &resort_ns, now_ns + RESORT_NS + worker->options->connect_timeout_ns,
		                                                0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		count(&worker->counters.server[index].last_resorts);
		return (int)index;
	}
	return -1;
}

void server_connect_given_up(struct worker *worker, unsigned int server)
{
	__atomic_store_n(&worker->shared->server[server].resort_ns, tailor_clock_ns() + RESORT_NS, __ATOMIC_RELAXED);
}

void server_mark_down(struct worker *worker, unsigned int server)
{
	struct shared *shared = worker->shared;
	struct shared_server *down = &shared->server[server];
	uint64_t back_off_ns = __atomic_load_n(&down->back_off_ns, __ATOMIC_RELAXED);
	int next;

	__atomic_store_n(&down->resort_ns, tailor_clock_ns() + RESORT_NS, __ATOMIC_RELAXED);
	/* One failure of many at once is enough to double it. */
	if (server_is_down(worker, server))
		return;
	__atomic_store_n(&down->tried, false, __ATOMIC_RELAXED);
	back_off_ns = back_off_ns == 0 ? BACK_OFF_MIN_NS : back_off_ns * 2;
	if (back_off_ns > BACK_OFF_MAX_NS)
		back_off_ns = BACK_OFF_MAX_NS;
	__atomic_store_n(&down->back_off_ns, back_off_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&down->down_until_ns, tailor_clock_ns() + back_off_ns, __ATOMIC_RELAXED);
	/* Another one takes over and stays the active one: this one would be asked again each time that it may be back. */
	next = worker->options->mode == TAILOR_PROXY_ACTIVE_BACKUP ? server_next(worker, server) : -1;
	if (next >= 0)
		__atomic_compare_exchange_n(&shared->active, &server, (unsigned int)next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
