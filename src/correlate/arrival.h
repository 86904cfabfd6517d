/* SPDX-License-Identifier: Apache-2.0 */
/* The walk before the receive: the request is in the socket or on its way to it, and the thread that will read it has its own affairs. */
#ifndef TAILOR_CORRELATE_ARRIVAL_H
#define TAILOR_CORRELATE_ARRIVAL_H

#include "correlate/path.h"

/* The thread was on a CPU down to low_ns: it was to read the request, or had not come to it yet. */
void arrival_add_work(struct path *path, const struct stretch *stretch, uint64_t low_ns);

/* It waited, and no thread of the server ended that. Returns the floor, down to which all is told then. */
uint64_t arrival_pass_wait(struct path *path, const struct stretch *stretch);

/* It served path->behind: the walk goes on before that. */
void arrival_pass_busy(struct path *path);

#endif /* TAILOR_CORRELATE_ARRIVAL_H */
