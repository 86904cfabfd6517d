/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline to and from the bytes of a record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/event.h>
#include <tailor/store.h>

#include "store/crc32c.h"
#include "store/message.h"
#include "store/segment.h"

static void encode_request(const struct tailor_request *from, Tailor__Pb__Request *to)
{
	tailor__pb__request__init(to);
	to->id = from->id;
	to->begin_ns = from->begin_ns;
	to->latency_ns = from->end_ns - from->begin_ns;
	to->wall_ns = from->wall_ns;
	to->status = from->status;
	to->end = from->end;
	to->attempts = from->attempts;
	to->failover = from->failover;
	to->response_bytes = from->response_bytes;
	to->target = message_text(from->target, sizeof(from->target));
	to->server = message_text(from->server, sizeof(from->server));
}

static void encode_spans(const struct tailor_timeline *timeline, Tailor__Pb__Span *spans, Tailor__Pb__Span **pointers)
{
	for (size_t i = 0; i < timeline->span_count; i++) {
		const struct tailor_span *from = &timeline->spans[i];

		tailor__pb__span__init(&spans[i]);
		spans[i].start_offset_ns = from->start_ns - timeline->request.begin_ns;
		spans[i].duration_ns = from->end_ns - from->start_ns;
		spans[i].cause = (uint32_t)from->cause;
		spans[i].pid = from->pid;
		spans[i].tid = from->tid;
		spans[i].thread = message_text(from->thread, sizeof(from->thread));
		spans[i].detail = message_text(from->detail, sizeof(from->detail));
		pointers[i] = &spans[i];
	}
}

static void encode_losses(const struct tailor_timeline *timeline, Tailor__Pb__Loss *losses, Tailor__Pb__Loss **pointers)
{
	for (size_t i = 0; i < timeline->loss_count; i++) {
		const struct tailor_loss *from = &timeline->losses[i];

		tailor__pb__loss__init(&losses[i]);
		losses[i].channel = message_text(from->channel, sizeof(from->channel));
		losses[i].from_ns = from->from_ns;
		losses[i].to_ns = from->to_ns;
		losses[i].events = from->events;
		pointers[i] = &losses[i];
	}
}

int record_encode(const struct tailor_timeline *timeline, uint8_t **ret_record, size_t *ret_bytes)
{
	Tailor__Pb__Timeline message = TAILOR__PB__TIMELINE__INIT;
	Tailor__Pb__Span *spans = calloc(timeline->span_count + 1, sizeof(*spans));
	Tailor__Pb__Span **span_pointers = calloc(timeline->span_count + 1, sizeof(*span_pointers));
	Tailor__Pb__Loss *losses = calloc(timeline->loss_count + 1, sizeof(*losses));
	Tailor__Pb__Loss **loss_pointers = calloc(timeline->loss_count + 1, sizeof(*loss_pointers));
	Tailor__Pb__Request request;
	int error = -ENOMEM;

	if (spans && span_pointers && losses && loss_pointers) {
		encode_request(&timeline->request, &request);
		encode_spans(timeline, spans, span_pointers);
		encode_losses(timeline, losses, loss_pointers);
		message.request = &request;
		message.kept = (uint32_t)timeline->kept;
		message.dominant = (uint32_t)timeline->dominant;
		message.dominant_ns = timeline->dominant_ns;
		message.join = (uint32_t)timeline->join;
		message.server_ns = timeline->server_ns;
		message.missing = timeline->missing;
		message.omitted = timeline->omitted;
		message.incomplete = timeline->complete < 1000 ? 1000u - timeline->complete : 0;
		message.n_spans = timeline->span_count;
		message.spans = span_pointers;
		message.n_losses = timeline->loss_count;
		message.losses = loss_pointers;
		error = message_pack(&message, ret_record, ret_bytes);
	}
	free(spans);
	free(span_pointers);
	free(losses);
	free(loss_pointers);
	return error;
}

int record_valid(const uint8_t *bytes, size_t available, size_t *ret_bytes)
{
	uint32_t length;

	if (available < RECORD_HEADER_BYTES)
		return 0;
	length = load_u32(bytes);
	/* A message always has a request or a failover in it: a run of zero bytes is no record. */
	if (length == 0 || length > RECORD_BYTES_MAX || length > available - RECORD_HEADER_BYTES)
		return 0;
	if (crc32c(crc32c(0, bytes, 4), bytes + RECORD_HEADER_BYTES, length) != load_u32(bytes + 4))
		return 0;
	*ret_bytes = RECORD_HEADER_BYTES + length;
	return 1;
}

