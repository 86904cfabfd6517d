/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_owner.h"

#include "proxy/pause.h"

const struct worker *ring_owner_of(struct tailor_ring *const *ring)
{
	return (const struct worker *)(const void *)((const char *)ring - offsetof(struct worker, ring));
}

bool ring_owner_misses_stop(const struct worker *worker)
{
	return pause_changed(worker);
}
