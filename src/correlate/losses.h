/* SPDX-License-Identifier: Apache-2.0 */
/* What was not recorded, and what can therefore not be said. */
#ifndef TAILOR_CORRELATE_LOSSES_H
#define TAILOR_CORRELATE_LOSSES_H

#include "correlate/spans.h"
#include <tailor/window.h>

/* The earliest loss in the CPU's channel that overlaps the interval; NULL when there is none. */
const struct tailor_loss *losses_of_cpu(const struct tailor_window *window, unsigned int cpu, uint64_t from_ns, uint64_t to_ns);

/* 1 when a channel whose name begins so lost events within the interval. */
int losses_in(const struct tailor_window *window, const char *channels, uint64_t from_ns, uint64_t to_ns);

/* How far what began before from_ns and has no end is known to have gone on: to the request's end, or to the first loss after from_ns in a
 * channel whose name begins so. */
uint64_t losses_known_until(const struct tailor_window *window, const char *channels, uint64_t from_ns);

/* Where a CPU's events were lost, spans whose cause rests on something not having happened meanwhile become unexplained. */
void losses_doubt(const struct tailor_window *window, struct span_list *spans);

/* Parts of 1000 of the interval in which no channel that matters had a loss: all CPUs', the worker's, and the JVM's of the
 * server of that name. 1000 only where there was none at all. */
uint16_t losses_complete(const struct tailor_window *window, const char *server, uint64_t begin_ns, uint64_t end_ns);

#endif /* TAILOR_CORRELATE_LOSSES_H */
