/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/server.h"

#define BACK_OFF_MIN_NS (100 * TAILOR_NS_PER_MS)
#define BACK_OFF_MAX_NS (2 * TAILOR_NS_PER_S)

bool server_is_paused(const struct worker *worker, unsigned int server)
{
	const struct tailor_jvm_page *page = worker->server[server].page;

	return page && TAILOR_JVM_STATE_OF(__atomic_load_n(&page->state, __ATOMIC_ACQUIRE)) == TAILOR_JVM_COLLECTING;
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

bool server_avoids_stops(const struct worker *worker)
{
	return worker->options->failover_on != 0;
}

bool server_may_serve(const struct worker *worker, int server)
{
	return server >= 0 && !server_is_down(worker, (unsigned int)server) &&
	       !(server_avoids_stops(worker) && server_is_paused(worker, (unsigned int)server));
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

/* The first one of the best rank, in order from `first` on, but for `without`; -1 where there is none. */
static int best(const struct worker *worker, unsigned int first, int without, enum rank worst)
{
	enum rank found = RANKS;
	int server = -1;

	for (unsigned int i = 0; i < worker->options->servers && found != RANK_RUNS; i++) {
		unsigned int index = (first + i) % worker->options->servers;
		enum rank this = (int)index == without ? RANKS : rank(worker, index);

		if (this > worst || this >= found)
			continue;
		found = this;
		server = (int)index;
	}
	return server;
}

int server_choose(const struct worker *worker)
{
	return best(worker, __atomic_load_n(&worker->shared->active, __ATOMIC_RELAXED), -1, RANK_REACHABLE);
}

int server_next(const struct worker *worker, unsigned int server)
{
	return best(worker, server + 1, (int)server, RANK_RUNS);
}

int server_other(const struct worker *worker, unsigned int server)
{
	return best(worker, server + 1, (int)server, RANK_DOWN);
}
