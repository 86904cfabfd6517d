/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk backward along the critical path in the server. At each moment one thread is the one that the response waits
 * for; where it was blocked, the walk goes on with the thread that woke it.
 */
#ifndef TAILOR_CORRELATE_PATH_H
#define TAILOR_CORRELATE_PATH_H

#include "correlate/index.h"
#include "correlate/overlays.h"
#include "correlate/pauses.h"
#include "correlate/schedule.h"
#include "correlate/spans.h"
#include "correlate/traffic.h"
#include "correlate/stalls.h"
#include "correlate/wire.h"

/* Waits inside waits that are followed; a longer chain is left unexplained. */
#define PATH_RETURNS_MAX 32

/* A thread of the request that waits for another one from out_ns on: where to go on if that other one only held it up.
 */
struct path_return {
	struct cursor thread; /* just before it was switched out */
	uint64_t out_ns;
	uint64_t waker_request; /* what the waker was bound to; 0 nothing */
	uint32_t waker_tid;
	uint32_t wakeup_event; /* that ended the wait */
	uint16_t call; /* that it waits in, 0 unknown */
	size_t first_span; /* spans from here on explain the wait */
};

struct path {
	/* Set by the caller. */
	const struct thread_index *index;
	const struct pauses *pauses;
	struct traffic *traffic;
	const struct overlays *overlays;
	const struct stalls *stalls;
	struct span_list *spans;
	const struct wire *wire;
	uint32_t server_pid;
	uint32_t proxy_pid;
	uint64_t doubt_from_ns; /* from here on a wait may be the client's doing; 0: none is */
	uint64_t floor_ns; /* the walk ends here at the latest: the request was not at the server before */

	/* Set by path_walk(). */
	struct cursor cursor;
	uint32_t writer_tid; /* whose write ended it */
	uint64_t now_ns;     /* all later time is cut */
	uint64_t receive_ns; /* 0: not recorded */
	uint8_t received;    /* now_ns is at or before the receive */
	uint8_t handed;      /* another thread worked on the request */
	uint8_t inferred;    /* a link of the path is not proved by a wake-up */
	const struct thread_events *alone; /* of the threads that worked while nobody else's request was there, the first; NULL none did */
	uint64_t behind;     /* the request that the receiving thread was busy with before this one, 0 none */
	uint64_t busy_from_ns;
	uint64_t busy_until_ns;
	struct cursor before_busy;
	uint32_t returns_count;
	struct path_return returns[PATH_RETURNS_MAX];
};

/*
 * Cuts [floor_ns, end_ns] into spans, back from the thread of `tid`, which was on a CPU at end_ns (its events up to
 * window event `event` are looked at).
 */
void path_walk(struct path *path, uint32_t tid, uint32_t event, uint64_t end_ns);

/* Cuts [from_ns, to_ns] by what one thread did, which worked for the request all the time; its waits are not followed. */
void path_cover(struct path *path, uint32_t tid, uint64_t from_ns, uint64_t to_ns);

/* For those that tell parts of a walk: a span to copy, of the thread that the walk is on. */
struct tailor_span path_template(const struct path *path, enum tailor_cause cause);

/* Adds [from_ns, path->now_ns] like the span, a time in which the thread had no CPU, but for what stopped all threads in it. */
void path_add_off_cpu(const struct path *path, uint64_t from_ns, const struct tailor_span *span);

#endif /* TAILOR_CORRELATE_PATH_H */
