/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/server.h"

#include <string.h>

#include "proxy/pause.h"
#include "proxy/stopped.h"

#define BACK_OFF_MIN_NS (100 * TAILOR_NS_PER_MS)
#define BACK_OFF_MAX_NS (2 * TAILOR_NS_PER_S)

bool server_is_paused(const struct worker *worker, unsigned int server)
{
	return TAILOR_STOP_KIND(pause_word(worker, server)) != TAILOR_STOP_NONE;
}

bool server_is_down(const struct worker *worker, unsigned int server)
{
	uint64_t until_ns = __atomic_load_n(&worker->shared->server[server].down_until_ns, __ATOMIC_RELAXED);

	return until_ns != 0 && until_ns > tailor_clock_ns();
}

void server_mark_down(struct worker *worker, unsigned int server)
{
	struct shared_server *shared = &worker->shared->server[server];
	uint64_t back_off_ns = __atomic_load_n(&shared->back_off_ns, __ATOMIC_RELAXED);

	/* One failure of many at once is enough to double it. */
	if (server_is_down(worker, server))
		return;
	back_off_ns = back_off_ns == 0 ? BACK_OFF_MIN_NS : back_off_ns * 2;
	if (back_off_ns > BACK_OFF_MAX_NS)
		back_off_ns = BACK_OFF_MAX_NS;
	__atomic_store_n(&shared->back_off_ns, back_off_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->down_until_ns, tailor_clock_ns() + back_off_ns, __ATOMIC_RELAXED);
}

void server_mark_up(struct worker *worker, unsigned int server)
{
	struct shared_server *shared = &worker->shared->server[server];

	if (__atomic_load_n(&shared->back_off_ns, __ATOMIC_RELAXED) == 0)
		return;
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

/* How little it is to be hoped that it answers soon. A stopped server answers late, one that is down never. */
enum rank {
	RANK_RUNS,
	RANK_STOPPED,
	RANK_REACHABLE, /* down, but with a connection that stands */
	RANK_DOWN,
	RANKS,
};

static enum rank rank(const struct worker *worker, unsigned int server)
{
	if (server_is_down(worker, server))
		return is_reachable(worker, server) ? RANK_REACHABLE : RANK_DOWN;
	return server_may_serve(worker, (int)server) ? RANK_RUNS : RANK_STOPPED;
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

/* The best but for `without`, up to `worst`, or -1: of several the one with the least load, if that counts, else the first in order from `first` on. */
static int best(const struct worker *worker, unsigned int first, int without, enum rank worst, bool by_load)
{
	uint32_t loads[TAILOR_PROXY_SERVERS_MAX] = {0};
	enum rank found = RANKS;
	int server = -1;

	if (by_load)
		sum_loads(worker, loads);
	for (unsigned int i = 0; i < worker->options->servers && (by_load || found != RANK_RUNS); i++) {
		unsigned int index = (first + i) % worker->options->servers;
		enum rank this = (int)index == without ? RANKS : rank(worker, index);

		if (this > worst || this > found || (this == found && loads[index] >= loads[server]))
			continue;
		found = this;
		server = (int)index;
	}
	return server;
}

int server_choose(const struct worker *worker)
{
	/* Of those with nothing in flight another one each time: not only one of them is to be warm. */
	if (worker->options->mode == TAILOR_PROXY_BALANCED)
		return best(worker, (unsigned int)(worker->counters.requests % worker->options->servers), -1, RANK_REACHABLE, true);
	return best(worker, __atomic_load_n(&worker->shared->active, __ATOMIC_RELAXED), -1, RANK_REACHABLE, false);
}

int server_next(const struct worker *worker, unsigned int server)
{
	return best(worker, server + 1, (int)server, RANK_RUNS, false);
}

int server_other(const struct worker *worker, unsigned int server)
{
	return best(worker, server + 1, (int)server, RANK_DOWN, true);
}
