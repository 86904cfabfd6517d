/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/standstill.h"

#include <stdio.h>

/* The pause that made the proxy move the request: the last one that had begun; NULL when it was not recorded. */
static const struct pause *pause_before(const struct correlation *correlation, uint32_t pid, uint64_t send_ns,
                                        uint64_t moved_ns)
{
	const struct pause *pause = pid ? pauses_after(&correlation->pauses, pid, send_ns) : NULL;
	const struct pause *found = NULL;

	for (; pause && pause->start_ns <= moved_ns; pause = pauses_next(&correlation->pauses, pause))
		found = pause->cause == TAILOR_CAUSE_GC ? pause : found;
	return found;
}

/*
 * The same for any stop of the JVM: of the pieces that it is recorded in, the collection, if it was one, also where that only began after
 * the move; else the last before it. *ret_start_ns: when the first of these pieces began.
 */
static const struct pause *stop_before(const struct correlation *correlation, uint32_t pid, uint64_t send_ns, uint64_t moved_ns,
                                       uint64_t *ret_start_ns)
{
	const struct pause *pause = pid ? pauses_after(&correlation->pauses, pid, send_ns) : NULL, *found = NULL;
	uint64_t end_ns = 0;

	for (; pause; pause = pauses_next(&correlation->pauses, pause)) {
		int goes_on = found && pause->start_ns <= end_ns;

		if (pause->beside)
			continue;
		if (pause->start_ns > moved_ns && !goes_on)
			break;
		if (!goes_on)
			*ret_start_ns = pause->start_ns;
		if (!goes_on || pause->cause == TAILOR_CAUSE_GC || (found->cause != TAILOR_CAUSE_GC && pause->start_ns <= moved_ns))
			found = pause;
		end_ns = pause->end_ns;
	}
	return found;
}

/* When the first of those of the process's threads was stopped that still were at moved_ns; 0: none was, as far as is recorded. */
static uint64_t signal_before(const struct correlation *correlation, uint32_t pid, uint64_t moved_ns)
{
	const struct thread_index *index = &correlation->index;
	uint64_t stopped_ns = 0;

	for (size_t i = 0; pid && i < index->thread_count; i++) {
		const struct thread_events *thread = &index->threads[i];
		uint32_t until = thread->pid == pid ? thread_entries_until(index, thread, moved_ns) : 0;
		const struct tailor_event *last = until > 0 ? thread_entry_event(index, thread, until - 1) : NULL;

		if (last && last->kind == TAILOR_EVENT_SWITCH_OUT && TAILOR_SWITCH_STATE(last->extra) == TAILOR_TASK_STOPPED &&
		    (!stopped_ns || last->time_ns < stopped_ns))
			stopped_ns = last->time_ns;
	}
	return stopped_ns;
}

struct standstill standstill_before(const struct correlation *correlation, uint32_t pid, uint64_t send_ns,
                                    const struct tailor_attempt *next)
{
	struct standstill standstill = {.reason = (enum tailor_failover_reason)next->reason};

	switch (standstill.reason) {
	case TAILOR_FAILOVER_GC:
		standstill.pause = pause_before(correlation, pid, send_ns, next->begin_ns);
		standstill.start_ns = standstill.pause ? standstill.pause->start_ns : 0;
		break;
	case TAILOR_FAILOVER_SAFEPOINT:
		standstill.pause = stop_before(correlation, pid, send_ns, next->begin_ns, &standstill.start_ns);
		break;
	case TAILOR_FAILOVER_STALL: standstill.start_ns = signal_before(correlation, pid, next->begin_ns); break;
	default: break;
	}
	return standstill;
}

void standstill_describe(const struct standstill *standstill, char *buffer, size_t size)
{
	const struct pause *pause = standstill->pause;
	char collector[48] = "";

	if (standstill->reason == TAILOR_FAILOVER_STALL) {
		snprintf(buffer, size, "%s", standstill->start_ns ? "was stopped by a signal" : "stood still without a heartbeat");
	} else if (standstill->reason == TAILOR_FAILOVER_SAFEPOINT && (!pause || pause->cause != TAILOR_CAUSE_GC)) {
		snprintf(buffer, size, "stopped its threads%s%s%s", pause && pause->operation ? " (" : "",
		         pause && pause->operation ? pause->operation : "", pause && pause->operation ? ")" : "");
	} else {
		if (pause)
			pause_collector(pause, collector, sizeof(collector));
		snprintf(buffer, size, "paused%s%s%s", collector[0] ? " (" : "", collector, collector[0] ? ")" : "");
	}
}