static void decode_request(const Tailor__Pb__Request *from, struct tailor_request *to)
{
	to->id = from->id;
	to->begin_ns = from->begin_ns;
	to->end_ns = from->begin_ns + from->latency_ns;
	to->wall_ns = from->wall_ns;
	to->status = (uint16_t)from->status;
	to->end = from->end <= TAILOR_REQUEST_END_CUT ? (uint8_t)from->end : UINT8_MAX;
	to->attempts = from->attempts < UINT8_MAX ? (uint8_t)from->attempts : UINT8_MAX;
	to->failover = from->failover <= TAILOR_FAILOVER_STALL ? (uint16_t)from->failover : UINT16_MAX;
	to->response_bytes = from->response_bytes;
	message_copy_text(to->target, sizeof(to->target), &from->target);
	message_copy_text(to->server, sizeof(to->server), &from->server);
}

static enum tailor_cause cause_of(uint32_t value)
{
	return value < TAILOR_CAUSES ? (enum tailor_cause)value : TAILOR_CAUSE_UNEXPLAINED;
}

static int decode_lists(const Tailor__Pb__Timeline *message, struct tailor_timeline *timeline)
{
	timeline->spans = calloc(message->n_spans + 1, sizeof(*timeline->spans));
	timeline->losses = calloc(message->n_losses + 1, sizeof(*timeline->losses));
	if (!timeline->spans || !timeline->losses)
		return -ENOMEM;
	timeline->span_count = message->n_spans;
	timeline->loss_count = message->n_losses;
	for (size_t i = 0; i < message->n_spans; i++) {
		const Tailor__Pb__Span *from = message->spans[i];
		struct tailor_span *to = &timeline->spans[i];

		to->start_ns = timeline->request.begin_ns + from->start_offset_ns;
		to->end_ns = to->start_ns + from->duration_ns;
		to->cause = cause_of(from->cause);
		to->pid = from->pid;
		to->tid = from->tid;
		message_copy_text(to->thread, sizeof(to->thread), &from->thread);
		message_copy_text(to->detail, sizeof(to->detail), &from->detail);
	}
	for (size_t i = 0; i < message->n_losses; i++) {
		const Tailor__Pb__Loss *from = message->losses[i];
		struct tailor_loss *to = &timeline->losses[i];

		message_copy_text(to->channel, sizeof(to->channel), &from->channel);
		to->from_ns = from->from_ns;
		to->to_ns = from->to_ns;
		to->events = from->events;
	}
	return 0;
}

static int decode_message(const Tailor__Pb__Timeline *message, struct tailor_timeline *timeline)
{
	if (!message->request || message->n_spans * sizeof(*timeline->spans) > DECODE_BYTES_MAX ||
	    message->n_losses * sizeof(*timeline->losses) > DECODE_BYTES_MAX)
		return -EBADMSG;
	decode_request(message->request, &timeline->request);
	timeline->kept = message->kept == TAILOR_KEPT_BASELINE ? TAILOR_KEPT_BASELINE : TAILOR_KEPT_SLOW;
	timeline->dominant = cause_of(message->dominant);
	timeline->dominant_ns = message->dominant_ns;
	timeline->join = message->join <= TAILOR_JOIN_CERTAIN ? (enum tailor_join)message->join : TAILOR_JOIN_NONE;
	timeline->server_ns = message->server_ns;
	timeline->missing = message->missing;
	timeline->omitted = message->omitted;
	timeline->complete = message->incomplete < 1000 ? (uint16_t)(1000 - message->incomplete) : 0;
	return decode_lists(message, timeline);
}

/*
 * Whether the spans cut the request exactly, as whoever wrote them promised (tailor/timeline.h). Sums and shares are made of
 * them, so that others would give wrong answers with a right checksum.
 */
static int cuts_request(const struct tailor_timeline *timeline)
{
	uint64_t at = timeline->request.begin_ns, end = timeline->request.end_ns;

	if (end < at || end - at > LATENCY_NS_MAX)
		return 0;
	for (size_t i = 0; i < timeline->span_count; i++) {
		const struct tailor_span *span = &timeline->spans[i];

		if (span->start_ns != at || span->end_ns < at || (span->end_ns == at && timeline->span_count > 1))
			return 0;
		at = span->end_ns;
	}
	return timeline->span_count > 0 && at == end;
}

int record_decode(const uint8_t *bytes, size_t length, struct tailor_timeline *ret_timeline)
{
	Tailor__Pb__Timeline *message = message_unpack(bytes, length);
	int ret;

	memset(ret_timeline, 0, sizeof(*ret_timeline));
	if (!message)
		return -EBADMSG;
	if (message->failover) {
		ret = message->request ? -EBADMSG : RECORD_OF_OTHER_KIND;
	} else {
		ret = decode_message(message, ret_timeline);
		if (!ret && !cuts_request(ret_timeline))
			ret = -EBADMSG;
	}
	message_free(message);
	if (ret)
		tailor_timeline_free(ret_timeline);
	return ret;
}

void tailor_timeline_free(struct tailor_timeline *timeline)
{
	free(timeline->spans);
	free(timeline->losses);
	timeline->spans = NULL;
	timeline->losses = NULL;
	timeline->span_count = 0;
	timeline->loss_count = 0;
}
