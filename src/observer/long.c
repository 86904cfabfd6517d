/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "observer/running.h"

/* Slots held of all channels together: 32 MiB. */
#define HELD_MAX ((size_t)512 << 10)
/* A request that is open for longer holds nothing any more: it may be one that stays open for days, or its end was lost. */
#define HELD_NS (60 * TAILOR_NS_PER_S)
/*
 * Of a request that has been open for less, the rings still have enough, or it is too late. Of others everything is copied at once: this
 * thread is the first that has to wait when there is no CPU.
 */
#define SHORT_NS (100 * TAILOR_NS_PER_MS)
/* What a copied slot costs, about: a cache miss that was asked for in time. */
#define COPY_NS 30
/* How far copying may overdraw the budget that it shares with timelines, before it must wait, too. */
#define OVERDRAFT_NS (100 * TAILOR_NS_PER_MS)
#define POLL_NS_MIN (2 * TAILOR_NS_PER_MS)

int observer_long_init(struct tailor_observer *observer)
{
	observer->hold_room = HELD_MAX;
	observer->holds = calloc(observer->options.cpus + observer->options.servers + 1, sizeof(*observer->holds));
	return observer->holds ? 0 : -ENOMEM;
}

void observer_long_free(struct tailor_observer *observer)
{
	for (size_t i = 0; observer->holds && i < observer->options.cpus + observer->options.servers; i++)
		tailor_hold_drop(&observer->holds[i], &observer->hold_room);
	free(observer->holds);
}

struct tailor_hold *observer_jvm_hold(struct tailor_observer *observer, size_t server)
{
	return &observer->holds[observer->options.cpus + server];
}

/* When the oldest request began that is slow already and for which events are still held; UINT64_MAX: there is none. */
static uint64_t oldest_slow(const struct tailor_observer *observer, uint64_t now_ns)
{
	uint64_t after_ns = now_ns > HELD_NS ? now_ns - HELD_NS : 0;
	uint64_t oldest_ns = tailor_requests_oldest(observer->requests, after_ns > observer->given_up_ns ? after_ns : observer->given_up_ns);

	return oldest_ns < now_ns && now_ns - oldest_ns >= observer->slow_rule.threshold_ns ? oldest_ns : UINT64_MAX;
}

/* The same, or that of the oldest one that waits to be explained. */
static uint64_t oldest_needed(const struct tailor_observer *observer, uint64_t now_ns)
{
	uint64_t oldest_ns = oldest_slow(observer, now_ns);

	for (size_t i = 0; i < observer->queued && observer->hold_room < HELD_MAX; i++) {
		if (tailor_queued_begin(&observer->queue[i]) < oldest_ns)
			oldest_ns = tailor_queued_begin(&observer->queue[i]);
	}
	return oldest_ns;
}

/* There is no room for more: the oldest request must do without what is held for it, if that helps another one. */
static void give_up_oldest(struct tailor_observer *observer, uint64_t now_ns)
{
	uint64_t oldest_ns = oldest_slow(observer, now_ns), next_ns;

	if (oldest_ns == UINT64_MAX)
		return;
	next_ns = tailor_requests_oldest(observer->requests, oldest_ns);
	if (next_ns < now_ns && now_ns - next_ns > SHORT_NS)
		observer->given_up_ns = oldest_ns;
}

/* In how many ns a quarter of the ring will be new, if it goes on as since the last look. */
static uint64_t quarter_ns(const struct tailor_hold *hold, const struct tailor_channel *channel, uint64_t looked_ns, uint64_t now_ns)
{
	uint64_t before = tailor_hold_position(hold, looked_ns), new = tailor_channel_end(channel) - before;

	if (looked_ns == 0 || before == 0 || new == 0 || now_ns <= looked_ns)
		return UINT64_MAX;
	return (uint64_t)((double)(channel->mask + 1) / 4 / (double)new * (double)(now_ns - looked_ns));
}

uint64_t observer_hold(struct tailor_observer *observer, uint64_t now_ns)
{
	size_t count = observer_list_sources(observer), room = observer->hold_room;
	uint64_t needed_ns = oldest_needed(observer, now_ns), wait_ns = POLL_NS;
	int full = 0, is_long = needed_ns < now_ns && now_ns - needed_ns > SHORT_NS;

	tailor_budget_fill(&observer->cpu, now_ns);
	for (size_t i = 0; i < count; i++) {
		const struct tailor_source *source = &observer->sources[i];
		uint64_t since_ns = needed_ns > source->before_ns ? needed_ns - source->before_ns : 0;
		uint64_t next_ns = quarter_ns(source->hold, &source->channel, observer->looked_ns, now_ns);

		if (needed_ns == UINT64_MAX) {
			tailor_hold_trim(source->hold, UINT64_MAX, &observer->hold_room);
		} else {
			tailor_hold_trim(source->hold, since_ns, &observer->hold_room);
			if (observer->cpu.left > -(double)OVERDRAFT_NS)
				full |= tailor_hold_follow(source->hold, &source->channel, since_ns, is_long, &observer->hold_room) == -ENOBUFS;
			wait_ns = next_ns < wait_ns ? next_ns : wait_ns;
		}
		tailor_hold_mark(source->hold, &source->channel, now_ns);
	}
	if (full)
		give_up_oldest(observer, now_ns);
	if (observer->hold_room < room)
		tailor_budget_spend(&observer->cpu, (double)(room - observer->hold_room) * COPY_NS);
	observer->looked_ns = now_ns;
	return wait_ns < POLL_NS_MIN ? POLL_NS_MIN : wait_ns;
}
