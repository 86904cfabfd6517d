/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "report/tracks.h"

static enum track_kind kind_of(const struct tailor_span *span)
{
	switch (span->cause) {
	case TAILOR_CAUSE_SLOW_CLIENT: return TRACK_CLIENT;
	case TAILOR_CAUSE_PROXY:
	case TAILOR_CAUSE_PROXY_RUN_QUEUE:
	case TAILOR_CAUSE_PROXY_STOPPED:
	case TAILOR_CAUSE_CONNECTION_WAIT:
	case TAILOR_CAUSE_LIMIT_WAIT:
	case TAILOR_CAUSE_FAILOVER_WAIT: return TRACK_PROXY;
	case TAILOR_CAUSE_REQUEST_TRANSIT:
	case TAILOR_CAUSE_RESPONSE_BUFFERED:
	case TAILOR_CAUSE_RETRANSMISSION:
	case TAILOR_CAUSE_RESPONSE_TRANSIT: return TRACK_NETWORK;
	case TAILOR_CAUSE_SERVER_QUEUE: return TRACK_SERVER;
	case TAILOR_CAUSE_SERVER:
	case TAILOR_CAUSE_ON_CPU:
	case TAILOR_CAUSE_CLASS_LOADING: return span->tid ? TRACK_THREAD : TRACK_SERVER;
	case TAILOR_CAUSE_RUN_QUEUE:
	case TAILOR_CAUSE_PREEMPTED:
	case TAILOR_CAUSE_THROTTLED: return TRACK_RUN_QUEUE;
	case TAILOR_CAUSE_BLOCKED_LOCK:
	case TAILOR_CAUSE_BLOCKED_IO:
	case TAILOR_CAUSE_BLOCKED_SLEEP:
	case TAILOR_CAUSE_BLOCKED_NETWORK:
	case TAILOR_CAUSE_STOPPED: return TRACK_BLOCKED;
	case TAILOR_CAUSE_PAGE_FAULT_MINOR:
	case TAILOR_CAUSE_PAGE_FAULT_MAJOR: return TRACK_FAULTS;
	case TAILOR_CAUSE_MACHINE_STOPPED:
	case TAILOR_CAUSE_INTERRUPTS: return TRACK_MACHINE;
	case TAILOR_CAUSE_GC: return TRACK_GC;
	case TAILOR_CAUSE_TIME_TO_SAFEPOINT:
	case TAILOR_CAUSE_SAFEPOINT: return TRACK_SAFEPOINT;
	case TAILOR_CAUSE_UNEXPLAINED:
	case TAILOR_CAUSES: break;
	}
	return TRACK_UNEXPLAINED;
}

static size_t bucket_of(enum track_kind kind, uint32_t pid, uint32_t tid)
{
	return (((size_t)pid * 31 + tid) * 31 + kind) % (sizeof(((struct tracks *)NULL)->buckets) / sizeof(size_t));
}

