/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/failover.h"

static struct failover_verdict not_moved(enum failover_action action, enum tailor_not_moved why)
{
	return (struct failover_verdict){.action = action, .why = why};
}

bool failover_stop_lasts(const struct failover_stop *stop)
{
	if (stop->when == TAILOR_PROXY_REPLAY_ALWAYS)
		return true;
	if (!stop->rest.known)
		return stop->lasted_ns >= FAILOVER_UNKNOWN_NS;
	return stop->rest.ns > stop->service_ns + FAILOVER_MARGIN_NS;
}

/* The server stopped but will go on: waiting is always possible, so any doubt means waiting. */
static struct failover_verdict judge_pause(const struct failover_case *c)
{
	if (!c->enabled)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_OFF);
	if (!c->other_exists)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_NO_BACKUP);
	if (c->response_begun)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_BEGUN);
	if (!c->method_allowed)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_METHOD);
	if (!c->request_complete || !c->request_kept)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_BODY);
	if (c->attempts >= c->attempts_max)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_ATTEMPTS);
	if (c->other_down)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_DOWN);
	if (c->other_paused)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_BOTH_PAUSED);
	/* Last, so that what counts as short is what would have been moved. */
	if (!c->lasts)
		return not_moved(FAILOVER_WAIT, TAILOR_NOT_MOVED_SHORT);
	return (struct failover_verdict){.action = FAILOVER_REPLAY};
}

/* Nothing of the request has reached a server, so that any method may go elsewhere, a paused server included. */
static struct failover_verdict judge_connect(const struct failover_case *c)
{
	if (!c->other_exists)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_NO_BACKUP);
	if (!c->request_kept)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_BODY);
	if (c->attempts >= c->attempts_max)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_ATTEMPTS);
	if (c->other_down)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_DOWN);
	return (struct failover_verdict){.action = FAILOVER_REPLAY};
}

/* The server may have acted on the request: only what may be sent twice, and only once, so that a request that
 * kills servers does not walk through all of them. What is still to come of it goes to the other one only. */
static struct failover_verdict judge_closed(const struct failover_case *c)
{
	if (c->response_begun)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_BEGUN);
	if (!c->method_allowed)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_METHOD);
	if (!c->request_kept)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_BODY);
	if (c->retried || c->attempts >= c->attempts_max)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_ATTEMPTS);
	if (c->stale_connection)
		return (struct failover_verdict){.action = FAILOVER_REPLAY};
	if (!c->other_exists)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_NO_BACKUP);
	if (c->other_down)
		return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_DOWN);
	return (struct failover_verdict){.action = FAILOVER_REPLAY};
}

struct failover_verdict failover_judge(const struct failover_case *c)
{
	switch (c->reason) {
	case TAILOR_FAILOVER_GC:
	case TAILOR_FAILOVER_SAFEPOINT:
	case TAILOR_FAILOVER_STALL: return judge_pause(c);
	case TAILOR_FAILOVER_CONNECT: return judge_connect(c);
	case TAILOR_FAILOVER_CLOSED: return judge_closed(c);
	case TAILOR_FAILOVER_NONE: break;
	}
	return not_moved(FAILOVER_FAIL, TAILOR_NOT_MOVED_ATTEMPTS);
}

const char *tailor_not_moved_name(enum tailor_not_moved reason)
{
	switch (reason) {
	case TAILOR_NOT_MOVED_OFF: return "off";
	case TAILOR_NOT_MOVED_NO_BACKUP: return "no-backup";
	case TAILOR_NOT_MOVED_BOTH_PAUSED: return "both-paused";
	case TAILOR_NOT_MOVED_METHOD: return "method";
	case TAILOR_NOT_MOVED_BODY: return "body";
	case TAILOR_NOT_MOVED_BEGUN: return "begun";
	case TAILOR_NOT_MOVED_ATTEMPTS: return "attempts";
	case TAILOR_NOT_MOVED_DOWN: return "down";
	case TAILOR_NOT_MOVED_REPLAY_FULL: return "replay-full";
	case TAILOR_NOT_MOVED_FULL: return "full";
	case TAILOR_NOT_MOVED_SHORT: return "short";
	case TAILOR_NOT_MOVED_BUDGET: return "budget";
	case TAILOR_NOT_MOVED_REASONS: break;
	}
	return "unknown";
}
