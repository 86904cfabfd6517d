/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/slow.h"

/* Spreads ids, which may be consecutive, evenly (the finalizer of SplitMix64; Steele, Lea, Flood 2014). */
static uint64_t spread(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

enum tailor_slow_verdict tailor_slow_judge(const struct tailor_slow_rule *rule, uint64_t request, uint64_t latency_ns)
{
	if (latency_ns >= rule->threshold_ns)
		return TAILOR_SLOW_KEEP;
	if (rule->baseline_one_in > 0 && spread(request) % rule->baseline_one_in == 0)
		return TAILOR_SLOW_KEEP_BASELINE;
	return TAILOR_SLOW_SKIP;
}
