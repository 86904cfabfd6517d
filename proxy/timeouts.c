/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/timeouts.h"

void timeouts_complete(struct tailor_proxy_options *options)
{
	if (options->head_timeout_ns == 0)
		options->head_timeout_ns = options->idle_timeout_ns;
	if (options->body_timeout_ns == 0)
		options->body_timeout_ns = options->idle_timeout_ns;
	if (options->queue_timeout_ns == 0)
		options->queue_timeout_ns = options->idle_timeout_ns;
	if (options->keep_alive_timeout_ns == 0)
		options->keep_alive_timeout_ns = options->idle_timeout_ns;
}

static void set_alarm(struct worker *worker, struct client *client)
{
	uint64_t deadline_ns = client->patience_ns;

	if (client->exchange.deadline_ns < deadline_ns)
		deadline_ns = client->exchange.deadline_ns;
	if (client->exchange.queued && client->exchange.queued_until_ns < deadline_ns)
		deadline_ns = client->exchange.queued_until_ns;
	wheel_set(&worker->wheel, &client->connection.alarm, deadline_ns);
}

void timeouts_wait(struct worker *worker, struct client *client, uint64_t after_ns)
{
	/* Whoever waits for whom: as long as anything moves, it lives. */
	if (client->exchange.tunnel)
		after_ns = worker->options->idle_timeout_ns;
	client->patience_ns = after_ns == UINT64_MAX ? UINT64_MAX : worker->now_ns + after_ns;
	set_alarm(worker, client);
}

void timeouts_queue(struct worker *worker, struct client *client)
{
	client->exchange.queued_until_ns = worker->now_ns + worker->options->queue_timeout_ns;
	set_alarm(worker, client);
}

enum timeouts_verdict timeouts_judge(struct worker *worker, struct client *client)
{
	if (worker->now_ns >= client->exchange.deadline_ns)
		return TIMEOUTS_REQUEST;
	if (client->exchange.queued && worker->now_ns >= client->exchange.queued_until_ns)
		return TIMEOUTS_QUEUE;
	if (worker->now_ns >= client->patience_ns)
		return TIMEOUTS_PATIENCE;
	set_alarm(worker, client);
	return TIMEOUTS_EARLY;
}
