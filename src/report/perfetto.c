/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines as a Perfetto trace: a stream of packets, each framed as field 1 of the message Trace. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/timeline_names.h>

#include "report/report.h"
#include "report/tracks.h"
#include "trace.pb-c.h"

#define SEQUENCE_ID 1
#define CLOCK_REALTIME_ID 1 /* perfetto.protos.BuiltinClock */
#define CLOCK_MONOTONIC_ID 3
#define FLAG_STATE_CLEARED 1
#define TYPE_BEGIN 1 /* TrackEvent.Type */
#define TYPE_END 2
#define TYPE_INSTANT 3
#define ANNOTATIONS_MAX 10
#define WALL_STEP_NS INT64_C(1000000) /* a wall clock that was set is told */

struct annotations {
	Tailor__Trace__Annotation values[ANNOTATIONS_MAX];
	Tailor__Trace__Annotation *pointers[ANNOTATIONS_MAX];
	char texts[ANNOTATIONS_MAX][3 * TAILOR_TARGET_BYTES + 1];
	size_t count;
};

static Tailor__Trace__Annotation *annotate(struct annotations *annotations, const char *name)
{
	Tailor__Trace__Annotation *value = &annotations->values[annotations->count];

	tailor__trace__annotation__init(value);
	value->name = (char *)(uintptr_t)name;
	annotations->pointers[annotations->count++] = value;
	return value;
}

static void annotate_text(struct annotations *annotations, const char *name, const char *text)
{
	char *copy = annotations->texts[annotations->count];
	Tailor__Trace__Annotation *value;

	if (!text[0])
		return;
	tailor_report_utf8(copy, sizeof(annotations->texts[0]), text);
	value = annotate(annotations, name);
	value->value_case = TAILOR__TRACE__ANNOTATION__VALUE_STRING_VALUE;
	value->string_value = copy;
}

static void annotate_number(struct annotations *annotations, const char *name, uint64_t number)
{
	Tailor__Trace__Annotation *value = annotate(annotations, name);

	value->value_case = TAILOR__TRACE__ANNOTATION__VALUE_UINT_VALUE;
	value->uint_value = number;
}

static void annotate_share(struct annotations *annotations, const struct slice *slice)
{
	uint64_t whole = slice->timeline->request.end_ns - slice->timeline->request.begin_ns;
	Tailor__Trace__Annotation *value = annotate(annotations, "share");

	value->value_case = TAILOR__TRACE__ANNOTATION__VALUE_DOUBLE_VALUE;
	value->double_value = whole ? (double)(slice->end_ns - slice->start_ns) / (double)whole : 1;
}

static void annotate_slice(struct annotations *annotations, const struct slice *slice)
{
	const struct tailor_timeline *timeline = slice->timeline;
	char id[17];

	snprintf(id, sizeof(id), "%016" PRIx64, timeline->request.id);
	annotate_text(annotations, "request", id);
	if (slice->span) {
		annotate_text(annotations, "cause", tailor_cause_key(slice->span->cause));
		annotate_text(annotations, "detail", slice->span->detail);
		annotate_text(annotations, "thread", slice->span->thread);
		if (slice->span->tid)
			annotate_number(annotations, "tid", slice->span->tid);
		annotate_share(annotations, slice);
		return;
	}
	annotate_text(annotations, "target", timeline->request.target);
	annotate_number(annotations, "status", timeline->request.status);
	annotate_text(annotations, "server", timeline->request.server);
	annotate_text(annotations, "dominant", tailor_cause_key(timeline->dominant));
	annotate_number(annotations, "dominant_ns", timeline->dominant_ns);
	if (timeline->server_ns)
		annotate_number(annotations, "server_ns", timeline->server_ns);
	annotate_text(annotations, "join", tailor_join_name(timeline->join));
	annotate_text(annotations, "kept", timeline->kept == TAILOR_KEPT_BASELINE ? "baseline" : "slow");
	annotate_number(annotations, "losses", timeline->loss_count);
}

/* Returns 0 or -ENOMEM. */
static int put(FILE *out, Tailor__Trace__Packet *packet)
{
	Tailor__Trace__Packet *packets[] = {packet};
	Tailor__Trace__Trace trace = TAILOR__TRACE__TRACE__INIT;
	uint8_t small[4096], *buffer = small;
	size_t size;

	packet->trusted_packet_sequence_id = SEQUENCE_ID;
	trace.n_packet = 1;
	trace.packet = packets;
	size = tailor__trace__trace__get_packed_size(&trace);
	if (size > sizeof(small))
		buffer = malloc(size);
	if (!buffer)
		return -ENOMEM;
	tailor__trace__trace__pack(&trace, buffer);
	fwrite(buffer, 1, size, out);
	if (buffer != small)
		free(buffer);
	return 0;
}

