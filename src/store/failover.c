/* SPDX-License-Identifier: Apache-2.0 */
/* A failover to and from the bytes of a record. */
#include <errno.h>
#include <string.h>
#include <tailor/store.h>

#include "store/message.h"
#include "store/segment.h"

int record_encode_failover(const struct tailor_failover *failover, uint8_t **ret_record, size_t *ret_bytes)
{
	Tailor__Pb__Timeline message = TAILOR__PB__TIMELINE__INIT;
	Tailor__Pb__Failover to = TAILOR__PB__FAILOVER__INIT;

	to.begin_ns = failover->begin_ns;
	to.length_ns = failover->end_ns - failover->begin_ns;
	to.wall_ns = failover->wall_ns;
	to.server = message_text(failover->server, sizeof(failover->server));
	to.cause = message_text(failover->cause, sizeof(failover->cause));
	to.kind = (uint32_t)failover->kind;
	to.noticed = (uint32_t)failover->noticed;
	to.workers = failover->workers;
	to.in_flight = failover->in_flight;
	to.moved = failover->moved;
	to.not_moved = failover->not_moved;
	to.why_not = message_text(failover->why_not, sizeof(failover->why_not));
	to.noticed_ns = failover->noticed_ns;
	to.reacted_ns = failover->reacted_ns;
	to.saved_ns = failover->saved_ns;
	to.saved_requests = failover->saved_requests;
	to.incomplete = failover->incomplete;
	message.failover = &to;
	return message_pack(&message, ret_record, ret_bytes);
}

static enum tailor_stop_kind kind_of(uint32_t value)
{
	return value < TAILOR_STOP_KINDS ? (enum tailor_stop_kind)value : TAILOR_STOP_KINDS;
}

static int decode(const Tailor__Pb__Failover *from, struct tailor_failover *to)
{
	if (from->length_ns > LATENCY_NS_MAX || from->begin_ns > UINT64_MAX - from->length_ns || from->noticed_ns > LATENCY_NS_MAX ||
	    from->reacted_ns > LATENCY_NS_MAX)
		return -EBADMSG;
	/* None can have been answered sooner before the end than it began; and of any, sums are made. */
	if (from->saved_ns > 0 && (from->saved_requests == 0 || from->saved_ns / from->saved_requests > from->length_ns))
		return -EBADMSG;
	*to = (struct tailor_failover){
	        .begin_ns = from->begin_ns,
	        .end_ns = from->begin_ns + from->length_ns,
	        .wall_ns = from->wall_ns,
	        .kind = kind_of(from->kind),
	        .noticed = kind_of(from->noticed),
	        .workers = from->workers,
	        .in_flight = from->in_flight,
	        .moved = from->moved,
	        .not_moved = from->not_moved,
	        .noticed_ns = from->noticed_ns,
	        .reacted_ns = from->reacted_ns,
	        .saved_ns = from->saved_ns,
	        .saved_requests = from->saved_requests,
	        .incomplete = from->incomplete != 0,
	};
	message_copy_text(to->server, sizeof(to->server), &from->server);
	message_copy_text(to->cause, sizeof(to->cause), &from->cause);
	message_copy_text(to->why_not, sizeof(to->why_not), &from->why_not);
	return 0;
}

int record_decode_failover(const uint8_t *bytes, size_t length, struct tailor_failover *ret_failover)
{
	Tailor__Pb__Timeline *message = message_unpack(bytes, length);
	int ret = -EBADMSG;

	memset(ret_failover, 0, sizeof(*ret_failover));
	if (!message)
		return -EBADMSG;
	if (message->request && !message->failover)
		ret = RECORD_OF_OTHER_KIND;
	else if (message->failover && !message->request)
		ret = decode(message->failover, ret_failover);
	message_free(message);
	return ret;
}
