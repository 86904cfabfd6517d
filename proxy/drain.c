/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/drain.h"

#define MS UINT64_C(1000000)
/* What is told to be less exact than that says nothing. */
#define LEAD_NS_MAX (500 * MS)
/* Of looks that come late, and of what is told between two of them. */
#define MARGIN_NS (2 * DRAIN_LOOK_NS)
/* Where it is not known how long requests take; and beyond which a drain does not wait for them. */
#define SERVICE_NS_UNKNOWN (10 * MS)
#define SERVICE_NS_MAX (250 * MS)
/* Where it is not known how long a collection takes. */
#define STOP_NS_UNKNOWN (100 * MS)
/* A shorter one is not worth a drain. */
#define STOP_NS_MIN MS
/* For a young collection that is wished for what is left of eden is filled: so long takes all of it, and a wish in any case. */
#define FILL_NS (50 * MS)
#define GRANT_NS (5 * MS)
#define WISH_NS (1000 * MS)
/* Whoever may wish begins so much earlier: then it is he who says when. */
#define EARLIER_NS (10 * MS)
/* How long a server may take to empty, times what a request takes. */
#define EMPTYING_TIMES 4
/* How long an empty server waits for a collection that cannot be wished for. */
#define EMPTY_NS_MIN (20 * MS)
#define EMPTY_NS_MAX (250 * MS)
/* Who allocates so much more than another one makes no room for that one's sake. */
#define MORE_TIMES 1.25
/* A collection that takes longer is not waited for: requests avoid a server that stands still anyway. */
#define COLLECTING_NS_MAX (10000 * MS)
/* When it has collected as wished for, the word of that may be so much later. */
#define GRANTED_NS (100 * MS)
/* What it allocates without requests is seen after so long, and believed for so long. */
#define IDLE_NS_MIN (10 * MS)
#define IDLE_NS (10000 * MS)
#define IDLE_TIMES 1.5
/* For how many times as long as it was drained a server is left alone, twice that each time that it was of no use. */
#define HOLD_TIMES 4
#define HOLD_NS_MIN (50 * MS)
#define HOLD_VAIN_NS_MIN (200 * MS)
#define HOLD_NS_MAX (10000 * MS)

static uint64_t service_ns(const struct drain_server *server)
{
	uint64_t ns = server->service_ns ? server->service_ns : SERVICE_NS_UNKNOWN;

	return ns < SERVICE_NS_MAX ? ns : SERVICE_NS_MAX;
}

static bool may_wish(const struct drain_server *server)
{
	return server->predict && server->can != 0;
}

/*
 * How long before its collection a server is to be drained. One that cannot be asked to collect must do so by itself: not so early that
 * what it allocates without requests takes too long to fill the rest. 0: it would always be.
 */
static uint64_t lead_ns(const struct drain_server *server, const struct drained *held, const struct predict_next *next, uint64_t now_ns)
{
	uint64_t least_ns = service_ns(server) + DRAIN_LOOK_NS, ns = service_ns(server) + MARGIN_NS + next->error_ns;
	double rate = server->predict ? predict_rate(server->predict) : 0, most_ns;

	if (may_wish(server)) {
		ns += EARLIER_NS + next->error_ns;
		return ns < LEAD_NS_MAX ? ns : LEAD_NS_MAX;
	}
	ns = ns < EMPTY_NS_MAX / 2 ? ns : EMPTY_NS_MAX / 2;
	if (held->idle_until_ns <= now_ns || !(rate > 0))
		return ns;
	/* Nobody asks it anything: it meets nobody as it is. */
	if (server->predict->fast < IDLE_TIMES * held->idle_rate)
		return 0;
	most_ns = (double)EMPTY_NS_MAX / 2 * held->idle_rate / rate;
	if (most_ns >= (double)ns)
		return ns;
	return most_ns < (double)least_ns ? 0 : (uint64_t)most_ns;
}

/* How long it will take to bring a collection about. */
static uint64_t wish_ns(const struct drain_server *server)
{
	const struct tailor_jvm_heap *heap = &server->predict->last;
	uint64_t left = heap->young_size > heap->young_used ? heap->young_size - heap->young_used : 0;

	return GRANT_NS + (heap->young_size ? (uint64_t)((double)FILL_NS * (double)left / (double)heap->young_size) : 0);
}

/* How long it will be out of service. */
static uint64_t away_ns(const struct drain_server *server)
{
	return service_ns(server) + MARGIN_NS + (may_wish(server) ? wish_ns(server) : 0) +
	       (server->stop_known ? server->stop_ns : STOP_NS_UNKNOWN);
}

static struct predict_next next_of(const struct drain_server *server, uint64_t now_ns, double more)
{
	return server->predict ? predict_next(server->predict, now_ns, more) : (struct predict_next){.known = false};
}

static double rate_of(const struct drain_server *server)
{
	return server->predict ? predict_rate(server->predict) : 0;
}

