/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives of a proxy, one after another, each with another seed, options, and world. Everything is decided by the seed: the
 * same seed and number of exchanges end in the same digest, or the same failure.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tailor/window.h>

#include "judge.h"
#include "kernel.h"
#include "system.h"
#include "traffic.h"

#define EXCHANGES_OF_A_LIFE 2000
/* Behind its deadline a stop waits only for the kernel, whose delays are below 100 ms each. */
#define STOP_SLACK_NS (500 * MS)
#define STEPS_OF_A_LIFE 40000000

static bool limits, groups, stops, heaps, slow_turns;
static uint64_t steps_total, simulated_ns, digest;

static unsigned int often(unsigned int most)
{
	return world_chance(300) ? 0 : (unsigned int)world_between(1, most);
}

static void choose_options(void)
{
	struct tailor_proxy_options *options = &world.options;

	tailor_address_parse("127.0.0.1:0", &options->listen);
	tailor_address_parse("127.0.0.1:9001", &options->server[0].address);
	tailor_address_parse("127.0.0.1:9002", &options->server[1].address);
	options->servers = world_chance(900) ? 2 : 1;
	options->workers = world_chance(700) ? 1 : (unsigned int)world_between(2, 3);
	options->connections_max = world_chance(900) ? 128 : (unsigned int)world_between(1, 20);
	options->failover_on = world_chance(900) ? 1u << TAILOR_STOP_GC : 0;
	options->routes = 1;
	options->replay_part = 1;
	options->replay_floor_per_s = 10;
	options->replay_when = TAILOR_PROXY_REPLAY_ALWAYS;
	options->route[0].methods = 1u << HTTP1_GET | 1u << HTTP1_HEAD;
	if (world_chance(300))
		options->route[0].methods |= 1u << HTTP1_POST | 1u << HTTP1_METHOD_OTHER;
	options->replay_bytes_max = 65536;
	options->replay_bytes_total = world.seed % 3 ? 64 << 20 : 128 << 10;
	options->replay_attempts_max = (unsigned int)world_between(1, TAILOR_ATTEMPTS_MAX);
	options->head_bytes_max = world_chance(500) ? 16384 : world_between(1024, 8192);
	options->connect_timeout_ns = world_between(100, 1000) * MS;
	options->response_timeout_ns = world_between(3000, 6000) * MS;
	options->idle_timeout_ns = world_between(2000, 5000) * MS;
	world.kernel_faults = often(40);
	world.server_faults = often(60);
	world.client_faults = often(100);
}

/* Limits that are met now and then. */
static void choose_limits(void)
{
	struct tailor_proxy_options *options = &world.options;

	options->in_flight_max = (unsigned int)world_between(1, 8);
	options->queue_max = world_chance(200) ? 0 : (unsigned int)world_between(1, 40);
	options->queue_timeout_ns = world_between(20, 2000) * MS;
	if (world_chance(500))
		options->request_timeout_ns = world_between(300, 5000) * MS;
	if (world_chance(300))
		options->per_address_max = (unsigned int)world_between(1, 60);
	if (world_chance(300))
		options->body_bytes_max = world_between(1000, 200000);
}

/* More servers, both modes, a narrow budget, and requests that may be sent twice by their path. */
static void choose_groups(void)
{
	struct tailor_proxy_options *options = &world.options;
	char address[32];

	options->servers = world_chance(100) ? TAILOR_PROXY_SERVERS_MAX : (unsigned int)world_between(2, 6);
	for (unsigned int i = 0; i < options->servers; i++) {
		snprintf(address, sizeof(address), "127.0.0.1:%u", 9001 + i);
		tailor_address_parse(address, &options->server[i].address);
	}
	options->mode = world_chance(700) ? TAILOR_PROXY_BALANCED : TAILOR_PROXY_ACTIVE_BACKUP;
	options->route[1] = (struct tailor_proxy_route){.methods = 1u << HTTP1_POST, .path = "/r/*7"};
	options->routes = 2;
	if (world_chance(500)) {
		options->replay_part = (double)world_below(20) / 1000;
		options->replay_floor_per_s = world_chance(300);
	}
	if (world_chance(300))
		options->in_flight_max = (unsigned int)world_between(1, 8);
	options->queue_max = options->in_flight_max ? (unsigned int)world_between(1, 40) : 0;
	options->queue_timeout_ns = world_between(20, 2000) * MS;
}

