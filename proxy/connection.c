/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection.h"

#include <assert.h>
#include <errno.h>

void connection_settle(struct worker *worker, struct connection *connection)
{
	if (!connection->closing || connection->operations || connection->cancels || connection->holds)
		return;
	if (connection->fd >= 0) {
		int fd = connection->fd;

		connection->fd = -1;
		tailor_ring_close_fd(worker->ring, fd, connection_begin(connection, OPERATION_CLOSE));
	}
}

/* What comes next goes into own memory, as far as there is room for it. */
static void stop_receiving(struct worker *worker, struct connection *connection, struct input *input)
{
	input->own = true;
	if (!connection->multishot || connection->stopped)
		return;
	connection->stopped = connection->stopping = true;
	connection->cancels++;
	tailor_ring_cancel(worker->ring, connection_token(connection, OPERATION_RECEIVE),
	                   connection_token(connection, OPERATION_CANCEL));
}

bool connection_receive(struct worker *worker, struct connection *connection, struct input *input, bool expected)
{
	uint32_t room;
	uint64_t token;

	if (input_waits(input)) {
		stop_receiving(worker, connection, input);
		return false;
	}
	if (connection_has(connection, OPERATION_RECEIVE)) {
		if (input->own)
			stop_receiving(worker, connection, input);
		return true;
	}
	if (connection->stopping)
		return true;
	/* When slow clients hold many of the ring's buffers, asking for one would most likely be in vain. */
	if (!input->own && worker->lent_count < INPUT_BUFFERS / 2) {
		connection->multishot = true;
		tailor_ring_receive_multishot(worker->ring, connection->fd,
		                              connection_begin(connection, OPERATION_RECEIVE));
		return true;
	}
	room = input_room(worker, input);
	if (room == 0)
		return false;
	input->filling = true;
	token = connection_begin(connection, OPERATION_RECEIVE);
	(expected ? tailor_ring_receive : tailor_ring_receive_later)(worker->ring, connection->fd,
	                                                             input->data + input->end, room, token);
	return true;
}

bool connection_received(struct worker *worker, struct connection *connection, struct input *input,
                         const struct tailor_completion *completion)
{
	bool multishot = connection->multishot;

	if (!(completion->flags & TAILOR_RING_MORE))
		connection->multishot = connection->stopped = false;
	if (completion->flags & TAILOR_RING_BUFFER) {
		if (completion->result > 0 && !connection->closing)
			input_lend(worker, input, completion->buffer, (uint32_t)completion->result);
		else
			tailor_ring_buffer_return(worker->ring, completion->buffer);
		/* Whatever becomes of the bytes: nobody fills more of everybody's buffers than he can be stopped from. */
		if (input_waits(input))
			stop_receiving(worker, connection, input);
	} else if (input->filling) {
		input->filling = false;
		if (completion->result > 0)
			input->end += (uint32_t)completion->result;
	}
	if (!multishot || (completion->result != -ENOBUFS && completion->result != -ECANCELED))
		return true;
	/* Memory of its own is there for each. */
	if (completion->result == -ENOBUFS)
		input->own = true;
	return false;
}

void connection_close(struct worker *worker, struct connection *connection)
{
	if (connection->closing)
		return;
	connection->closing = true;
	wheel_remove(&worker->wheel, &connection->alarm);
	for (unsigned int operation = OPERATION_RECEIVE; operation <= OPERATION_CONNECT; operation++) {
		if (!connection_has(connection, (enum operation)operation))
			continue;
		connection->cancels++;
		tailor_ring_cancel(worker->ring, connection_token(connection, (enum operation)operation),
		                   connection_token(connection, OPERATION_CANCEL));
	}
	connection_settle(worker, connection);
}

void connection_unhold(struct worker *worker, struct connection *connection)
{
	assert(connection->holds > 0);
	connection->holds--;
	connection_settle(worker, connection);
}
