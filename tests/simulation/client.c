/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of all manners. What they ask is in traffic.c's table before its first byte is written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "kernel.h"

/* Nobody waits longer than all the proxy's deadlines together take. */
#define PATIENCE_NS (40 * TAILOR_NS_PER_S)

static struct client *clients;
static unsigned int living, concurrency;

static void run(void *object);
static void next_client(void *object, uint64_t unused);

static void run_later(void *object, uint64_t unused)
{
	struct client *client = object;

	(void)unused;
	client->waiting = false;
	run(client);
}

static void later(struct client *client, uint64_t delay_ns)
{
	if (client->waiting || client->gone)
		return;
	client->waiting = true;
	world_later(delay_ns, run_later, client, 0);
}

/* From here on the proxy may give up on all that is not answered; the last answer may not have been counted yet. */
static void cause(struct client *client)
{
	for (unsigned int i = client->answered > 0 ? client->answered - 1 : 0; i < client->made; i++)
		traffic_request(client->request[i])->client_cause = true;
}

static void gone(struct client *client)
{
	client->gone = true;
	living--;
	reply_free(&client->reply);
	free(client->out.data);
	client->out.data = NULL;
	client->wire->owner = NULL;
	world_later(world_delay(), next_client, NULL, 0);
}

static void leave(struct client *client, bool reset)
{
	bool behind = client->ending;

	for (unsigned int i = client->answered; i < client->made; i++) {
		struct request *request = traffic_request(client->request[i]);

		request->outcome = i == client->answered && client->reply.bytes > 0 && !behind ? OUTCOME_BROKEN : OUTCOME_NOTHING;
		request->behind_close = behind;
		request->at_stop = world.stopping;
		if (request->outcome == OUTCOME_BROKEN) {
			request->id = client->reply.id;
			request->status = client->reply.status;
		}
		/* One broken answer ends them all. */
		behind = true;
		if (client->wire->kernel_fault || client->wire->bytes_lost || client->wire->turned_away)
			request->client_cause = true;
	}
	if (client->wire->kernel_fault)
		cause(client);
	if (reset)
		wire_reset(client->wire);
	else
		wire_close(client->wire);
	world_log("client %u leaves%s, %u of %u answered", client->wire->port, reset ? " with a reset" : "",
	          client->answered, client->made);
	gone(client);
}

static void finish_reply(struct client *client)
{
	struct reply *reply = &client->reply;

	world_check(client->answered < client->made || (reply->refused && (reply->status == 503 || reply->status == 429) && reply->id == 0),
	            "an answer (%u) that nobody asked for", reply->status);
	if (client->answered < client->made) {
		struct request *request = traffic_request(client->request[client->answered++]);

		request->outcome = reply->refused ? OUTCOME_REFUSED : OUTCOME_WHOLE;
		request->status = reply->status;
		request->answer = reply->answer;
		request->id = reply->id;
		request->reply_bytes = reply->bytes;
		request->close_announced = reply->close;
		request->connection_refused = reply->id == 0;
		if (!request->written && !client->ending)
			world_check(reply->close || request->hostile, "request %u is not written and its connection goes on",
			            request->number);
		world_log("client %u: request %u is answered, %s %u, %" PRIu64 " bytes%s", client->wire->port,
		          request->number, reply->refused ? "refused" : "status", reply->status, reply->bytes,
		          reply->close ? ", close" : "");
	}
	client->ending = reply->close;
	client->think_until_ns = world.now_ns + world_delay();
	reply_begin(reply);
}

static struct request *expected(struct client *client)
{
	return client->answered < client->made ? traffic_request(client->request[client->answered]) : NULL;
}

