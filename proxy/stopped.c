/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/stopped.h"

#include <string.h>

#include "proxy/exchange.h"
#include "proxy/failover.h"
#include "proxy/keeper.h"
#include "proxy/pause.h"
#include "proxy/record.h"
#include "proxy/server.h"
#include "proxy/warm.h"

/* How long the bytes of a process that has ended may be on their way. */
#define GONE_NS (2 * TAILOR_NS_PER_MS)
/* About so many answers matter for what the next one takes. */
#define SERVICE_MEMORY 64
/* And after so many, beside the first ones, it is worked out what that is. */
#define SERVICE_EVERY 32
/* Another one taking over within so many times switch_min_ns after the last time, and back: that is what should not happen often. */
#define SWITCH_BACK_TIMES 10

const uint64_t tailor_reaction_bucket_ns[TAILOR_REACTION_BUCKETS] = {
        10000,  20000,  30000,  40000,  50000,   60000,   80000,   100000,   120000,   150000,
        200000, 250000, 400000, 600000, 1000000, 2500000, 5000000, 10000000, 25000000, 100000000,
};

bool stopped_matters(const struct worker *worker, enum tailor_stop_kind kind)
{
	return worker->options->failover_on & 1u << (kind == TAILOR_STOP_SIGNAL ? TAILOR_STOP_STALL : kind);
}

uint64_t stopped_service_ns(const struct worker *worker, unsigned int server)
{
	return worker->server[server].learned->service_ns;
}