/* Whether `other` can do the work of `server` for that long without a collection of its own, as far as is known. */
static bool stands_in(const struct drain_server *other, const struct drain_server *server, uint64_t for_ns, uint64_t now_ns)
{
	struct predict_next next = next_of(other, now_ns, rate_of(server));

	return other->runs && (!next.known || next.ns > for_ns + next.error_ns);
}

static bool is_replaceable(const struct drain_server *servers, unsigned int count, unsigned int server, uint64_t for_ns, uint64_t now_ns)
{
	for (unsigned int i = 0; i < count; i++) {
		if (i != server && stands_in(&servers[i], &servers[server], for_ns, now_ns))
			return true;
	}
	return false;
}

/* Whether it makes sense to drain it at all. */
static bool is_drainable(const struct drain *drain, const struct drain_server *servers, unsigned int server, uint64_t now_ns)
{
	const struct drain_server *its = &servers[server];

	return its->predict && its->runs && now_ns >= drain->held[server].hold_until_ns && !(its->stop_known && its->stop_ns < STOP_NS_MIN);
}

static bool is_near(const struct drain_server *server, const struct drained *held, uint64_t now_ns)
{
	struct predict_next next = next_of(server, now_ns, 0);

	return next.known && next.ns < lead_ns(server, held, &next, now_ns);
}

/*
 * Whether it had better collect now, as another one will soon want to, and only this one could stand in for that, but would have to
 * collect, too: it may have been the backup of the group with a heap nearly full, or both fill at the same rate.
 */
static bool makes_room(const struct drain *drain, const struct drain_server *servers, unsigned int count, unsigned int server,
                       uint64_t now_ns)
{
	const struct drain_server *its = &servers[server];

	for (unsigned int i = 0; may_wish(its) && i < count; i++) {
		uint64_t away = away_ns(&servers[i]), own = away_ns(its);
		struct predict_next next = next_of(&servers[i], now_ns, 0);
		uint64_t lead = lead_ns(&servers[i], &drain->held[i], &next, now_ns);

		if (i == server || !servers[i].runs || !next.known || is_near(&servers[i], &drain->held[i], now_ns) ||
		    its->predict->fast > MORE_TIMES * servers[i].predict->fast)
			continue;
		/* While this one is away the other one must neither collect nor come near to it; and soon that will not be so any more. */
		if (next.ns < 4 * (away + own) + 2 * lead && !is_replaceable(servers, count, i, own + lead + away, now_ns) &&
		    stands_in(&servers[i], its, own + lead, now_ns))
			return true;
	}
	return false;
}

int drain_choose(const struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns)
{
	uint64_t soonest_ns = UINT64_MAX;
	int chosen = -1;

	for (unsigned int i = 0; i < count; i++) {
		struct predict_next next = next_of(&servers[i], now_ns, 0);

		if (!is_drainable(drain, servers, i, now_ns) || !is_near(&servers[i], &drain->held[i], now_ns) || next.ns >= soonest_ns ||
		    !is_replaceable(servers, count, i, away_ns(&servers[i]), now_ns))
			continue;
		soonest_ns = next.ns;
		chosen = (int)i;
	}
	for (unsigned int i = 0; chosen < 0 && i < count; i++) {
		if (is_drainable(drain, servers, i, now_ns) && makes_room(drain, servers, count, i, now_ns) &&
		    is_replaceable(servers, count, i, away_ns(&servers[i]), now_ns))
			chosen = (int)i;
	}
	return chosen;
}

void drain_begin(struct drain *drain, unsigned int server, const struct drain_server *servers, uint64_t now_ns)
{
	struct predict_next next = next_of(&servers[server], now_ns, 0);

	drain->state = DRAIN_EMPTYING;
	drain->server = server;
	drain->began_ns = now_ns;
	drain->until_ns = now_ns + EMPTYING_TIMES * service_ns(&servers[server]) + MARGIN_NS;
	drain->due_ns = now_ns + (next.known ? next.ns + next.error_ns : 0);
	drain->pauses = servers[server].pauses;
	drain->wish = 0;
	drain->full = next.full;
}

/* What it allocated while there were no requests. */
static void learn_idle_rate(struct drain *drain, const struct drain_server *server, uint64_t now_ns)
{
	struct drained *held = &drain->held[drain->server];
	uint64_t used = server->predict->last.young_used;

	if (drain->wish || now_ns < drain->empty_ns + IDLE_NS_MIN)
		return;
	held->idle_rate = used > drain->empty_used ? (double)(used - drain->empty_used) / (double)(now_ns - drain->empty_ns) : 0;
	held->idle_until_ns = now_ns + IDLE_NS;
}

enum drain_action drain_end(struct drain *drain, enum drain_end how, uint64_t now_ns)
{
	uint64_t hold_ns = HOLD_TIMES * (now_ns - drain->began_ns);
	unsigned int *vain = &drain->held[drain->server].vain;