/* What time it was when: without it a viewer knows the clock's name only. */
static int put_clocks(FILE *out, uint64_t monotonic_ns, uint64_t wall_ns, int first)
{
	Tailor__Trace__ClockSnapshot__Clock clocks[2] = {TAILOR__TRACE__CLOCK_SNAPSHOT__CLOCK__INIT,
	                                                 TAILOR__TRACE__CLOCK_SNAPSHOT__CLOCK__INIT};
	Tailor__Trace__ClockSnapshot__Clock *pointers[] = {&clocks[0], &clocks[1]};
	Tailor__Trace__ClockSnapshot snapshot = TAILOR__TRACE__CLOCK_SNAPSHOT__INIT;
	Tailor__Trace__Packet packet = TAILOR__TRACE__PACKET__INIT;

	clocks[0].clock_id = CLOCK_MONOTONIC_ID;
	clocks[0].timestamp = monotonic_ns;
	clocks[1].clock_id = CLOCK_REALTIME_ID;
	clocks[1].timestamp = wall_ns;
	snapshot.n_clocks = wall_ns ? 2 : 1;
	snapshot.clocks = pointers;
	snapshot.primary_trace_clock = CLOCK_MONOTONIC_ID;
	packet.timestamp = monotonic_ns;
	packet.timestamp_clock_id = CLOCK_MONOTONIC_ID;
	packet.sequence_flags = first ? FLAG_STATE_CLEARED : 0;
	packet.clock_snapshot = &snapshot;
	return put(out, &packet);
}

/* Slices are by start, on the trace's own clock: it never goes back, whatever was done to the other one. */
static int put_all_clocks(FILE *out, const struct slice *slices, size_t count)
{
	uint64_t told = 0;
	int error = 0, first = 1;

	for (size_t i = 0; i < count && !error; i++) {
		const struct tailor_request *request = &slices[i].timeline->request;
		uint64_t offset = request->wall_ns - request->begin_ns;
		int64_t step = (int64_t)(offset - told);

		if (slices[i].span || (!first && (request->wall_ns == 0 || (step < WALL_STEP_NS && step > -WALL_STEP_NS))))
			continue;
		error = put_clocks(out, request->begin_ns, request->wall_ns, first);
		told = offset;
		first = 0;
	}
	return error;
}

static const char *track_name(const struct track *track)
{
	switch (track->kind) {
	case TRACK_CLIENT: return "client";
	case TRACK_PROXY: return "proxy";
	case TRACK_NETWORK: return "kernel: TCP";
	case TRACK_SERVER: return "server";
	case TRACK_THREAD: return "thread";
	case TRACK_RUN_QUEUE: return "kernel: run queue";
	case TRACK_BLOCKED: return "kernel: blocked";
	case TRACK_FAULTS: return "kernel: page faults";
	case TRACK_MACHINE: return "machine";
	case TRACK_GC: return "JVM: gc";
	case TRACK_SAFEPOINT: return "JVM: safepoint";
	case TRACK_UNEXPLAINED: return "unexplained";
	case TRACK_PROCESS: break;
	}
	return "server";
}

static int put_track(FILE *out, const struct tracks *tracks, size_t index)
{
	const struct track *track = &tracks->tracks[index];
	Tailor__Trace__TrackDescriptor descriptor = TAILOR__TRACE__TRACK_DESCRIPTOR__INIT;
	Tailor__Trace__ProcessDescriptor process = TAILOR__TRACE__PROCESS_DESCRIPTOR__INIT;
	Tailor__Trace__ThreadDescriptor thread = TAILOR__TRACE__THREAD_DESCRIPTOR__INIT;
	Tailor__Trace__Packet packet = TAILOR__TRACE__PACKET__INIT;
	char text[3 * TAILOR_THREAD_NAME_BYTES + 16], server[3 * TAILOR_SERVER_NAME_BYTES + 1];
	long parent = track->pid && track->kind != TRACK_PROCESS ? tracks_process(tracks, track->pid) : -1;

	descriptor.uuid = index + 1;
	descriptor.parent_uuid = (uint64_t)(parent + 1);
	descriptor.name = (char *)(uintptr_t)track_name(track);
	if (track->kind == TRACK_PROCESS) {
		snprintf(text, sizeof(text), "server %s",
		         tailor_report_utf8(server, sizeof(server), tailor_report_server(track->timeline, track->span)));
		process.pid = (int32_t)track->pid;
		process.process_name = text;
		descriptor.process = &process;
		descriptor.name = text;
	} else if (track->kind == TRACK_THREAD) {
		tailor_report_utf8(text, sizeof(text), track->span->thread);
		if (!text[0])
			snprintf(text, sizeof(text), "thread %" PRIu32, track->tid);
		descriptor.name = text;
		/* There may be one track that is the thread's; further lanes only bear its name. */
		if (track->lane == 0) {
			thread.pid = (int32_t)track->pid;
			thread.tid = track->tid;
			thread.thread_name = text;
			descriptor.thread = &thread;
			/* It belongs to its process by the pid. */
			descriptor.parent_uuid = 0;
		}
	}
	packet.track_descriptor = &descriptor;
	return put(out, &packet);
}

/* At one moment: what ends first ends before what it lies in, and all that before what begins. What has no length is last. */
enum rank {
	RANK_END,
	RANK_ANSWERED,
	RANK_REQUEST_END,
	RANK_REQUEST_BEGIN,
	RANK_BEGIN,
	RANK_EMPTY_END,
	RANK_EMPTY_ANSWERED,
	RANK_EMPTY_REQUEST_END,
};