/* Another server takes over what arrives from now on, if it can do better. Returns when to try again; UINT64_MAX: it need not be. */
static uint64_t switch_active(struct worker *worker, unsigned int index)
{
	struct shared *shared = worker->shared;
	uint64_t switched_ns = __atomic_load_n(&shared->switched_ns, __ATOMIC_RELAXED);
	uint64_t switch_min_ns = worker->options->switch_min_ns;
	unsigned int active = index;
	int next;

	if (worker->options->mode == TAILOR_PROXY_BALANCED || __atomic_load_n(&shared->active, __ATOMIC_RELAXED) != index)
		return UINT64_MAX;
	/* Requests avoid it all the same: only who serves when both can does not change that fast. */
	if (switched_ns && worker->now_ns < switched_ns + switch_min_ns)
		return switched_ns + switch_min_ns;
	next = server_next(worker, index);
	/* One of several workers does it. */
	if (next < 0 || !__atomic_compare_exchange_n(&shared->active, &active, (unsigned int)next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return UINT64_MAX;
	count(&worker->counters.switches);
	if (switched_ns && __atomic_load_n(&shared->active_before, __ATOMIC_RELAXED) == (unsigned int)next &&
	    worker->now_ns < switched_ns + SWITCH_BACK_TIMES * switch_min_ns)
		count(&worker->counters.switch_backs);
	__atomic_store_n(&shared->active_before, index, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->switched_ns, worker->now_ns, __ATOMIC_RELAXED);
	return UINT64_MAX;
}

static void judge_in_flight(struct worker *worker, unsigned int index)
{
	struct upstream *next;

	/* A verdict adds attempts to other servers' lists only. */
	for (struct upstream *upstream = worker->server[index].in_flight; upstream; upstream = next) {
		next = upstream->next;
		exchange_server_paused(worker, upstream);
	}
}

/* Whoever could not say why it collects when that began may know by now. */
static void find_cause(struct server *server)
{
	struct standing *standing = &server->standing;

	if (standing->kind == TAILOR_STOP_GC && !standing->cause[0])
		pause_cause(server, standing->pauses, standing->cause);
}

/* How much longer, as far as is known now, and whether that is too long. */
static void expect(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];
	struct standing *standing = &server->standing;
	uint64_t now_ns = tailor_clock_ns();
	uint64_t lasted_ns = now_ns > standing->since_ns ? now_ns - standing->since_ns : 0;
	struct failover_stop stop = {.when = worker->options->replay_when, .lasted_ns = lasted_ns};
	int other = server_other(worker, index, 0);

	find_cause(server);
	stop.rest = expect_stop_rest(&server->learned->stops, standing->kind, standing->cause, lasted_ns);
	/* Where nobody has answered yet: most likely as fast as this one did. */
	stop.service_ns = other >= 0 ? stopped_service_ns(worker, (unsigned int)other) : 0;
	if (stop.service_ns == 0)
		stop.service_ns = stopped_service_ns(worker, index);
	__atomic_store_n(&worker->counters.server[index].service_ns, stopped_service_ns(worker, index), __ATOMIC_RELAXED);
	standing->lasting = failover_stop_lasts(&stop);
	standing->again_ns = now_ns + (stop.rest.known ? expect_again_ns(&stop.rest, lasted_ns) : FAILOVER_UNKNOWN_NS - lasted_ns);
}

/* Of what a safepoint turns out to be, it may be that only the one matters. */
static bool is_undecided(const struct worker *worker, enum tailor_stop_kind kind)
{
	return kind == TAILOR_STOP_SAFEPOINT && !stopped_matters(worker, kind) && stopped_matters(worker, TAILOR_STOP_GC);
}

bool stopped_is_decided(const struct worker *worker, unsigned int server)
{
	enum tailor_stop_kind kind = worker->server[server].standing.kind;

	return kind != TAILOR_STOP_NONE && !is_undecided(worker, kind);
}

/* What is to be done now that something is known, or that more time has passed. */
static void judge(struct worker *worker, unsigned int index)
{
	struct standing *standing = &worker->server[index].standing;
	uint64_t again_ns = UINT64_MAX;

	/* What has lasted too long once is not waited for any more. */
	if (!standing->lasting)
		expect(worker, index);
	if (is_undecided(worker, standing->kind)) {
		standing->lasting = false;
		standing->again_ns = UINT64_MAX;
		return;
	}
	if (standing->lasting && stopped_matters(worker, standing->kind))
		again_ns = switch_active(worker, index);
	judge_in_flight(worker, index);
	if (worker->server[index].in_flight)
		warm_note(worker, index);
	if (standing->lasting || !worker->server[index].in_flight)
		standing->again_ns = again_ns;
}

static void begin(struct worker *worker, unsigned int index, uint64_t word)
{
	struct server *server = &worker->server[index];
	struct standing *standing = &server->standing;

	*standing = (struct standing){.first = TAILOR_STOP_KIND(word), .since_ns = TAILOR_STOP_SINCE_NS(word), .noticed_ns = tailor_clock_ns()};
	for (const struct upstream *upstream = server->in_flight; upstream; upstream = upstream->next) {
		struct attempt *attempt = &upstream->client->exchange.attempt[upstream->attempt];

		attempt->stayed = 0;
		attempt->moved = false;
		standing->in_flight += !upstream->client->exchange.response_complete && !upstream->client->exchange.tunnel;
	}
	count(&worker->counters.server[index].paused);
}

static void become(struct worker *worker, unsigned int index, enum tailor_stop_kind kind, const char *cause)
{
	struct standing *standing = &worker->server[index].standing;

	standing->kind = kind;
	standing->kinds |= (uint8_t)(1u << kind);
	standing->pauses = worker->server[index].pauses_seen;
	/* Not printed: for the first time in a while that takes longer than all else that is done about a stop. */
	strncpy(standing->cause, cause, sizeof(standing->cause) - 1);
	__atomic_store_n(&worker->counters.server[index].stop, kind, __ATOMIC_RELAXED);
}

void stopped_begin(struct worker *worker, unsigned int index, uint64_t word, const char *cause)
{
	struct standing *standing = &worker->server[index].standing;
	enum tailor_stop_kind kind = TAILOR_STOP_KIND(word);

	if (standing->kind == TAILOR_STOP_NONE)
		begin(worker, index, word);
	standing->word = word;
	if (TAILOR_STOP_SINCE_NS(word) < standing->since_ns)
		standing->since_ns = TAILOR_STOP_SINCE_NS(word);
	/* The safepoint of a collection that is over: it is the rest of that. */
	if (standing->kind == TAILOR_STOP_GC && kind == TAILOR_STOP_SAFEPOINT)
		return;
	/* Nobody tells of a missing heartbeat: it counts from now. */
	standing->signal_ns = kind == TAILOR_STOP_STALL ? worker->now_ns : TAILOR_STOP_SINCE_NS(word);
	standing->signal = TAILOR_REACTION_STOP;
	become(worker, index, kind, cause);
	judge(worker, index);
}

/* One that was of several kinds that have nothing to do with each other says nothing about any of them. */
static bool is_of_one_kind(const struct standing *standing)
{
	uint8_t kinds = standing->kinds;

	if (kinds & 1u << TAILOR_STOP_GC)
		kinds &= (uint8_t) ~(1u << TAILOR_STOP_SAFEPOINT);
	return (kinds & (kinds - 1)) == 0;
}

static uint32_t us_between(uint64_t from_ns, uint64_t to_ns)
{
	uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / TAILOR_NS_PER_US : 0;

	return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static uint16_t capped(uint64_t number)
{
	return number > UINT16_MAX ? UINT16_MAX : (uint16_t)number;
}

static void tell(struct worker *worker, unsigned int index, uint64_t end_ns)
{
	const struct standing *standing = &worker->server[index].standing;
	unsigned int most = 0;
	uint64_t not_moved = 0, arg[3];
	uint32_t handed_us = us_between(standing->since_ns, standing->handed_ns);

	for (unsigned int i = 0; i < TAILOR_NOT_MOVED_REASONS; i++) {
		not_moved += standing->not_moved[i];
		if (standing->not_moved[i] > standing->not_moved[most])
			most = i;
	}
	if (standing->in_flight + standing->moved + not_moved == 0)
		return;
	arg[0] = standing->since_ns;
	arg[1] = TAILOR_STOP_TIMES(us_between(standing->since_ns, standing->noticed_ns),
	                           standing->handed_ns && handed_us == 0 ? 1 : handed_us);
	arg[2] = TAILOR_STOP_MOVES(capped(standing->moved), capped(not_moved), most);
	/* The worker's turn may have begun before the stop did. */
	record_at(worker, end_ns > standing->since_ns ? end_ns : standing->since_ns, TAILOR_EVENT_SERVER_STOPPED, 0,
	          TAILOR_STOPPED(index, standing->first, capped(standing->in_flight)), arg, standing->cause, strlen(standing->cause));
}

void stopped_end(struct worker *worker, unsigned int index, uint64_t end_ns)
{
	struct server *server = &worker->server[index];
	struct standing *standing = &server->standing;

	for (const struct upstream *upstream = server->in_flight; upstream; upstream = upstream->next)
		stopped_leave(worker, &upstream->client->exchange.attempt[upstream->attempt]);
	find_cause(server);
	if (is_of_one_kind(standing) && end_ns > standing->since_ns)
		expect_learn(&server->learned->stops, standing->kind, standing->cause, end_ns - standing->since_ns);
	tell(worker, index, end_ns);
	if (standing->kinds & 1u << TAILOR_STOP_GC && standing->in_flight)
		keeper_met(worker, index, standing->in_flight);
	count(&worker->counters.server[index].stops[standing->kind]);
	count_add(&worker->counters.server[index].paused, (uint64_t)-1);
	__atomic_store_n(&worker->counters.server[index].stop, TAILOR_STOP_NONE, __ATOMIC_RELAXED);
	*standing = (struct standing){.again_ns = UINT64_MAX};
	server->stood_ns = worker->now_ns;
}

/* Whether any but these could serve all the while. */
static bool another_serves(const struct worker *worker, uint32_t servers)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		if (!(servers & 1u << i) && server_may_serve(worker, (int)i))
			return true;
	}
	return false;
}