	drain->state = DRAIN_NONE;
	drain->end = how;
	if (how == DRAIN_MET || how == DRAIN_GONE) {
		*vain = 0;
		hold_ns = hold_ns < HOLD_NS_MIN ? HOLD_NS_MIN : hold_ns;
	} else {
		hold_ns = hold_ns < HOLD_VAIN_NS_MIN ? HOLD_VAIN_NS_MIN : hold_ns;
		hold_ns <<= *vain < 8 ? (*vain)++ : 8;
	}
	drain->held[drain->server].hold_until_ns = now_ns + (hold_ns < HOLD_NS_MAX ? hold_ns : HOLD_NS_MAX);
	return DRAIN_OVER;
}

/* Somebody else takes what arrives. */
static bool is_replaced(const struct drain_server *servers, unsigned int count, unsigned int server)
{
	for (unsigned int i = 0; i < count; i++) {
		if (i != server && servers[i].runs)
			return true;
	}
	return false;
}

static enum drain_action empty(struct drain *drain, const struct drain_server *server, uint64_t now_ns)
{
	uint64_t waits_ns = drain->due_ns + MARGIN_NS > now_ns ? drain->due_ns + MARGIN_NS - now_ns : 0;

	drain->state = DRAIN_EMPTY;
	drain->empty_ns = now_ns;
	drain->empty_used = server->predict->last.young_used;
	if (may_wish(server)) {
		enum tailor_jvm_wish what = drain->full && server->can & 1u << TAILOR_JVM_WISH_FULL ? TAILOR_JVM_WISH_FULL
		                            : server->can & 1u << TAILOR_JVM_WISH_YOUNG            ? TAILOR_JVM_WISH_YOUNG
		                                                                                    : TAILOR_JVM_WISH_FULL;

		drain->until_ns = now_ns + WISH_NS;
		drain->wish = TAILOR_JVM_WISH(what, drain->until_ns);
		return DRAIN_WISH;
	}
	waits_ns = waits_ns < EMPTY_NS_MIN ? EMPTY_NS_MIN : waits_ns > EMPTY_NS_MAX ? EMPTY_NS_MAX : waits_ns;
	drain->until_ns = now_ns + waits_ns;
	return DRAIN_WAIT;
}

static enum drain_action wait_for_it(struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns)
{
	const struct drain_server *server = &servers[drain->server];

	if (!is_replaced(servers, count, drain->server))
		return drain_end(drain, DRAIN_LEFT, now_ns);
	if (drain->state == DRAIN_EMPTYING && server->in_flight == 0)
		return empty(drain, server, now_ns);
	if (drain->state == DRAIN_EMPTY && drain->wish && server->granted == drain->wish)
		return drain_end(drain, DRAIN_FALSE, now_ns);
	if (drain->state == DRAIN_EMPTY)
		learn_idle_rate(drain, server, now_ns);
	if (now_ns >= drain->until_ns)
		return drain_end(drain, drain->state == DRAIN_EMPTYING ? DRAIN_LEFT : DRAIN_FALSE, now_ns);
	return DRAIN_WAIT;
}

enum drain_action drain_step(struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns)
{
	const struct drain_server *server = &servers[drain->server];

	if (!server->predict)
		return drain_end(drain, DRAIN_GONE, now_ns);
	if (drain->state != DRAIN_COLLECTING && server->pauses != drain->pauses) {
		drain->state = DRAIN_COLLECTING;
		drain->until_ns = now_ns + COLLECTING_NS_MAX;
	}
	if (drain->state != DRAIN_COLLECTING)
		return wait_for_it(drain, servers, count, now_ns);
	if (now_ns >= drain->until_ns)
		return drain_end(drain, DRAIN_MET, now_ns);
	if (server->collects)
		return DRAIN_WAIT;
	/* What fills eden stops when it sees the collection, and there may be a second one in the same stop. */
	if (drain->wish && server->granted != drain->wish) {
		if (drain->until_ns > now_ns + GRANTED_NS)
			drain->until_ns = now_ns + GRANTED_NS;
		return DRAIN_WAIT;
	}
	return drain_end(drain, DRAIN_MET, now_ns);
}

uint64_t drain_next_ns(const struct drain *drain, const struct drain_server *servers, unsigned int count, uint64_t now_ns)
{
	uint64_t wait_ns = DRAIN_LOOK_NS_MAX;

	if (drain->state != DRAIN_NONE)
		return now_ns + DRAIN_LOOK_NS;
	for (unsigned int i = 0; i < count; i++) {
		struct predict_next next = next_of(&servers[i], now_ns, 0);
		uint64_t lead = lead_ns(&servers[i], &drain->held[i], &next, now_ns), its_ns;

		if (!servers[i].predict || servers[i].predict->last.young_size == 0)
			continue;
		/* Sooner than expected, if more is allocated than now: what is left is looked at in parts. */
		its_ns = !next.known ? DRAIN_LOOK_NS_MAX / 8 : next.ns > lead ? (next.ns - lead) / 4 : 0;
		if (drain->held[i].hold_until_ns > now_ns + its_ns)
			its_ns = drain->held[i].hold_until_ns - now_ns;
		if (its_ns < wait_ns)
			wait_ns = its_ns;
	}
	return now_ns + (wait_ns < DRAIN_LOOK_NS ? DRAIN_LOOK_NS : wait_ns);
}
