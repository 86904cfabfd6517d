/* SPDX-License-Identifier: Apache-2.0 */
/* Whole servers: their JVMs' pages and pauses, their failures, their beginning and end. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
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

/* What the kernel says of them, and what polls it. */
static struct tailor_stop table[TAILOR_STOP_SERVERS];
static int table_fd;

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
static void stop_begin(void *object, uint64_t unused);

static uint64_t pause_length(void)
{
	return world_chance(100) ? world_between(50, 400) * MS : world_between(100, 20000) * US;
}

static void pause_begin(void *object, uint64_t unused)
{
	struct server *server = object;
	uint64_t length_ns = pause_length();

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

bool server_collect(struct server *server, uint64_t length_ns)
{
	if (server->paused)
		return false;
	server->paused = true;
	server->resume_ns = world.now_ns + length_ns + 20 * US;
	server->page->pauses++;
	server->page->pause_ns_last = length_ns;
	world_log("server %u collects for %" PRIu64 " us", (unsigned int)(server - servers), length_ns / US);
	set_state(server, TAILOR_JVM_COLLECTING);
	world_later(length_ns, pause_end, server, 0);
	return true;
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
	if (!world.heaps)
		world_later(world_between(1, world_chance(500) ? 10 : 100) * MS, pause_begin, server, 0);
}

/* As the kernel does it: the word first, then whoever polls, if anybody waits; it knows nothing of servers that it was not told of. */
static void set_table(struct server *server, enum tailor_stop_kind kind)
{
	struct tailor_stop *stop = &table[server - servers];

	if (!server->told)
		return;
	if (stop->word) {
		stop->last = TAILOR_STOP(TAILOR_STOP_KIND(stop->word), world.now_ns - TAILOR_STOP_SINCE_NS(stop->word));
		stop->end_ns = world.now_ns;
	}
	stop->word = kind ? TAILOR_STOP(kind, world.now_ns) : 0;
	stop->count += kind != TAILOR_STOP_NONE;
	for (unsigned int i = 0; i < TAILOR_STOP_WAITERS; i++) {
		if (stop->waits[i]) {
			kernel_event_add(table_fd, 1);
			return;
		}
	}
}

/* A thaw, the end of a safepoint, SIGCONT. */
static void stop_end(void *object, uint64_t unused)
{
	struct server *server = object;

	(void)unused;
	set_table(server, TAILOR_STOP_NONE);
	if (server->frozen)
		server->page->heartbeat_ns = world.now_ns;
	server->frozen = server->paused = false;
	world_later(world_between(1, world_chance(500) ? 10 : 100) * MS, stop_begin, server, 0);
}

/* Is over, but the safepoint around it goes on; there may be another one in it. */
static void collect_end(void *object, uint64_t length_ns)
{
	struct server *server = object;

	if (length_ns) {
		server->page->pauses++;
		server->page->pause_ns_last = length_ns;
		snprintf(server->page->cause, sizeof(server->page->cause), "Simulated");
		set_state(server, TAILOR_JVM_COLLECTING);
		world_later(length_ns, collect_end, server, 0);
		return;
	}
	set_state(server, TAILOR_JVM_RUNNING);
	if (world_chance(100) && server->resume_ns > world.now_ns + 500 * US)
		world_later(10 * US, collect_end, server, 100 * US);
}

static void stop_begin(void *object, uint64_t unused)
{
	struct server *server = object;
	unsigned int what = (unsigned int)world_below(10);
	uint64_t length_ns = world_chance(300) ? world_between(10, 80) * US : pause_length();
	uint64_t to_safepoint_ns = world_chance(100) ? world_between(1, 5) * MS : world_between(5, 200) * US;

	(void)unused;
	if (server_is_calm)
		return;
	if (world.heaps && server->paused) {
		world_later(20 * MS, stop_begin, server, 0);
		return;
	}
	world_log("server %u stops by %u for %" PRIu64 " us", (unsigned int)(server - servers), what, length_ns / US);
	server->paused = true;
	if (what < 6) {
		/* What comes behind the collection leaves room for another one. */
		server->resume_ns = world.now_ns + to_safepoint_ns + length_ns + (world_chance(100) ? MS : 30 * US);
		set_table(server, TAILOR_STOP_SAFEPOINT);
		world_later(to_safepoint_ns, collect_end, server, length_ns);
	} else {
		server->resume_ns = world.now_ns + length_ns;
		server->frozen = what >= 8;
		if (what < 9)
			set_table(server, what < 8 ? TAILOR_STOP_SAFEPOINT : TAILOR_STOP_SIGNAL);
	}
	world_later(server->resume_ns - world.now_ns, stop_end, server, 0);
}

static void beat(void *object, uint64_t unused)
{
	struct server *server = object;

	(void)unused;
	if (!world.proxy)
		return;
	if (!server->frozen)
		server->page->heartbeat_ns = world.now_ns;
	world_later(TAILOR_JVM_HEARTBEAT_MS * MS, beat, server, 0);
}

void server_table_open(void)
{
	if (!world.stops || world_chance(300))
		return;
	memset(table, 0, sizeof(table));
	table_fd = kernel_descriptor_new(DESCRIPTOR_EVENT);
	world.options.stops = table;
	world.options.stops_fd = table_fd;
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
		/* Its connections are held by somebody else, who says nothing. */
		if (world.stops && world_chance(500)) {
			server->gone = true;
			server->alive_ns = world.now_ns;
			/* Who tells may be busy, and the next process be there by then. */
			server->tell_ns = world.now_ns + (world_chance(300) ? world_between(1, 3000) * MS : 0);
			for (struct serving *serving = servings; serving; serving = serving->next) {
				if (serving->server == index && !serving->gone)
					serving->wire->peer_silent = true;
			}
		} else if (world_chance(600)) {
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
		server->told = world.options.stops && world_chance(800);
		if (world.stops || !world.heaps)
			world_later(world_between(1, 50) * MS, world.stops ? stop_begin : pause_begin, server, 0);
		if (world.stops)
			beat(server, 0);
		world_later(world_between(1, 3000) * MS, crash, server, 0);
	}
	server_heap_open();
}

void server_turn(void)
{
	server_heap_turn();
	for (unsigned int i = 0; i < world.options.servers; i++) {
		struct server *server = &servers[i];

		if (server->gone && world.now_ns >= server->tell_ns) {
			server->gone_ns = world.now_ns;
			tailor_proxy_server_gone(world.proxy, i, server->alive_ns);
			server->gone = false;
		}
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

bool server_stands(unsigned int server, bool known)
{
	const struct server *its = &servers[server];

	if (!known && its->paused)
		return true;
	return (TAILOR_JVM_STATE_OF(its->page->state) == TAILOR_JVM_COLLECTING && (its->attached || !known)) ||
	       TAILOR_STOP_KIND(table[server].word) != TAILOR_STOP_NONE;
}

bool server_was_gone(unsigned int server)
{
	return servers[server].gone_ns != 0 && world.now_ns - servers[server].gone_ns < 100 * MS;
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
	if (world.options.stops)
		kernel_close(table_fd);
	memset(table, 0, sizeof(table));
	while (servings) {
		struct serving *serving = servings;

		servings = serving->next;
		free(serving->in);
		free(serving->out.data);
		free(serving);
	}
}
