/* SPDX-License-Identifier: Apache-2.0 */
/* The worker behind a simulated ring, of which the ring knows nothing else. */
#ifndef TAILOR_SIMULATION_RING_OWNER_H
#define TAILOR_SIMULATION_RING_OWNER_H

#include <stdbool.h>

struct tailor_ring;
struct worker;

/* Who opens the ring: a worker opens its own. */
const struct worker *ring_owner_of(struct tailor_ring *const *ring);
/* Whether somebody tells of a stop that it has not looked at. */
bool ring_owner_misses_stop(const struct worker *worker);

#endif /* TAILOR_SIMULATION_RING_OWNER_H */
