/* SPDX-License-Identifier: Apache-2.0 */
/* What the proxy says about itself, in its request channels and its counters, compared with what happened. */
#ifndef TAILOR_SIMULATION_JUDGE_H
#define TAILOR_SIMULATION_JUDGE_H

#include <stdint.h>

/* Gives world.options its channels and tags. */
void judge_open(void);
/* Reads what the workers have written; after each turn of one. */
void judge_listen(void);
/* All clients have gone and nothing is under way any more, while the proxy still serves: every request, every counter. */
void judge_counters(void);
/* The proxy has ended: every request. */
void judge_requests(void);
void judge_close(void);

struct judge_figures {
	uint64_t requests, whole, refused, cut, client, moved, stops, budget, replayed, delivered_twice, queued, late, client_waits, held_longest_ns;
	uint64_t drains, false_drains, predicted, missed, granted;
	uint64_t by_status[600];
};
extern struct judge_figures judge_figures;

#endif /* TAILOR_SIMULATION_JUDGE_H */
