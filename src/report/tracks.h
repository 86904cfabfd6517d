/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the slices of a trace go: each span on the track of what it waited for. Slices of one track follow each other or lie
 * inside each other; requests overlap, so a track has as many lanes as it needs, each a track of the same name.
 */
#ifndef TAILOR_REPORT_TRACKS_H
#define TAILOR_REPORT_TRACKS_H

#include <tailor/timeline.h>

enum track_kind {
	TRACK_CLIENT,
	TRACK_PROXY,
	TRACK_NETWORK,
	TRACK_SERVER, /* at the server, no thread known to work on it */
	TRACK_THREAD,
	TRACK_RUN_QUEUE,
	TRACK_BLOCKED,
	TRACK_FAULTS,
	TRACK_MACHINE,
	TRACK_GC,
	TRACK_SAFEPOINT,
	TRACK_UNEXPLAINED,
	TRACK_PROCESS, /* of a server; holds no slices, but tracks */
};

struct track {
	enum track_kind kind;
	uint32_t pid; /* of threads, processes, gc and safepoints */
	uint32_t tid; /* of threads */
	unsigned int lane;
	uint64_t busy_until_ns;
	const struct tailor_timeline *timeline; /* where its names are from */
	const struct tailor_span *span;         /* NULL for the client's */
	size_t next;                            /* of the same hash, + 1 */
};

/* Zero is none. A track's identity in the trace is its index + 1. */
struct tracks {
	struct track *tracks;
	size_t count;
	size_t capacity;
	size_t buckets[1024];
};

/* One slice: a request's on the client's track (span NULL), or a span's. */
struct slice {
	const struct tailor_timeline *timeline;
	const struct tailor_span *span;
	uint64_t start_ns;
	uint64_t end_ns;
	size_t track; /* index */
};

/*
 * All slices of the timelines, by start, each with its track. Begin times of the timelines may be in any order; all of one boot.
 * Returns 0 or -ENOMEM. The caller frees *ret_slices and tracks->tracks; both point into the timelines.
 */
int tracks_assign(struct tracks *tracks, const struct tailor_timeline *timelines, size_t count, struct slice **ret_slices,
                  size_t *ret_count);

/* The index of the track of a process, or -1. */
long tracks_process(const struct tracks *tracks, uint32_t pid);

#endif /* TAILOR_REPORT_TRACKS_H */