/* Returns false when the client has left. */
static bool read_some(struct client *client)
{
	char buffer[16384];
	size_t most = client->reads_slowly ? world_between(1, 6000) : sizeof(buffer), got;

	if (world.now_ns < client->read_stalled_until_ns) {
		if (client->wire->proxy_closed) {
			leave(client, true);
			return false;
		}
		if (client->read_stalled_until_ns != UINT64_MAX)
			later(client, client->read_stalled_until_ns - world.now_ns);
		return true;
	}
	while ((got = wire_read(client->wire, buffer, most)) > 0) {
		size_t taken = 0;

		client->progress_ns = world.now_ns;
		client->read += got;
		while (taken < got) {
			world_check(!client->ending, "bytes behind the answer that ended the connection");
			taken += reply_take(&client->reply, expected(client), buffer + taken, got - taken);
			if (client->reply.done)
				finish_reply(client);
		}
		if (client->read >= client->abort_read) {
			cause(client);
			leave(client, client->resets);
			return false;
		}
		if (client->read >= client->stall_read) {
			client->stall_read = UINT64_MAX;
			cause(client);
			/* Some never read again. */
			client->read_stalled_until_ns = UINT64_MAX;
			if (world_chance(500)) {
				client->read_stalled_until_ns = world.now_ns + world_between(1, 3) * world.options.idle_timeout_ns;
				later(client, client->read_stalled_until_ns - world.now_ns);
			} else {
				later(client, 1); /* the proxy may have closed already */
			}
			return true;
		}
		if (client->reads_slowly) {
			later(client, world_between(1, 500) * US);
			return true;
		}
	}
	if (wire_ended(client->wire) && client->wire->out.length == 0) {
		if (reply_end(&client->reply, expected(client), !client->wire->out.reset))
			finish_reply(client);
		leave(client, false);
		return false;
	}
	return true;
}

static void mark_written(struct client *client)
{
	for (unsigned int i = client->answered; i < client->made && client->written >= client->end[i]; i++)
		traffic_request(client->request[i])->written = true;
	if (client->out_at == client->out.length)
		client->out_at = client->out.length = 0;
}

static bool may_write(struct client *client, size_t *ret_most)
{
	size_t most = client->out.length - client->out_at;

	if (world.now_ns < client->stalled_until_ns) {
		later(client, client->stalled_until_ns - world.now_ns);
		return false;
	}
	if (client->hold_at != SIZE_MAX) {
		if (client->reply.continued || (client->hold_until_ns != 0 && world.now_ns >= client->hold_until_ns))
			client->hold_at = SIZE_MAX;
		else if (client->out_at < client->hold_at)
			most = client->hold_at - client->out_at;
		else {
			if (client->hold_until_ns == 0)
				client->hold_until_ns = world.now_ns + world_between(1, 300) * MS;
			later(client, client->hold_until_ns - world.now_ns);
			return false;
		}
	}
	if (client->writes_slowly && most > 100)
		most = world_between(100, most < 20000 ? most : 20000);
	*ret_most = most;
	return most > 0;
}

static bool write_some(struct client *client)
{
	size_t most, done;

	if (!may_write(client, &most))
		return true;
	done = wire_write(client->wire, client->out.data + client->out_at, most);
	world_log("client %u: writes %zu of %zu", client->wire->port, done, most);
	client->out_at += done;
	client->written += done;
	if (done > 0)
		client->progress_ns = world.now_ns;
	mark_written(client);
	if (client->written >= client->abort_written) {
		cause(client);
		if (client->only_fin) {
			/* Says that nothing more comes, in the middle of whatever it is, and still listens. */
			client->abort_written = UINT64_MAX;
			client->requests = client->made;
			client->out_at = client->out.length = 0;
			client->fin = true;
			wire_fin(client->wire);
			return true;
		}
		leave(client, client->resets);
		return false;
	}
	if (client->written >= client->stall_written) {
		client->stall_written = UINT64_MAX;
		client->stalled_until_ns = world.now_ns + world_between(1, 3) * world.options.idle_timeout_ns;
		cause(client);
	}
	if (client->out_at < client->out.length && wire_room(client->wire) > 0)
		later(client, client->writes_slowly ? world_between(1, 2000) * US : world_delay());
	return true;
}

/* Asks more, or ends. Returns false when the client has left. */
static bool go_on(struct client *client)
{
	bool all_made = client->made == client->requests;

	if (client->ending) {
		/* Some stop at once, some wait until the proxy closes, some talk on. */
		if (client->abandons) {
			if (client->out_at < client->out.length)
				cause(client);
			leave(client, false);
			return false;
		}
		return true;
	}
	if (!all_made && client->made - client->answered < client->depth) {
		if (client->answered > 0 && world.now_ns < client->think_until_ns) {
			later(client, client->think_until_ns - world.now_ns);
		} else {
			while (client->made < client->requests && client->made - client->answered < client->depth) {
				const struct request *made;

				client_make_request(client);
				client->end[client->made - 1] = client->written + client->out.length - client->out_at;
				made = traffic_request(client->request[client->made - 1]);
				if (made->last)
					client->requests = client->made;
				if (made->expects)
					break;
			}
		}
		return true;
	}
	if (all_made && client->out_at == client->out.length) {
		if (client->answered == client->made && !client->lingers) {
			leave(client, false);
			return false;
		}
		if (client->half_closes && !client->fin && client->made > 0) {
			client->fin = true;
			wire_fin(client->wire);
		}
	}
	return true;
}

