/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "observer/running.h"

uint64_t observer_wall_of(uint64_t ns)
{
	return tailor_clock_wall_ns() - (tailor_clock_ns() - ns);
}

/* A line also names a server that failed. */
static void log_access(struct tailor_observer *observer, const struct tailor_record *record)
{
	int server = observer_answering(observer, record), failed = tailor_failed_attempt(record);
	struct tailor_record named = *record;

	if (server < 0 && failed >= 0 && record->attempt[failed].server < observer->options.servers)
		server = record->attempt[failed].server;
	if (server >= 0)
		snprintf(named.request.server, sizeof(named.request.server), "%s", observer->options.server[server].name);
	tailor_accesslog_add(observer->options.access_log, &named, observer_wall_of(record->request.begin_ns));
}

void observer_omit(struct tailor_observer *observer, atomic_uint_fast64_t *why, uint64_t requests)
{
	observer_count(why, requests);
	observer->omitted += requests;
}

static int draw_baseline(struct tailor_observer *observer, uint64_t now_ns)
{
	tailor_budget_fill(&observer->baseline_rate, now_ns);
	tailor_budget_fill(&observer->baseline_cpu, now_ns);
	if (observer->baseline_rate.left < 1 || observer->baseline_cpu.left <= 0)
		return 0;
	tailor_budget_spend(&observer->baseline_rate, 1);
	return 1;
}

/* Puts a request that is worth a timeline into the queue; if that is full, it is counted. */
static void enqueue(struct tailor_observer *observer, const struct tailor_queued *queued)
{
	if (observer->queued < QUEUE_MAX)
		observer->queue[observer->queued++] = *queued;
	else if (queued->suspected)
		observer_count(&observer->unjudged, 1);
	else if (queued->kept == TAILOR_KEPT_SLOW)
		observer_omit(observer, &observer->not_stored, 1);
}

/* Judges by what the proxy saw; and where it may have seen the request's begin late, by the worst that may have been. */
static enum tailor_slow_verdict judge(const struct tailor_slow_rule *rule, const struct tailor_record *record, int *ret_suspected)
{
	const struct tailor_request *request = &record->request;
	enum tailor_slow_verdict verdict = tailor_slow_judge(rule, request->id, request->end_ns - request->begin_ns);

	*ret_suspected = verdict != TAILOR_SLOW_KEEP && record->late_from_ns && record->late_from_ns < request->begin_ns &&
	                 request->end_ns - record->late_from_ns >= rule->threshold_ns;
	return *ret_suspected ? TAILOR_SLOW_KEEP : verdict;
}

void observer_ended(void *context, size_t worker, const struct tailor_record *record)
{
	struct tailor_observer *observer = context;
	const struct tailor_request *request = &record->request;
	int server = observer_answering(observer, record), suspected;
	enum tailor_slow_verdict verdict;

	observer_count(&observer->ended, 1);
	if (server >= 0)
		tailor_latency_count(&observer->latency[server], request->end_ns - request->begin_ns);
	tailor_failovers_ended(&observer->failovers, record);
	if (observer->options.access_log)
		log_access(observer, record);
	verdict = judge(&observer->slow_rule, record, &suspected);
	if (verdict == TAILOR_SLOW_SKIP || (verdict == TAILOR_SLOW_KEEP_BASELINE && !draw_baseline(observer, request->end_ns)))
		return;
	if (verdict == TAILOR_SLOW_KEEP && !suspected)
		observer_count(&observer->slow, 1);
	enqueue(observer, &(struct tailor_queued){
		.record = *record,
		.worker = worker,
		.kept = verdict == TAILOR_SLOW_KEEP ? TAILOR_KEPT_SLOW : TAILOR_KEPT_BASELINE,
		.suspected = suspected,
	});
}
