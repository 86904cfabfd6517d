/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "observer/running.h"

uint64_t observer_wall_of(uint64_t ns)
{
	return tailor_clock_wall_ns() - (tailor_clock_ns() - ns);
}

static void log_access(struct tailor_observer *observer, const struct tailor_record *record)
{
	int server = observer_answering(observer, record);
	struct tailor_record named = *record;

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
	if (observer->baseline_rate.left < 1)
		return 0;
	tailor_budget_spend(&observer->baseline_rate, 1);
	return 1;
}

void observer_ended(void *context, size_t worker, const struct tailor_record *record)
{
	struct tailor_observer *observer = context;
	const struct tailor_request *request = &record->request;
	enum tailor_slow_verdict verdict = tailor_slow_judge(&observer->slow_rule, request->id, request->end_ns - request->begin_ns);

	observer_count(&observer->ended, 1);
	if (observer_answering(observer, record) >= 0)
		tailor_latency_count(&observer->latency[observer_answering(observer, record)], request->end_ns - request->begin_ns);
	if (observer->options.access_log)
		log_access(observer, record);
	if (verdict == TAILOR_SLOW_SKIP)
		return;
	if (verdict == TAILOR_SLOW_KEEP)
		observer_count(&observer->slow, 1);
	else if (!draw_baseline(observer, request->end_ns))
		return;
	if (observer->queued == QUEUE_MAX) {
		if (verdict == TAILOR_SLOW_KEEP)
			observer_omit(observer, &observer->not_stored, 1);
		return;
	}
	observer->queue[observer->queued++] = (struct tailor_queued){
		.record = *record,
		.worker = worker,
		.kept = verdict == TAILOR_SLOW_KEEP ? TAILOR_KEPT_SLOW : TAILOR_KEPT_BASELINE,
	};
}
