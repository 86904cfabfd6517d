/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/budget.h"

#include <math.h>

/* Parts of a request, so that small parts of few requests are not lost. */
#define ONE INT64_C(1000000)

void budget_open(struct budget *budget, uint64_t now_ns, uint64_t requests, unsigned int floor)
{
	*budget = (struct budget){
	        .left = (int64_t)floor * (int64_t)(BUDGET_NS / TAILOR_NS_PER_S) * ONE, .at_ns = now_ns, .requests = requests};
}

/* What has come since the last time, and what has faded: the exact solution for a constant rate in between. */
static int64_t change(const struct budget *budget, uint64_t now_ns, uint64_t requests, double part, unsigned int floor)
{
	double left = (double)__atomic_load_n(&budget->left, __ATOMIC_RELAXED);
	double passed_s = (double)(now_ns - budget->at_ns) / TAILOR_NS_PER_S;
	double lasts_s = (double)BUDGET_NS / TAILOR_NS_PER_S;
	double faded = -expm1(-passed_s / lasts_s);
	double a_second = (double)ONE * (part * (double)(requests - budget->requests) / passed_s + floor);

	return (int64_t)(faded * (a_second * lasts_s - left));
}

/* Whoever finds another worker at it goes on with what is there. */
static void refill(struct budget *budget, uint64_t now_ns, uint64_t requests, double part, unsigned int floor)
{
	if (__atomic_exchange_n(&budget->busy, true, __ATOMIC_ACQUIRE))
		return;
	/* Workers' clocks and counters are read at different times. */
	if (now_ns > budget->at_ns && requests >= budget->requests) {
		__atomic_fetch_add(&budget->left, change(budget, now_ns, requests, part, floor), __ATOMIC_RELAXED);
		budget->at_ns = now_ns;
		budget->requests = requests;
	}
	__atomic_store_n(&budget->busy, false, __ATOMIC_RELEASE);
}

bool budget_take(struct budget *budget, uint64_t now_ns, uint64_t requests, double part, unsigned int floor)
{
	int64_t left;

	refill(budget, now_ns, requests, part, floor);
	left = __atomic_load_n(&budget->left, __ATOMIC_RELAXED);
	while (left >= ONE) {
		if (__atomic_compare_exchange_n(&budget->left, &left, left - ONE, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void budget_give(struct budget *budget)
{
	__atomic_fetch_add(&budget->left, ONE, __ATOMIC_RELAXED);
}

void budget_open_all(struct shared *shared, const struct tailor_proxy_options *options, uint64_t now_ns)
{
	budget_open(&shared->budget, now_ns, 0, options->replay_floor_per_s);
	for (unsigned int i = 0; i < options->servers; i++)
		budget_open(&shared->server[i].budget, now_ns, 0, options->replay_floor_per_s);
}

bool budget_take_for(struct worker *worker, unsigned int server)
{
	const struct tailor_proxy_options *options = worker->options;
	struct shared *shared = worker->shared;
	uint64_t all = 0, its = 0;

	/* Rare: once for a request at a server that has stopped. */
	for (unsigned int i = 0; i < options->workers; i++) {
		const struct counters *counters = &shared->workers[i].counters;

		all += __atomic_load_n(&counters->requests, __ATOMIC_RELAXED);
		its += __atomic_load_n(&counters->server[server].requests, __ATOMIC_RELAXED);
	}
	if (!budget_take(&shared->server[server].budget, worker->now_ns, its, options->replay_part, options->replay_floor_per_s))
		return false;
	if (budget_take(&shared->budget, worker->now_ns, all, options->replay_part, options->replay_floor_per_s))
		return true;
	budget_give(&shared->server[server].budget);
	return false;
}

void budget_give_for(struct worker *worker, unsigned int server)
{
	budget_give(&worker->shared->server[server].budget);
	budget_give(&worker->shared->budget);
}
