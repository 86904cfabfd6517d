/* SPDX-License-Identifier: Apache-2.0 */
#include "observer/failovers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(TAILOR_STOP_SERVERS <= 64, "servers are bits of a word");

int tailor_failovers_init(struct tailor_failovers *failovers)
{
	memset(failovers, 0, sizeof(*failovers));
	failovers->moves = calloc(TAILOR_FAILOVERS_MOVES, sizeof(*failovers->moves));
	return failovers->moves ? 0 : -ENOMEM;
}

void tailor_failovers_free(struct tailor_failovers *failovers)
{
	free(failovers->moves);
}

static uint64_t worker_bit(size_t worker)
{
	return worker < TAILOR_FAILOVERS_WORKERS ? UINT64_C(1) << worker : 0;
}

static uint64_t apart_ns(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * The stop that this is about; NULL: nobody has told of it. A worker that looks late may see one end only after the next has begun:
 * of two that it may be, it is the one that began more nearly then, and never one that the same worker has told of.
 */
static struct joined *find(struct tailor_failovers *failovers, size_t worker, const struct tailor_stopped *stopped)
{
	struct joined *found = NULL;

	for (size_t i = 0; i < failovers->count && worker_bit(worker); i++) {
		struct joined *joined = &failovers->open[i];
		const struct tailor_failover *failover = &joined->failover;

		if (joined->server != stopped->server || (joined->workers & worker_bit(worker)) ||
		    stopped->begin_ns > failover->end_ns || stopped->end_ns < failover->begin_ns)
			continue;
		if (!found || apart_ns(failover->begin_ns, stopped->begin_ns) < apart_ns(found->failover.begin_ns, stopped->begin_ns))
			found = joined;
	}
	return found;
}

/* The more of two kinds told of one stop: what befalls a process explains what its JVM does, and a collection is also a safepoint. */
static enum tailor_stop_kind more_of(enum tailor_stop_kind a, enum tailor_stop_kind b)
{
	static const enum tailor_stop_kind order[] = {TAILOR_STOP_GONE, TAILOR_STOP_SIGNAL,    TAILOR_STOP_STALL,
	                                              TAILOR_STOP_GC,   TAILOR_STOP_SAFEPOINT, TAILOR_STOP_NONE};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (a == order[i] || b == order[i])
			return order[i];
	}
	return a;
}

/* Makes `begin_ns` the stop's begin; what is counted from there stays when it was. */
static void begin_earlier(struct tailor_failover *failover, uint64_t begin_ns)
{
	uint64_t earlier_ns = failover->begin_ns - begin_ns;

	failover->begin_ns = begin_ns;
	failover->noticed_ns += earlier_ns;
	failover->reacted_ns += failover->reacted_ns ? earlier_ns : 0;
}

static void add_times(struct tailor_failover *failover, const struct tailor_stopped *stopped)
{
	uint64_t later_ns, noticed_ns;

	if (stopped->begin_ns < failover->begin_ns)
		begin_earlier(failover, stopped->begin_ns);
	later_ns = stopped->begin_ns - failover->begin_ns;
	noticed_ns = later_ns + stopped->noticed_ns;
	if (noticed_ns < failover->noticed_ns) {
		failover->noticed_ns = noticed_ns;
		failover->noticed = stopped->kind;
	}
	if (stopped->replayed_ns && later_ns + stopped->replayed_ns > failover->reacted_ns)
		failover->reacted_ns = later_ns + stopped->replayed_ns;
	if (stopped->end_ns < failover->end_ns)
		failover->end_ns = stopped->end_ns;
}

static void add(struct joined *joined, size_t worker, const struct tailor_stopped *stopped)
{
	struct tailor_failover *failover = &joined->failover;
	unsigned int why = stopped->why_not < TAILOR_FAILOVERS_REASONS ? stopped->why_not : TAILOR_FAILOVERS_REASONS - 1;

	add_times(failover, stopped);
	failover->kind = more_of(failover->kind, stopped->kind);
	if (stopped->cause[0] && !failover->cause[0])
		memcpy(failover->cause, stopped->cause, sizeof(failover->cause));
	/* Only collections have causes. */
	if (failover->cause[0])
		failover->kind = more_of(failover->kind, TAILOR_STOP_GC);
	failover->workers++;
	failover->in_flight += stopped->in_flight;
	failover->moved += stopped->moved;
	failover->not_moved += stopped->not_moved;
	joined->not_moved[why] += stopped->not_moved;
	joined->workers |= worker_bit(worker);
	if (stopped->end_ns > joined->told_ns)
		joined->told_ns = stopped->end_ns;
}

/* Its end is when somebody knew: where the server stopped again before that, it had run until then. */
static void end_before(struct tailor_failovers *failovers, const struct joined *next)
{
	for (size_t i = 0; i < failovers->count; i++) {
		struct tailor_failover *failover = &failovers->open[i].failover;

		if (failovers->open[i].server == next->server && failover->begin_ns < next->failover.begin_ns &&
		    failover->end_ns > next->failover.begin_ns)
			failover->end_ns = next->failover.begin_ns;
	}
}

void tailor_failovers_stopped(struct tailor_failovers *failovers, size_t worker, const struct tailor_stopped *stopped)
{
	struct joined *joined = find(failovers, worker, stopped);

	if (!joined) {
		assert(failovers->count < TAILOR_FAILOVERS_OPEN);
		joined = &failovers->open[failovers->count++];
		*joined = (struct joined){.server = stopped->server,
		                          .failover = {.begin_ns = stopped->begin_ns,
		                                       .end_ns = stopped->end_ns,
		                                       .noticed_ns = UINT64_MAX,
		                                       .kind = stopped->kind,
		                                       .noticed = stopped->kind}};
	}
	add(joined, worker, stopped);
	end_before(failovers, joined);
}

