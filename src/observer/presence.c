/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/presence.h"

#include <string.h>

void tailor_presence_note(struct tailor_presence *presence, pid_t pid, uint64_t now_ns)
{
	if (presence->changes == TAILOR_PRESENCE_CHANGES) {
		presence->changes--;
		memmove(&presence->change[0], &presence->change[1], presence->changes * sizeof(presence->change[0]));
	}
	presence->change[presence->changes].pid = pid;
	presence->change[presence->changes].since_ns = now_ns;
	presence->changes++;
}

pid_t tailor_presence_at(const struct tailor_presence *presence, uint64_t time_ns)
{
	for (unsigned int i = presence->changes; i-- > 0;) {
		if (presence->change[i].since_ns <= time_ns)
			return presence->change[i].pid;
	}
	return 0;
}

pid_t tailor_presence_now(const struct tailor_presence *presence)
{
	return tailor_presence_at(presence, UINT64_MAX);
}
