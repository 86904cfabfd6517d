/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are worth a timeline. Pure. */
#ifndef TAILOR_CORRELATE_SLOW_H
#define TAILOR_CORRELATE_SLOW_H

#include <stdint.h>
#include <tailor/timeline.h>

struct tailor_slow_rule {
	uint64_t threshold_ns;
	uint32_t baseline_one_in; /* one in N of the others is kept to compare with; 0: none */
};

enum tailor_slow_verdict {
	TAILOR_SLOW_SKIP = 0,
	TAILOR_SLOW_KEEP = 1,          /* slow */
	TAILOR_SLOW_KEEP_BASELINE = 2, /* ordinary, drawn as the one in N (by the request's id, so that it is repeatable) */
};

enum tailor_slow_verdict tailor_slow_judge(const struct tailor_slow_rule *rule, uint64_t request, uint64_t latency_ns);

#endif /* TAILOR_CORRELATE_SLOW_H */