/* Stops of all kinds, heeded or not, and judged by what is expected of them. */
static void choose_stops(void)
{
	struct tailor_proxy_options *options = &world.options;

	if (options->failover_on && world_chance(800))
		options->failover_on |= 1u << TAILOR_STOP_SAFEPOINT | 1u << TAILOR_STOP_STALL | 1u << TAILOR_STOP_GONE;
	options->replay_when = world_chance(700) ? TAILOR_PROXY_REPLAY_PREDICTED
	                       : world_chance(700) ? TAILOR_PROXY_REPLAY_ALWAYS : TAILOR_PROXY_REPLAY_NEVER;
	options->switch_min_ns = world_chance(500) ? 0 : world_between(1, 200) * MS;
}

/* Collections that are predicted, mostly; what may be wished for. */
static void choose_heaps(void)
{
	world.options.predict = world_chance(900);
	world.options.collect = (enum tailor_proxy_collect)world_below(3);
	world.options.replay_when = TAILOR_PROXY_REPLAY_PREDICTED;
}

/* A reload that turns an active server with its backups into a group, or back. */
static void change_mode(void)
{
	const struct tailor_proxy_options *options = &world.options;
	struct tailor_proxy_settings settings = {
	        .mode = options->mode == TAILOR_PROXY_BALANCED ? TAILOR_PROXY_ACTIVE_BACKUP : TAILOR_PROXY_BALANCED,
	        .failover_on = options->failover_on,
	        .replay_when = options->replay_when,
	        .routes = options->routes,
	        .replay_part = options->replay_part,
	        .replay_floor_per_s = options->replay_floor_per_s,
	        .switch_min_ns = options->switch_min_ns,
	        .predict = options->predict,
	        .collect = options->collect,
	        .connect_timeout_ns = options->connect_timeout_ns,
	        .response_timeout_ns = options->response_timeout_ns,
	        .idle_timeout_ns = options->idle_timeout_ns,
	        .queue_timeout_ns = options->queue_timeout_ns,
	        .request_timeout_ns = options->request_timeout_ns,
	};

	if (heaps && world_chance(200)) {
		settings.predict = !settings.predict;
		settings.collect = (enum tailor_proxy_collect)world_below(3);
	}
	memcpy(settings.route, options->route, sizeof(settings.route));
	tailor_proxy_apply(world.proxy, &settings);
	tailor_proxy_set(&world.options, &settings);
}

static void turn(void)
{
	server_turn();
	if (groups && world_below(20000) == 0)
		change_mode();
}

static void live_until_all_is_said(void)
{
	while (!client_all_done() || traffic_requests() < world.exchanges_max) {
		world_check(world.steps < STEPS_OF_A_LIFE, "this life does not end");
		world_check(world_step(), "nothing happens any more, %u of %" PRIu64 " requests made", traffic_requests(),
		            world.exchanges_max);
		turn();
	}
}

/* Lets everything come to its end while the proxy still serves. */
static void calm_down(void)
{
	uint64_t until_ns = world.now_ns + 30 * TAILOR_NS_PER_S;

	server_calm();
	while (world.now_ns < until_ns && world_step())
		world_check(world.steps < STEPS_OF_A_LIFE, "this life does not end");
	judge_counters();
	server_heap_end();
}

static void stop(void)
{
	uint64_t deadline_ns = world.now_ns + world_below(500) * MS;

	world.stopping = true;
	tailor_proxy_stop(world.proxy, deadline_ns);
	world.proxy = NULL;
	world_check(world.now_ns < deadline_ns + STOP_SLACK_NS, "the proxy stopped %.3f s after its deadline",
	            (double)(world.now_ns - deadline_ns) / 1e9);
	/* Clients learn of it. */
	while (!client_all_done()) {
		world_check(world.steps < STEPS_OF_A_LIFE, "this life does not end");
		world_check(world_step(), "a client hears nothing of the proxy's end");
	}
}

