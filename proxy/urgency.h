/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker of a real-time priority runs at once when it wakes up, whoever has its CPU, and everybody else waits until it sleeps: a request
 * that it moves away from a pause cannot wait for the slice of a thread of the server that it goes to. For the few us that this takes it harms
 * nobody. A worker that uses much of a CPU is one like others, and gives the priority up for as long. All functions: the worker's thread.
 */
#ifndef TAILOR_PROXY_URGENCY_H
#define TAILOR_PROXY_URGENCY_H

#include "proxy/worker.h"

/* Takes the priority, if the options say so and it may. */
void urgency_open(struct worker *worker);

void urgency_look(struct worker *worker);

/* Once a turn. */
static inline void urgency_turn(struct worker *worker)
{
	if (worker->now_ns >= worker->urgency.look_ns)
		urgency_look(worker);
}

#endif /* TAILOR_PROXY_URGENCY_H */