void stopped_look_again(struct worker *worker, uint32_t servers, uint64_t end_ns)
{
	bool waited = !another_serves(worker, servers);

	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct standing *standing = &worker->server[i].standing;

		if (standing->kind == TAILOR_STOP_NONE || !server_is_paused(worker, i))
			continue;
		if (waited && end_ns > standing->signal_ns) {
			standing->signal_ns = end_ns;
			standing->signal = TAILOR_REACTION_RETURN;
		}
		judge(worker, i);
	}
}

void stopped_missed(struct worker *worker, unsigned int index, enum tailor_stop_kind kind, const char *cause, uint64_t length_ns)
{
	struct standing *standing = &worker->server[index].standing;

	/* It was what the safepoint that goes on was for. */
	if (kind == TAILOR_STOP_GC && standing->kind == TAILOR_STOP_SAFEPOINT) {
		become(worker, index, kind, cause);
		return;
	}
	expect_learn(&worker->server[index].learned->stops, kind, cause, length_ns);
	count(&worker->counters.server[index].stops[kind]);
}

void stopped_not_moved(struct worker *worker, unsigned int index, struct attempt *attempt, enum tailor_not_moved why, bool for_now)
{
	if (attempt->stayed || attempt->moved)
		return;
	attempt->stays = for_now ? (uint8_t)(1 + why) : 0;
	if (for_now)
		return;
	attempt->stayed = (uint8_t)(1 + why);
	count(&worker->counters.not_moved[why]);
	worker->server[index].standing.not_moved[why]++;
}

void stopped_moved(struct worker *worker, unsigned int index, struct attempt *attempt)
{
	struct standing *standing = &worker->server[index].standing;

	count(&worker->counters.server[index].moved_away);
	/* Once more, if the server to which it was moved has failed. */
	if (!attempt->moved)
		standing->moved++;
	/* What kept it there does so no longer. */
	if (attempt->stayed)
		standing->not_moved[attempt->stayed - 1]--;
	attempt->stays = attempt->stayed = 0;
	attempt->moved = true;
}