static void live(uint64_t seed, uint64_t exchanges)
{
	char error[256];
	bool in_the_middle;

	world_open(seed);
	world.exchanges_max = exchanges;
	choose_options();
	world.limits = limits;
	if (limits)
		choose_limits();
	world.groups = groups;
	if (groups)
		choose_groups();
	world.stops = stops;
	if (stops)
		choose_stops();
	world.heaps = heaps;
	if (heaps)
		choose_heaps();
	world.slow_turns = slow_turns;
	in_the_middle = world_chance(200);
	world_log("seed %" PRIu64 ": %u servers, %u workers, %u connections, faults %u %u %u", seed, world.options.servers,
	          world.options.workers, world.options.connections_max, world.kernel_faults, world.server_faults,
	          world.client_faults);
	judge_open();
	server_table_open();
	world_check(tailor_proxy_start(&world.options, &world.proxy, error, sizeof(error)) == 0, "%s", error);
	server_open();
	client_open();
	if (in_the_middle) {
		uint64_t until = world_below(exchanges) + 1;

		while (traffic_requests() < until) {
			world_check(world_step(), "nothing happens any more");
			turn();
		}
	} else {
		live_until_all_is_said();
		calm_down();
	}
	stop();
	server_close();
	judge_listen();
	judge_requests();
	world_check(ring_operations == 0, "%u operations are left", ring_operations);
	world_check(wire_open == 0, "%" PRIu64 " connections are left", wire_open);
	world_check(kernel_open_descriptors() == 0, "%u descriptors are left", kernel_open_descriptors());
	steps_total += world.steps;
	simulated_ns += world.now_ns - 1000 * TAILOR_NS_PER_S;
	digest = digest * 31 + world.random + world.now_ns + world.steps;
	judge_close();
	client_free_all();
	traffic_free();
	wire_free_all();
	kernel_free();
	world_close();
}

static void print_figures(uint64_t seed, uint64_t lives, uint64_t took_ns)
{
	const struct judge_figures *f = &judge_figures;

	printf("simulation: seed %" PRIu64 ", %" PRIu64 " lives, %" PRIu64 " requests, %" PRIu64 " steps, %.0f s of its time in %.1f s\n",
	       seed, lives, f->requests, steps_total, (double)simulated_ns / 1e9, (double)took_ns / 1e9);
	printf("answered %" PRIu64 ", refused %" PRIu64 ", cut %" PRIu64 ", clients gone %" PRIu64 "; moved %" PRIu64
	       ", without a budget %" PRIu64 ", sent again %" PRIu64 ", queued %" PRIu64 ", late %" PRIu64 ", waits for clients %" PRIu64 ", longest %.1f s\n",
	       f->whole, f->refused, f->cut, f->client, f->moved, f->budget, f->replayed, f->queued, f->late, f->client_waits, (double)f->held_longest_ns / 1e9);
	if (stops)
		printf("stops that somebody met %" PRIu64 "\n", f->stops);
	if (heaps)
		printf("drains %" PRIu64 " (%" PRIu64 " in vain), collections predicted %" PRIu64 ", missed %" PRIu64 ", wishes granted %" PRIu64 "\n",
		       f->drains, f->false_drains, f->predicted, f->missed, f->granted);
	printf("operations %" PRIu64 ", cancels %" PRIu64 " (%" PRIu64 " in time); status", ring_operations_total, ring_cancels,
	       ring_cancelled);
	for (unsigned int i = 0; i < 600; i++) {
		if (f->by_status[i])
			printf(" %u: %" PRIu64, i, f->by_status[i]);
	}
	printf("\ndigest %016" PRIx64 "\n", digest);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end) {
		fprintf(stderr, "simulation: \"%s\" is no number\n", text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	        {"seed", required_argument, NULL, 's'},
	        {"exchanges", required_argument, NULL, 'e'},
	        {"limits", no_argument, NULL, 'l'},
	        {"groups", no_argument, NULL, 'g'},
	        {"stops", no_argument, NULL, 'p'},
	        {"heaps", no_argument, NULL, 'h'},
	        {"slow-turns", no_argument, NULL, 't'},
	        {"verbose", no_argument, NULL, 'v'},
	        {NULL, 0, NULL, 0},
	};
	uint64_t seed = 1, exchanges = 10000, begin_ns = system_clock_ns(), lives = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's': seed = number(optarg); break;
		case 'e': exchanges = number(optarg); break;
		case 'l': limits = true; break;
		case 'g': groups = true; break;
		case 'p': stops = true; break;
		case 'h': heaps = true; break;
		case 't': slow_turns = true; break;
		case 'v': world.verbose = true; break;
		default:
			fprintf(stderr, "Usage: simulation [--seed N] [--exchanges N] [--limits] [--groups] [--stops] [--heaps] [--slow-turns] [--verbose]\n");
			return 2;
		}
	}
	/* The first life has the seed itself, so that one that fails is found again alone. Some end early. */
	for (; judge_figures.requests < exchanges; lives++) {
		uint64_t left = exchanges - judge_figures.requests;

		live(seed + lives, left < EXCHANGES_OF_A_LIFE ? left : EXCHANGES_OF_A_LIFE);
	}
	print_figures(seed, lives, system_clock_ns() - begin_ns);
	return 0;
}