static long add(struct tracks *tracks, const struct track *track)
{
	size_t bucket = bucket_of(track->kind, track->pid, track->tid);

	if (tracks->count == tracks->capacity) {
		size_t capacity = tracks->capacity ? tracks->capacity * 2 : 64;
		struct track *more = reallocarray(tracks->tracks, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		tracks->tracks = more;
		tracks->capacity = capacity;
	}
	tracks->tracks[tracks->count] = *track;
	tracks->tracks[tracks->count].next = tracks->buckets[bucket];
	tracks->buckets[bucket] = tracks->count + 1;
	return (long)tracks->count++;
}

/* The lane that is free from start_ns on and was used last, so that few are needed; or one more. */
static long lane(struct tracks *tracks, struct track wanted, uint64_t start_ns)
{
	size_t at = tracks->buckets[bucket_of(wanted.kind, wanted.pid, wanted.tid)];
	long best = -1;

	for (; at; at = tracks->tracks[at - 1].next) {
		const struct track *track = &tracks->tracks[at - 1];

		if (track->kind != wanted.kind || track->pid != wanted.pid || track->tid != wanted.tid)
			continue;
		wanted.lane++;
		if (track->busy_until_ns <= start_ns && (best < 0 || track->lane < tracks->tracks[best].lane))
			best = (long)(at - 1);
	}
	return best >= 0 ? best : add(tracks, &wanted);
}

long tracks_process(const struct tracks *tracks, uint32_t pid)
{
	size_t at = tracks->buckets[bucket_of(TRACK_PROCESS, pid, 0)];

	for (; at; at = tracks->tracks[at - 1].next) {
		const struct track *track = &tracks->tracks[at - 1];

		if (track->kind == TRACK_PROCESS && track->pid == pid)
			return (long)(at - 1);
	}
	return -1;
}

static int assign(struct tracks *tracks, struct slice *slice)
{
	struct track wanted = {.kind = slice->span ? kind_of(slice->span) : TRACK_CLIENT,
	                       .timeline = slice->timeline,
	                       .span = slice->span};
	long index;

	if (wanted.kind == TRACK_THREAD || wanted.kind == TRACK_GC || wanted.kind == TRACK_SAFEPOINT)
		wanted.pid = slice->span->pid;
	if (wanted.kind == TRACK_THREAD)
		wanted.tid = slice->span->tid;
	if (wanted.pid && tracks_process(tracks, wanted.pid) < 0) {
		struct track process = {.kind = TRACK_PROCESS, .pid = wanted.pid, .timeline = slice->timeline, .span = slice->span};

		if (add(tracks, &process) < 0)
			return -ENOMEM;
	}
	index = lane(tracks, wanted, slice->start_ns);
	if (index < 0)
		return -ENOMEM;
	/* Even a slice without length has its moment to itself. */
	tracks->tracks[index].busy_until_ns = slice->end_ns > slice->start_ns ? slice->end_ns : slice->start_ns + 1;
	slice->track = (size_t)index;
	return 0;
}

/* By start; a request before its spans, so that these lie in it. */
static int by_start(const void *a, const void *b)
{
	const struct slice *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	if (left->timeline != right->timeline)
		return left->timeline < right->timeline ? -1 : 1;
	return (left->span > right->span) - (left->span < right->span);
}

int tracks_assign(struct tracks *tracks, const struct tailor_timeline *timelines, size_t count, struct slice **ret_slices,
                  size_t *ret_count)
{
	size_t slices_count = 0, total = 0, *lanes = calloc(count + 1, sizeof(*lanes));
	struct slice *slices;
	int error = 0;

	for (size_t i = 0; i < count; i++)
		total += 1 + timelines[i].span_count;
	slices = calloc(total + 1, sizeof(*slices));
	if (!slices || !lanes) {
		free(slices);
		free(lanes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		slices[slices_count++] = (struct slice){&timelines[i], NULL, timelines[i].request.begin_ns,
		                                        timelines[i].request.end_ns, 0};
		for (size_t span = 0; span < timelines[i].span_count; span++)
			slices[slices_count++] = (struct slice){&timelines[i], &timelines[i].spans[span],
			                                        timelines[i].spans[span].start_ns,
			                                        timelines[i].spans[span].end_ns, 0};
	}
	if (slices_count > 0)
		qsort(slices, slices_count, sizeof(*slices), by_start);
	for (size_t i = 0; i < slices_count && !error; i++) {
		size_t request = (size_t)(slices[i].timeline - timelines);

		/* A slow client's span lies inside its request's slice, on the same lane. */
		if (slices[i].span && kind_of(slices[i].span) == TRACK_CLIENT) {
			slices[i].track = lanes[request];
			continue;
		}
		error = assign(tracks, &slices[i]);
		if (!slices[i].span)
			lanes[request] = slices[i].track;
	}
	free(lanes);
	*ret_slices = slices;
	*ret_count = slices_count;
	return error;
}
