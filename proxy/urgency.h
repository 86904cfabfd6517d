/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon a worker gets a CPU. One that has had to wait for it, as others have all of them, takes a real-time priority for a while: it then runs
 * at once when it wakes up, whoever has its CPU, for the few us that a request takes. Where there is a CPU to spare it never does, and is
 * put where that is. One that uses much of a CPU is like others, and gives the priority up. All functions: the worker's thread.
 */
#ifndef TAILOR_PROXY_URGENCY_H
#define TAILOR_PROXY_URGENCY_H

#include "proxy/worker.h"

/* Begins to watch how long it waits, if the options say so and the kernel tells. */
void urgency_open(struct worker *worker);
void urgency_close(struct worker *worker);

/* Whether a thread that has run so many times waited for longer than waking up takes. */
bool urgency_is_late(uint64_t waited_ns, uint64_t times);

void urgency_look(struct worker *worker, uint64_t now_ns);

/* Now and then in a turn. */
static inline void urgency_turn(struct worker *worker, uint64_t now_ns)
{
	if (now_ns >= worker->urgency.look_ns)
		urgency_look(worker, now_ns);
}

#endif /* TAILOR_PROXY_URGENCY_H */
