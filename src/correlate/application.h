/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of who worked for a request without any guess: the application's own word (Tailor.begin and end), or the mounts of the
 * virtual thread that received the request and wrote the response. It goes before whatever the kernel's events suggest.
 */
#ifndef TAILOR_CORRELATE_APPLICATION_H
#define TAILOR_CORRELATE_APPLICATION_H

#include "correlate/vthread.h"
#include "correlate/wire.h"

/* A thread worked for the request. */
struct told {
	uint32_t tid;
	uint64_t from_ns;
	uint64_t to_ns;
	size_t outer; /* index + 1 of the last one before it that ended later; 0: none did */
};

enum telling {
	TELLING_NOTHING, /* the kernel's events must do */
	TELLING_WHO,
	TELLING_REFUSED, /* virtual threads that are not known: the kernel's events would mislead */
};

struct testimony {
	enum telling telling;
	uint8_t by_application; /* TELLING_WHO: it is its word */
	uint32_t first_event;   /* TELLING_WHO: index in the window of the event with which the first one began */
	struct told *list; /* by from_ns */
	size_t count;
};

/*
 * Hears what there is between the request's receive and its last write, both recorded, in the JVM `pid`. Returns 0 or -ENOMEM. Freed by
 * testimony_free(), also after an error.
 */
int testimony_hear(struct testimony *testimony, const struct tailor_window *window, const struct wire *wire, uint32_t pid);
void testimony_free(struct testimony *testimony);

/* The one that worked just before time_ns and began last; NULL when none did, then *ret_until_ns is when the last one before that ended,
 * 0 when there was none. */
const struct told *testimony_before(const struct testimony *testimony, uint64_t time_ns, uint64_t *ret_until_ns);

#endif /* TAILOR_CORRELATE_APPLICATION_H */
