/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's runtimeService.cpp raises, in this order: `begun` when it begins to stop the threads, `stopping` by the
 * time it took when all have stopped, `stopped` by the whole time when it lets them go on. So the time to stop of the
 * safepoint that we are in is the growth of `stopping` since any moment before its begin and after the end of the one
 * before. Two sources know such a moment:
 *
 * - the VM Thread itself, when a pause ends: nothing but that safepoint's end is to come before the next begins.
 * - the beat. It reads `stopped`, `stopping` and `begun` in this order. If later, inside a safepoint, `begun` is
 *   just one more and `stopped` the same, then nothing ended since the first read; so nothing was under way in between
 *   either, as that would have had to end before this one began.
 */
#include "safepoints.h"

#include <tailor/event.h>

#include "notify.h"
#include "perfdata.h"

/* The last beat's counters under a sequence lock: odd while they are being written. */
static struct {
	uint32_t sequence;
	struct perfdata_safepoints at;
} beat;

static struct perfdata_safepoints pause; /* at the last pause's end; only the VM Thread touches it */
static struct perfdata_safepoints told;  /* what events have said; only the beating thread touches it */
static int opened;                       /* atomic */

void safepoints_open(void)
{
	struct perfdata_safepoints now;

	if (perfdata_safepoints(&now) < 0)
		return;
	told = now;
	/* No pause has ended; one that is under way would have begun with another number. */
	pause.begun = UINT64_MAX;
	__atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
}

static void publish_beat(const struct perfdata_safepoints *now)
{
	uint32_t sequence = beat.sequence;

	__atomic_store_n(&beat.sequence, sequence + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&beat.at.begun, now->begun, __ATOMIC_RELAXED);
	__atomic_store_n(&beat.at.stopping_ns, now->stopping_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&beat.at.stopped_ns, now->stopped_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&beat.sequence, sequence + 2, __ATOMIC_RELEASE);
}

/* 1 with the last beat's counters, 0 where there are none or they are just being written. Never waits. */
static int last_beat(struct perfdata_safepoints *ret_at)
{
	uint32_t sequence = __atomic_load_n(&beat.sequence, __ATOMIC_ACQUIRE);

	if (!sequence || (sequence & 1))
		return 0;
	ret_at->begun = __atomic_load_n(&beat.at.begun, __ATOMIC_RELAXED);
	ret_at->stopping_ns = __atomic_load_n(&beat.at.stopping_ns, __ATOMIC_RELAXED);
	ret_at->stopped_ns = __atomic_load_n(&beat.at.stopped_ns, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&beat.sequence, __ATOMIC_RELAXED) == sequence;
}

uint64_t safepoints_time_to_stop_ns(void)
{
	struct perfdata_safepoints now, before;

	if (!__atomic_load_n(&opened, __ATOMIC_ACQUIRE) || perfdata_safepoints(&now) < 0)
		return 0;
	if (now.begun == pause.begun)
		return 0; /* the second pause in the same stop */
	if (now.begun == pause.begun + 1)
		return now.stopping_ns - pause.stopping_ns;
	if (last_beat(&before) && now.begun == before.begun + 1 && now.stopped_ns == before.stopped_ns)
		return now.stopping_ns - before.stopping_ns;
	return 0;
}

void safepoints_pause_ended(void)
{
	if (__atomic_load_n(&opened, __ATOMIC_ACQUIRE))
		perfdata_safepoints(&pause);
}

void safepoints_beat(uint32_t tid)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_SAFEPOINTS};
	struct perfdata_safepoints now;

	if (!__atomic_load_n(&opened, __ATOMIC_ACQUIRE) || perfdata_safepoints(&now) < 0)
		return;
	publish_beat(&now);
	/* One that has only begun is told when it has ended, if it is the only one. */
	if (now.stopped_ns == told.stopped_ns)
		return;
	event.arg[0] = now.begun - told.begun;
	event.arg[1] = now.stopped_ns - told.stopped_ns;
	event.arg[2] = now.stopping_ns - told.stopping_ns;
	told = now;
	notify_event(&event, tid, clock_ns(), NULL, 0);
}