void stopped_leave(struct worker *worker, struct attempt *attempt)
{
	if (attempt->stays)
		stopped_not_moved(worker, attempt->server, attempt, (enum tailor_not_moved)(attempt->stays - 1), false);
}

void stopped_answered(struct worker *worker, const struct attempt *attempt)
{
	const struct server *server = &worker->server[attempt->server];
	struct learned *learned = server->learned;
	uint64_t now_ns = record_ns(worker);

	/* What has met a stop says how long that was. */
	if (server->standing.kind != TAILOR_STOP_NONE || attempt->sent_ns <= server->stood_ns || now_ns < attempt->sent_ns)
		return;
	expect_lengths_learn(&learned->service, now_ns - attempt->sent_ns, SERVICE_MEMORY);
	learned->answers++;
	if (learned->answers % SERVICE_EVERY == 0 || (learned->answers & (learned->answers - 1)) == 0)
		learned->service_ns = expect_lengths_rest(&learned->service, 0).ns;
}

static void count_reaction(struct worker *worker, enum tailor_reaction reaction, uint64_t ns)
{
	struct tailor_reaction_times *times = &worker->counters.reaction[reaction];
	unsigned int bucket = 0;

	while (bucket < TAILOR_REACTION_BUCKETS && ns > tailor_reaction_bucket_ns[bucket])
		bucket++;
	count(&times->count[bucket]);
	count_add(&times->ns_total, ns);
}

const char *tailor_reaction_name(enum tailor_reaction reaction)
{
	return reaction == TAILOR_REACTION_RETURN ? "return" : "stop";
}

void stopped_hand_over(struct worker *worker, struct attempt *attempt)
{
	struct standing *standing = &worker->server[attempt->from].standing;
	uint64_t now_ns;

	tailor_ring_submit(worker->ring);
	now_ns = tailor_clock_ns();
	count_reaction(worker, attempt->signal, now_ns > attempt->signal_ns ? now_ns - attempt->signal_ns : 0);
	/* Not where it had to connect first, and another stop has begun meanwhile, or the same one was believed to be over. */
	if (standing->kind != TAILOR_STOP_NONE && attempt->stop_ns == standing->noticed_ns)
		standing->handed_ns = now_ns;
	attempt->signal_ns = 0;
}

void stopped_gone(struct worker *worker, unsigned int index, uint64_t alive_ns)
{
	if (!stopped_matters(worker, TAILOR_STOP_GONE))
		return;
	worker->server[index].gone_ns = worker->now_ns + GONE_NS;
	worker->server[index].alive_ns = alive_ns;
}

/* Nobody will answer these any more; what has been answered in part is here, or will be, and its connection's end tells the rest. */
static void fail_in_flight(struct worker *worker, unsigned int index)
{
	struct server *server = &worker->server[index];
	struct upstream *next;

	server->gone_ns = 0;
	for (struct upstream *upstream = server->in_flight; upstream; upstream = next) {
		const struct attempt *attempt = &upstream->client->exchange.attempt[upstream->attempt];

		next = upstream->next;
		if (upstream->state == UPSTREAM_BUSY && upstream->connected_ns <= server->alive_ns && !attempt->answered)
			exchange_attempt_failed(worker, upstream, TAILOR_ATTEMPT_END_CLOSED);
	}
}

void stopped_alarms(struct worker *worker)
{
	for (unsigned int i = 0; i < worker->options->servers; i++) {
		struct server *server = &worker->server[i];

		if (server->gone_ns && worker->now_ns >= server->gone_ns)
			fail_in_flight(worker, i);
		if (worker->now_ns < server->standing.again_ns)
			continue;
		/* What follows is not late by what was waited for on purpose. */
		if (!server->standing.lasting) {
			server->standing.signal_ns = server->standing.again_ns;
			server->standing.signal = TAILOR_REACTION_STOP;
		}
		judge(worker, i);
	}
}

uint64_t stopped_next_ns(const struct worker *worker)
{
	uint64_t next_ns = UINT64_MAX;

	for (unsigned int i = 0; i < worker->options->servers; i++) {
		const struct server *server = &worker->server[i];

		if (server->standing.again_ns < next_ns)
			next_ns = server->standing.again_ns;
		if (server->gone_ns && server->gone_ns < next_ns)
			next_ns = server->gone_ns;
	}
	return next_ns;
}
