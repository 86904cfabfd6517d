/* SPDX-License-Identifier: Apache-2.0 */
/* Whole servers: their JVMs' pages and pauses, their failures, their beginning and end. */
#include "server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

struct server servers[TAILOR_PROXY_SERVERS_MAX];
struct serving *servings;
bool server_is_calm;

bool server_faulty(unsigned int per_mille)
{
	return !server_is_calm && world_below(1000000) < (uint64_t)world.server_faults * per_mille;
}

/* As the agent does it: the state first, then whoever sleeps. */
static void set_state(struct server *server, enum tailor_jvm_state state)
{
	server->page->state = TAILOR_JVM_STATE(state, world.now_ns);
	for (unsigned int i = 0; i < TAILOR_JVM_WAKERS; i++) {
		if (server->page->waker[i].sleeping)
			kernel_event_add(server->wakers[i], 1);
	}
}

static void pause_end(void *object, uint64_t unused);

static void pause_begin(void *object, uint64_t unused)
{
	struct server *server = object;
	uint64_t length_ns = world_chance(100) ? world_between(50, 400) * MS : world_between(100, 20000) * US;

	(void)unused;
	if (server_is_calm)
		return;
	server->paused = true;
	server->resume_ns = world.now_ns + length_ns + 20 * US;
	server->page->pauses++;
	world_log("server %u stops for %" PRIu64 " us", (unsigned int)(server - servers), length_ns / US);
	set_state(server, TAILOR_JVM_COLLECTING);
	world_later(length_ns, pause_end, server, 0);
}

static void runs_again(void *object, uint64_t unused)
{
	(void)unused;
	((struct server *)object)->paused = false;
}

static void pause_end(void *object, uint64_t unused)
{
	struct server *server = object;

	(void)unused;
	set_state(server, TAILOR_JVM_RUNNING);
	world_later(20 * US, runs_again, server, 0);
	world_later(world_between(1, world_chance(500) ? 10 : 100) * MS, pause_begin, server, 0);
}

static void crash_end(void *object, uint64_t unused)
{
	struct server *server = object;

	(void)unused;
	server->refuses = server->silent_to_connects = false;
}

/* A server dies with all its connections, or is only cut off for new ones, and comes back. */
static void crash(void *object, uint64_t unused)
{
	struct server *server = object;
	unsigned int index = (unsigned int)(server - servers);

	(void)unused;
	if (server_is_calm)
		return;
	if (world_below(1000) < (uint64_t)world.server_faults * 5) {
		server->refuses = true;
		server->silent_to_connects = world_chance(300);
		world_log("server %u is gone", index);
		if (world_chance(600)) {
			for (struct serving *serving = servings; serving; serving = serving->next) {
				if (serving->server != index || serving->gone)
					continue;
				wire_reset(serving->wire);
				server_gone(serving);
			}
		}
		world_later(world_between(1, 1500) * MS, crash_end, server, 0);
	}
	world_later(world_between(20, 3000) * MS, crash, server, 0);
}

void server_open(void)
{
	server_ports_begin((uint16_t)world_between(20000, 60000));
	server_is_calm = false;
	for (unsigned int i = 0; i < world.options.servers; i++) {
		struct server *server = &servers[i];

		*server = (struct server){0};
		server->page = aligned_alloc(4096, 4096);
		world_check(server->page, "out of memory");
		memset(server->page, 0, 4096);
		for (unsigned int w = 0; w < TAILOR_JVM_WAKERS; w++)
			server->wakers[w] = kernel_descriptor_new(DESCRIPTOR_EVENT);
		server->change_ns = world.now_ns + world_below(5) * MS;
		world_later(world_between(1, 50) * MS, pause_begin, server, 0);
		world_later(world_between(1, 3000) * MS, crash, server, 0);
	}
}

void server_turn(void)
{
	for (unsigned int i = 0; i < world.options.servers; i++) {
		struct server *server = &servers[i];

		if (world.now_ns < server->change_ns)
			continue;
		if (server->attached && world_chance(300)) {
			server->attached = false;
			tailor_proxy_jvm_detach(world.proxy, i);
			server->change_ns = world.now_ns + world_below(50) * MS;
		} else {
			/* Also in the place of the one that is there. */
			server->attached = false;
			tailor_proxy_jvm_attach(world.proxy, i, server->page, server->wakers);
			server->attached = true;
			server->change_ns = world.now_ns + world_between(100, 20000) * MS;
		}
		if (world_chance(300))
			(void)tailor_proxy_swap(world.proxy);
	}
}

bool server_collects(unsigned int server, bool known)
{
	return TAILOR_JVM_STATE_OF(servers[server].page->state) == TAILOR_JVM_COLLECTING &&
	       (servers[server].attached || !known);
}

void server_calm(void)
{
	server_is_calm = true;
	for (unsigned int i = 0; i < world.options.servers; i++)
		servers[i].refuses = servers[i].silent_to_connects = false;
}

unsigned int server_connections(unsigned int server)
{
	unsigned int count = 0;

	for (const struct serving *serving = servings; serving; serving = serving->next)
		count += serving->server == server && !serving->wire->proxy_closed;
	return count;
}

void server_close(void)
{
	for (unsigned int i = 0; i < world.options.servers; i++) {
		for (unsigned int w = 0; w < TAILOR_JVM_WAKERS; w++)
			kernel_close(servers[i].wakers[w]);
		free(servers[i].page);
	}
	while (servings) {
		struct serving *serving = servings;

		servings = serving->next;
		free(serving->in);
		free(serving->out.data);
		free(serving);
	}
}