struct moment {
	uint64_t ns;
	enum rank rank;
	const struct slice *slice;
	int flow; /* the request's flow passes here */
};

static int by_moment(const void *a, const void *b)
{
	const struct moment *left = a, *right = b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return (left->slice > right->slice) - (left->slice < right->slice);
}

static uint32_t type_of(enum rank rank)
{
	if (rank == RANK_BEGIN || rank == RANK_REQUEST_BEGIN)
		return TYPE_BEGIN;
	return rank == RANK_ANSWERED || rank == RANK_EMPTY_ANSWERED ? TYPE_INSTANT : TYPE_END;
}

static int put_moment(FILE *out, const struct moment *moment, uint64_t flow)
{
	const struct slice *slice = moment->slice;
	char name[3 * TAILOR_TARGET_BYTES + 1], *category = (char *)(uintptr_t)(slice->span ? "span" : "request");
	Tailor__Trace__TrackEvent event = TAILOR__TRACE__TRACK_EVENT__INIT;
	Tailor__Trace__Packet packet = TAILOR__TRACE__PACKET__INIT;
	struct annotations annotations;

	event.type = type_of(moment->rank);
	event.track_uuid = slice->track + 1;
	if (event.type == TYPE_BEGIN) {
		annotations.count = 0;
		annotate_slice(&annotations, slice);
		event.debug_annotations = annotations.pointers;
		event.n_debug_annotations = annotations.count;
		event.name = slice->span ? (char *)(uintptr_t)tailor_cause_name(slice->span->cause)
		                         : tailor_report_utf8(name, sizeof(name), slice->timeline->request.target);
	} else if (event.type == TYPE_INSTANT) {
		event.name = (char *)(uintptr_t) "answered";
	}
	if (event.type != TYPE_END) {
		event.categories = &category;
		event.n_categories = 1;
	}
	if (moment->flow && event.type == TYPE_INSTANT) {
		event.terminating_flow_ids = &flow;
		event.n_terminating_flow_ids = 1;
	} else if (moment->flow) {
		event.flow_ids = &flow;
		event.n_flow_ids = 1;
	}
	packet.timestamp = moment->ns;
	packet.timestamp_clock_id = CLOCK_MONOTONIC_ID;
	packet.track_event = &event;
	return put(out, &packet);
}

/* Begin and end of each slice, and the answer of each request. Returns how many. */
static size_t fill(struct moment *moments, const struct slice *slices, size_t count, const struct tailor_timeline *timelines,
                   size_t *tracks_before)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const struct slice *slice = &slices[i];
		size_t *before = &tracks_before[slice->timeline - timelines];
		int empty = slice->start_ns == slice->end_ns;

		if (!slice->span) {
			moments[used++] = (struct moment){slice->start_ns, RANK_REQUEST_BEGIN, slice, 1};
			moments[used++] =
			        (struct moment){slice->end_ns, empty ? RANK_EMPTY_ANSWERED : RANK_ANSWERED, slice, 1};
			moments[used++] =
			        (struct moment){slice->end_ns, empty ? RANK_EMPTY_REQUEST_END : RANK_REQUEST_END, slice, 0};
		} else {
			/* The flow passes where the request goes on to another track. */
			moments[used++] = (struct moment){slice->start_ns, RANK_BEGIN, slice, *before != slice->track};
			moments[used++] = (struct moment){slice->end_ns, empty ? RANK_EMPTY_END : RANK_END, slice, 0};
		}
		*before = slice->track;
	}
	return used;
}

static int put_all(FILE *out, const struct tailor_timeline *timelines, size_t count, const struct tracks *tracks,
                   const struct slice *slices, size_t slice_count)
{
	struct moment *moments = calloc(3 * slice_count + 1, sizeof(*moments));
	size_t *before = calloc(count + 1, sizeof(*before)), used;
	int error = moments && before ? put_all_clocks(out, slices, slice_count) : -ENOMEM;

	for (size_t i = 0; i < tracks->count && !error; i++)
		error = put_track(out, tracks, i);
	if (!error) {
		used = fill(moments, slices, slice_count, timelines, before);
		if (used > 0)
			qsort(moments, used, sizeof(*moments), by_moment);
		/* Ids of requests are unique, but for a store that was written twice: the place in the trace is. */
		for (size_t i = 0; i < used && !error; i++)
			error = put_moment(out, &moments[i], (uint64_t)(moments[i].slice->timeline - timelines) + 1);
	}
	free(moments);
	free(before);
	return error;
}

int tailor_report_perfetto(FILE *out, const struct tailor_timeline *timelines, size_t count)
{
	struct tracks *tracks = calloc(1, sizeof(*tracks));
	struct slice *slices = NULL;
	size_t slice_count = 0;
	int error = tracks ? tracks_assign(tracks, timelines, count, &slices, &slice_count) : -ENOMEM;

	if (!error)
		error = put_all(out, timelines, count, tracks, slices, slice_count);
	if (tracks)
		free(tracks->tracks);
	free(tracks);
	free(slices);
	return error;
}
