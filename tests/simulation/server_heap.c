/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers' heaps: they fill by requests and by themselves, and are collected when they are full, or when the proxy wishes so and the
 * agent does. And what the proxy makes of it, judged by what it says: who is drained, for how long, and what came of it.
 */
#include <inttypes.h>
#include <string.h>

#include "judge.h"
#include "server.h"

#define TICK_NS (TAILOR_JVM_HEAP_MS * MS)
/* The longest that a drain may take: as long as it waits for a collection that goes on, and what leads to it. */
#define DRAINED_NS_MAX (12 * TAILOR_NS_PER_S)

static struct heap {
	struct tailor_jvm_heap now;
	uint64_t background; /* bytes a tick without requests */
	uint64_t wish;       /* that is being dealt with; 0: none */
	uint64_t collected;  /* pauses when it began to be */
	uint64_t pauses;     /* by the page, when it was last looked at; for what is counted */
} heaps[TAILOR_PROXY_SERVERS_MAX];

static int drained;
static uint64_t drained_since_ns, judged_ns;

static struct heap *heap_of(struct server *server)
{
	return &heaps[server - servers];
}

/* As the agent does it. */
static void publish(struct server *server)
{
	struct heap *heap = heap_of(server);
	struct tailor_jvm_heap now = heap->now;

	now.version = server->page->heap.version + 2;
	now.time_ns = world.now_ns;
	/* What reads it now finds it half written. */
	if (world_chance(10))
		now.version--;
	server->page->heap = now;
}

static void grant(struct server *server)
{
	struct heap *heap = heap_of(server);

	server->page->granted = heap->wish;
	heap->wish = 0;
}

static void collect(struct server *server, bool full)
{
	struct heap *heap = heap_of(server);

	if (!server_collect(server, world_chance(100) ? world_between(10, 200) * MS : world_between(500, 20000) * US))
		return;
	heap->now.young_used = 0;
	heap->now.old_used += full ? 0 : heap->now.young_size / 100;
	if (full || heap->now.old_used > heap->now.old_size) {
		heap->now.collected_old++;
		heap->now.old_used = 0;
	} else {
		heap->now.collected_young++;
	}
}

/* It may take the wish for granted, never get to it, or bring the collection about. */
static void look_at_wish(struct server *server)
{
	struct heap *heap = heap_of(server);
	uint64_t wish = server->page->wish;

	if (TAILOR_JVM_WISH_OF(wish) == TAILOR_JVM_WISH_NONE || wish == server->page->granted || heap->wish)
		return;
	heap->wish = wish;
	world_check(server->page->can & (uint64_t)TAILOR_JVM_WISH_OF(wish) << 1, "a wish for what the agent does not allow");
	world_check(world.options.collect >= (enum tailor_proxy_collect)TAILOR_JVM_WISH_OF(wish), "a wish that the configuration does not allow");
	world_check(world.options.predict, "a wish though nothing is to be predicted");
	if (world.now_ns >= TAILOR_JVM_WISH_UNTIL_NS(wish) || world_chance(50))
		grant(server);
	else if (world_chance(950))
		collect(server, TAILOR_JVM_WISH_OF(wish) == TAILOR_JVM_WISH_FULL);
}

static void tick(void *object, uint64_t unused)
{
	struct server *server = object;
	struct heap *heap = heap_of(server);

	(void)unused;
	if (!world.proxy)
		return;
	world_later(TICK_NS, tick, server, 0);
	/* The thread that does this is one of the JVM's. */
	if (server->paused || server->frozen)
		return;
	if (!server_is_calm)
		heap->now.young_used += heap->background;
	if (heap->now.young_used >= heap->now.young_size && !server_is_calm)
		collect(server, false);
	else if (heap->wish && !server->paused && (heap->collected != server->page->pauses || world.now_ns >= TAILOR_JVM_WISH_UNTIL_NS(heap->wish)))
		grant(server);
	look_at_wish(server);
	heap->collected = heap->wish ? heap->collected : server->page->pauses;
	if (!server->paused && server->page->wants & TAILOR_JVM_WANTS_HEAP)
		publish(server);
}