static int is_stop(uint16_t reason)
{
	return reason == TAILOR_FAILOVER_GC || reason == TAILOR_FAILOVER_SAFEPOINT || reason == TAILOR_FAILOVER_STALL;
}

void tailor_failovers_ended(struct tailor_failovers *failovers, const struct tailor_record *record)
{
	uint64_t been_at = 0, left = 0, answered;

	if (record->attempts < 2 || record->answered < 0)
		return;
	answered = UINT64_C(1) << record->attempt[record->answered].server % 64;
	for (unsigned int i = 0; i < record->attempts; i++) {
		const struct tailor_attempt *attempt = &record->attempt[i];
		/* With a second move it leaves the server that it was moved to: of the first one it has not come back. */
		uint64_t leaves = been_at & ~left & ~answered;

		if (i > 0 && leaves && is_stop(attempt->reason)) {
			failovers->moves[failovers->move] = (struct moved){
			        .moved_ns = attempt->begin_ns, .end_ns = record->request.end_ns, .servers = leaves};
			failovers->move = (failovers->move + 1) % TAILOR_FAILOVERS_MOVES;
			left |= leaves;
		}
		been_at |= UINT64_C(1) << attempt->server % 64;
	}
}

/* A request counts for one stop of a server: it is taken out of those that do for others. */
static void add_saved(struct tailor_failovers *failovers, unsigned int server, struct tailor_failover *failover)
{
	uint64_t bit = UINT64_C(1) << server % 64;

	for (size_t i = 0; i < TAILOR_FAILOVERS_MOVES; i++) {
		struct moved *moved = &failovers->moves[i];

		if (!(moved->servers & bit) || moved->moved_ns < failover->begin_ns || moved->moved_ns > failover->end_ns)
			continue;
		moved->servers &= ~bit;
		if (moved->end_ns >= failover->end_ns)
			continue;
		failover->saved_ns += failover->end_ns - moved->end_ns;
		failover->saved_requests++;
	}
}

void tailor_failovers_collected(struct tailor_failovers *failovers, unsigned int server, uint64_t start_ns, uint64_t end_ns, const char *text)
{
	struct collected *collected = &failovers->collected[server % TAILOR_STOP_SERVERS];
	const char *tab = strchr(text, '\t');

	collected->list[collected->next].start_ns = start_ns;
	collected->list[collected->next].end_ns = end_ns;
	snprintf(collected->list[collected->next].cause, sizeof(collected->list[0].cause), "%s",
	         tab && strcmp(tab + 1, "unknown") != 0 ? tab + 1 : "");
	collected->next = (collected->next + 1) % TAILOR_FAILOVERS_COLLECTIONS;
}

/* A stop in which the JVM collected was for that; of several collections in one, the longest says why. */
static void name_collection(const struct tailor_failovers *failovers, unsigned int server, struct tailor_failover *failover)
{
	const struct collected *collected = &failovers->collected[server % TAILOR_STOP_SERVERS];
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < TAILOR_FAILOVERS_COLLECTIONS; i++) {
		uint64_t start_ns = collected->list[i].start_ns, end_ns = collected->list[i].end_ns;

		if (end_ns < failover->begin_ns || start_ns > failover->end_ns || end_ns <= start_ns)
			continue;
		failover->kind = more_of(failover->kind, TAILOR_STOP_GC);
		if (collected->list[i].cause[0] && end_ns - start_ns > longest_ns) {
			longest_ns = end_ns - start_ns;
			memcpy(failover->cause, collected->list[i].cause, sizeof(failover->cause));
		}
	}
	/* Of what a stopped process was at, the cause is not why it stood still. */
	if (failover->kind != TAILOR_STOP_GC)
		memset(failover->cause, 0, sizeof(failover->cause));
}

static size_t oldest_of(const struct tailor_failovers *failovers)
{
	size_t oldest = 0;

	for (size_t i = 1; i < failovers->count; i++) {
		if (failovers->open[i].told_ns < failovers->open[oldest].told_ns)
			oldest = i;
	}
	return oldest;
}

int tailor_failovers_settled(struct tailor_failovers *failovers, uint64_t now_ns, struct tailor_failover *ret_failover,
                             unsigned int *ret_server, unsigned int *ret_why_not)
{
	size_t oldest = oldest_of(failovers);
	struct joined *joined = &failovers->open[oldest];

	if (failovers->count == 0)
		return 0;
	if (failovers->count < TAILOR_FAILOVERS_OPEN &&
	    (now_ns < joined->told_ns || now_ns - joined->told_ns < TAILOR_FAILOVER_SETTLE_NS))
		return 0;
	*ret_failover = joined->failover;
	*ret_server = joined->server;
	*ret_why_not = 0;
	for (unsigned int why = 1; why < TAILOR_FAILOVERS_REASONS; why++)
		*ret_why_not = joined->not_moved[why] > joined->not_moved[*ret_why_not] ? why : *ret_why_not;
	name_collection(failovers, joined->server, ret_failover);
	/* That of a process that has ended would not have been waited for. */
	if (ret_failover->kind != TAILOR_STOP_GONE)
		add_saved(failovers, joined->server, ret_failover);
	failovers->count--;
	memmove(joined, joined + 1, (failovers->count - oldest) * sizeof(*joined));
	return 1;
}
