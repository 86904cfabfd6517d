/* SPDX-License-Identifier: Apache-2.0 */
/* Which process was at a server when: a timeline is made after its request, and servers restart in between. Pure. */
#ifndef TAILOR_OBSERVER_PRESENCE_H
#define TAILOR_OBSERVER_PRESENCE_H

#include <stdint.h>
#include <sys/types.h>

#define TAILOR_PRESENCE_CHANGES 8

/* Zero at first: nothing is known. */
struct tailor_presence {
	struct {
		pid_t pid; /* 0: nobody, or not known who */
		uint64_t since_ns;
	} change[TAILOR_PRESENCE_CHANGES]; /* oldest first */
	unsigned int changes;
};

/* From now_ns on it is this process, 0 for none; the oldest change is forgotten for it. now_ns never goes back. */
void tailor_presence_note(struct tailor_presence *presence, pid_t pid, uint64_t now_ns);

/* Who it was at that time; 0 when nobody, not known, or before all that is remembered. */
pid_t tailor_presence_at(const struct tailor_presence *presence, uint64_t time_ns);

/* Who it is; 0 as above. */
pid_t tailor_presence_now(const struct tailor_presence *presence);

#endif /* TAILOR_OBSERVER_PRESENCE_H */