void server_heap_open(void)
{
	drained = -1;
	drained_since_ns = judged_ns = 0;
	for (unsigned int i = 0; world.heaps && i < world.options.servers; i++) {
		static const uint64_t abilities[] = {0, TAILOR_JVM_CAN_HEAP, TAILOR_JVM_CAN_HEAP | TAILOR_JVM_CAN_COLLECT_YOUNG,
		                                     TAILOR_JVM_CAN_HEAP | TAILOR_JVM_CAN_COLLECT_YOUNG | TAILOR_JVM_CAN_COLLECT_FULL};
		struct heap *heap = &heaps[i];

		*heap = (struct heap){0};
		servers[i].page->can = abilities[world_below(10) < 2 ? world_below(2) : 2 + world_below(2)];
		heap->now.young_size = world_chance(100) ? 0 : world_between(1000, 60000) * 1000;
		heap->now.young_used = heap->now.young_size ? world_below(heap->now.young_size) : 0;
		heap->now.old_size = world_between(10, 100) * 1000000;
		heap->background = world_chance(300) ? 0 : world_below(heap->now.young_size / 100 + 1);
		world_later(world_below(TICK_NS), tick, &servers[i], 0);
	}
}

void server_heap_fill(unsigned int server)
{
	if (world.heaps && heaps[server].now.young_size)
		heaps[server].now.young_used += world_between(1, 200) * 1000;
}

static void judge_server(unsigned int index, const struct tailor_proxy_server_status *status)
{
	uint64_t warnings = 0;

	for (unsigned int i = 0; i <= TAILOR_WARNING_BUCKETS; i++)
		warnings += status->warning[i];
	world_check(status->pauses_predicted + status->pauses_missed <= servers[index].page->pauses, "more pauses of server %u than there were", index);
	world_check(status->false_drains + warnings <= status->drains, "more came of the drains of server %u than there were", index);
	world_check(status->wishes_granted <= status->wishes && status->wishes <= status->drains, "more wishes of server %u than drains", index);
	world_check(status->pauses_met <= status->requests_met, "server %u: %" PRIu64 " pauses met %" PRIu64 " requests", index,
	            status->pauses_met, status->requests_met);
	world_check(!status->drains || (world.options.servers > 1 && servers[index].page->can), "server %u is drained for nothing", index);
}

static void judge(void)
{
	struct tailor_proxy_status status;
	int now = -1;

	judged_ns = world.now_ns;
	tailor_proxy_status(world.proxy, &status);
	for (unsigned int i = 0; i < status.servers; i++) {
		judge_server(i, &status.server[i]);
		world_check(now < 0 || !status.server[i].drained, "servers %d and %u are drained", now, i);
		if (status.server[i].drained)
			now = (int)i;
	}
	if (now != drained) {
		drained = now;
		drained_since_ns = world.now_ns;
	}
	world_check(drained < 0 || world.now_ns < drained_since_ns + DRAINED_NS_MAX, "server %d is drained for %.3f s", drained,
	            (double)(world.now_ns - drained_since_ns) / 1e9);
}

void server_heap_turn(void)
{
	if (world.heaps && world.now_ns >= judged_ns + MS)
		judge();
}

bool server_is_drained(unsigned int server)
{
	struct tailor_proxy_status status;

	if (!world.heaps || drained != (int)server || world.now_ns < drained_since_ns + MS || !world.proxy)
		return false;
	/* It may have been so until just now. */
	tailor_proxy_status(world.proxy, &status);
	return status.server[server].drained;
}

void server_heap_end(void)
{
	struct tailor_proxy_status status;

	if (!world.heaps)
		return;
	tailor_proxy_status(world.proxy, &status);
	for (unsigned int i = 0; i < status.servers; i++) {
		const struct tailor_proxy_server_status *its = &status.server[i];

		judge_server(i, its);
		world_check(!its->drained, "server %u is still drained", i);
		judge_figures.drains += its->drains;
		judge_figures.false_drains += its->false_drains;
		judge_figures.predicted += its->pauses_predicted;
		judge_figures.missed += its->pauses_missed;
		judge_figures.granted += its->wishes_granted;
	}
}
