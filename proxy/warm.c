/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/warm.h"

#include "proxy/server.h"
#include "proxy/upstream.h"

/* How often it is looked whether the server that requests would move to has connections for that. */
#define WARM_NS (100 * TAILOR_NS_PER_MS)
/* And how often they are made anew, where servers close what is not used at once. */
#define WARM_AGAIN_NS (1 * TAILOR_NS_PER_S)

/* No further than `most`. */
static unsigned int list_length(const struct upstream *upstream, unsigned int most)
{
	unsigned int count = 0;

	for (; upstream && count < most; upstream = upstream->next)
		count++;
	return count;
}

/*
 * Opens connections to the server until it has `wanted`, idle or on their way, and at most `most` a WARM_AGAIN_NS. Before one stands only one
 * is tried: it may be down, or close whatever is not used at once.
 */
static void warm(struct worker *worker, unsigned int server, unsigned int wanted, unsigned int most)
{
	const struct server *its = &worker->server[server];
	unsigned int have = list_length(its->idle, wanted) + list_length(its->discarding, wanted);

	if (!its->idle)
		wanted = 1;
	if (worker->now_ns >= worker->warm_again_ns)
		worker->warmed = 0;
	for (; have < wanted && worker->warmed < most && upstream_open_spare(worker, server); have++) {
		if (worker->warmed++ == 0)
			worker->warm_again_ns = worker->now_ns + WARM_AGAIN_NS;
	}
}

/* Its process stands still, and its kernel does not. */
static bool still_connects(const struct worker *worker, unsigned int server)
{
	enum tailor_stop_kind kind = worker->server[server].standing.kind;

	return !server_is_down(worker, server) && (kind == TAILOR_STOP_SAFEPOINT || kind == TAILOR_STOP_GC || kind == TAILOR_STOP_SIGNAL);
}

void warm_made(struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (worker->server[i].standing.lasting && worker->server[i].in_flight)
			worker->warm_without = (int)i;
	}
}

void warm_turn(struct worker *worker)
{
	const struct tailor_proxy_options *options = worker->options;
	int without = worker->warm_without, other;
	unsigned int waiting;

	if (without < 0)
		return;
	worker->warm_without = -1;
	worker->warm_ns = worker->now_ns + WARM_NS;
	if (!options->failover_on || options->replay_when == TAILOR_PROXY_REPLAY_NEVER || worker->stopping)
		return;
	other = server_other(worker, (unsigned int)without, 0);
	waiting = list_length(worker->server[without].in_flight, WARM_WAITING_MAX);
	if (server_may_serve(worker, other)) {
		if (waiting > WARM_MAX)
			waiting = WARM_MAX;
		warm(worker, (unsigned int)other, waiting, waiting);
	} else if (other >= 0 && worker->server[without].standing.lasting && still_connects(worker, (unsigned int)other)) {
		warm(worker, (unsigned int)other, waiting, 1 + (WARM_WAITING_MAX - 1) / options->workers);
	}
}