static void run(void *object)
{
	struct client *client = object;

	if (client->gone)
		return;
	if (!read_some(client) || !go_on(client))
		return;
	if (client->out_at < client->out.length)
		(void)write_some(client);
}

static void watch(void *object, uint64_t unused)
{
	(void)object;
	(void)unused;
	for (const struct client *client = clients; client; client = client->next) {
		if (client->gone || world.now_ns - client->progress_ns < PATIENCE_NS)
			continue;
		world_fail("client %u waits for ever: %u made, %u answered, written %zu of %zu", client->wire->port,
		           client->made, client->answered, client->out_at, client->out.length);
	}
	if (living > 0 || traffic_requests() < world.exchanges_max)
		world_later(5 * TAILOR_NS_PER_S, watch, NULL, 0);
}

static void set_manners(struct client *client)
{
	unsigned int faults = world.client_faults;

	client->requests = (unsigned int)world_between(1, world_chance(300) ? 2 : REQUESTS_MAX);
	client->depth = world_chance(250) ? (unsigned int)world_between(2, 6) : 1;
	client->minor = world_chance(100) ? 0 : 1;
	client->keeps = world_chance(500);
	if (client->minor == 0 && !client->keeps)
		client->requests = 1;
	client->half_closes = world_chance(200);
	client->lingers = world_chance(20);
	client->abandons = world_chance(500);
	client->reads_slowly = world_chance(100);
	client->writes_slowly = world_chance(100);
	client->resets = world_chance(500);
	client->only_fin = world_chance(500);
	client->abort_written = client->abort_read = client->stall_written = client->stall_read = UINT64_MAX;
	client->hostile = world_chance(faults);
	if (world_chance(faults))
		client->abort_written = world_below(world_chance(500) ? 500 : 50000);
	if (world_chance(faults))
		client->abort_read = world_below(world_chance(500) ? 500 : 50000);
	if (world_chance(faults / 4))
		client->stall_written = world_below(world_chance(500) ? 500 : 50000);
	if (world_chance(faults / 4))
		client->stall_read = world_below(world_chance(500) ? 500 : 50000);
}

static void next_client(void *object, uint64_t unused)
{
	struct client *client;

	(void)object;
	(void)unused;
	if (world.stopping || living >= concurrency || traffic_requests() >= world.exchanges_max)
		return;
	client = calloc(1, sizeof(*client));
	world_check(client, "out of memory");
	set_manners(client);
	client->hold_at = SIZE_MAX;
	client->progress_ns = world.now_ns;
	client->wire = wire_new(WIRE_CLIENT, run, client);
	client->wire->port = (uint16_t)world_between(1024, 65535);
	/* What it does not read is not to be hidden in the kernel; and some ask on all the same. */
	if (client->stall_read != UINT64_MAX) {
		client->wire->out.size = world_between(100, 2000);
		if (world_chance(500))
			client->depth = 6;
	}
	client->next = clients;
	clients = client;
	living++;
	if (!kernel_knock(client->wire)) {
		gone(client);
		return;
	}
	later(client, world_delay());
	/* At times they come in crowds. */
	world_later(world_chance(200) ? 0 : world_between(10, 2000) * US, next_client, NULL, 0);
}

void client_open(void)
{
	concurrency = (unsigned int)world_between(1, world_chance(500) ? 10 : 60);
	living = 0;
	for (unsigned int i = 0; i < 1 + concurrency / 10; i++)
		world_later(world_delay(), next_client, NULL, 0);
	world_later(5 * TAILOR_NS_PER_S, watch, NULL, 0);
}

bool client_all_done(void)
{
	return living == 0;
}

void client_free_all(void)
{
	while (clients) {
		struct client *client = clients;

		clients = client->next;
		reply_free(&client->reply);
		free(client->out.data);
		free(client);
	}
}
