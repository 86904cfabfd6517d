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

int server_choose(const struct worker *worker)
{
	unsigned int active = __atomic_load_n(&worker->shared->active, __ATOMIC_RELAXED);
	unsigned int backup = 1 - active;
	bool avoid_pauses = worker->options->failover_on_gc;

	if (worker->options->servers == 1)
		return is_reachable(worker, 0) ? 0 : -1;
	if (!server_is_down(worker, active) && !(avoid_pauses && server_is_paused(worker, active)))
		return (int)active;
	if (!server_is_down(worker, backup) && !(avoid_pauses && server_is_paused(worker, backup)))
		return (int)backup;
	/* A stopped server answers late, one that is down never. */
	if (!server_is_down(worker, active))
		return (int)active;
	if (!server_is_down(worker, backup))
		return (int)backup;
	if (is_reachable(worker, active))
		return (int)active;
	return is_reachable(worker, backup) ? (int)backup : -1;
}
