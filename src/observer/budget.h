/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be spent over time: refilled at a steady rate, saved up to a limit for bursts. Spending may overdraw it, which has to be
 * earned again. Pure; amounts are in whatever unit the caller counts.
 */
#ifndef TAILOR_OBSERVER_BUDGET_H
#define TAILOR_OBSERVER_BUDGET_H

#include <stdint.h>

struct tailor_budget {
	double left, max;
	double per_ns; /* earned in a nanosecond */
	uint64_t filled_ns;
};

/* Full at first. */
static inline void tailor_budget_open(struct tailor_budget *budget, double per_second, double max, uint64_t now_ns)
{
	*budget = (struct tailor_budget){.left = max, .max = max, .per_ns = per_second / 1e9, .filled_ns = now_ns};
}

/* Earns what is due until now_ns; a clock that went back earns nothing. */
static inline void tailor_budget_fill(struct tailor_budget *budget, uint64_t now_ns)
{
	if (now_ns <= budget->filled_ns)
		return;
	budget->left += (double)(now_ns - budget->filled_ns) * budget->per_ns;
	if (budget->left > budget->max)
		budget->left = budget->max;
	budget->filled_ns = now_ns;
}

/* How many things of that cost it allows now, at most `most`. Whoever has anything left may have one, whatever its cost. */
static inline uint64_t tailor_budget_allows(const struct tailor_budget *budget, double cost, uint64_t most)
{
	if (budget->left <= 0)
		return 0;
	if (cost * (double)most <= budget->left)
		return most;
	return budget->left > cost ? (uint64_t)(budget->left / cost) : 1;
}

static inline void tailor_budget_spend(struct tailor_budget *budget, double amount)
{
	budget->left -= amount;
}

#endif /* TAILOR_OBSERVER_BUDGET_H */
