/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/connection.h"

#include <assert.h>

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
