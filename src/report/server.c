/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

const char *tailor_report_server(const struct tailor_timeline *timeline, const struct tailor_span *span)
{
	for (size_t i = (size_t)(span - timeline->spans); i < timeline->span_count; i++) {
		if (timeline->spans[i].cause == TAILOR_CAUSE_FAILOVER_WAIT)
			return timeline->spans[i].thread;
	}
	return timeline->request.server;
}
