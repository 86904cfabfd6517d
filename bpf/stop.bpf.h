/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Which of the proxy's servers stand still, for its workers. Shared by the programs that see it: the JVM's probes see safepoints,
 * the scheduler's see threads that a signal or a tracer stops. Looked at only for traced servers, and there only when one of these happens.
 */
#ifndef TAILOR_BPF_STOP_H
#define TAILOR_BPF_STOP_H

#include "emit.bpf.h"

#include <tailor/stop.h>

/* The loader tells which process is which server's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TAILOR_STOP_SERVERS);
	__type(key, uint32_t);
	__type(value, struct tailor_stop);
} stops __weak SEC(".maps");

/* Is there only to wake whoever polls it: its records are empty, and the loader takes them out (src/collect/kernel_stops.c). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TAILOR_STOP_CHANGES_BYTES);
} stop_changes __weak SEC(".maps");

uint64_t signal_stops __weak = 0; /* bits 1 << server: stopped by a signal or a tracer; mostly none, and then nothing else is looked at */

/*
 * The interrupt that wakes them comes at once, and takes this CPU some 30 us in a virtual machine where they sleep. A JVM stands still no longer
 * for that, as its probes are where its threads are not asked to stop yet, and where they go on already; a thread that waits for the collection does.
 */
static __always_inline void stop_wake(void)
{
	void *nothing = bpf_ringbuf_reserve(&stop_changes, TAILOR_STOP_CHANGE_BYTES, 0);

	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

/* A signal's stop comes before a safepoint's: threads that do not run cannot end theirs either. */
static __always_inline uint64_t stop_word(const volatile struct tailor_stop *stop)
{
	uint64_t signal_ns = stop->signal_ns, safepoint_ns = stop->safepoint_ns;

	if (signal_ns)
		return TAILOR_STOP(TAILOR_STOP_SIGNAL, signal_ns);
	return safepoint_ns ? TAILOR_STOP(TAILOR_STOP_SAFEPOINT, safepoint_ns) : 0;
}

/* Pairs with the fence of a worker that is about to sleep: an exchange of the word is before. */
static __always_inline int stop_is_waited_for(const struct tailor_stop *stop)
{
	const volatile uint64_t *waits = (const volatile uint64_t *)stop->waits;

	_Static_assert(sizeof(stop->waits) == 2 * sizeof(*waits), "all of them");
	return (waits[0] | waits[1]) != 0;
}

/* What those who sleep through it will want to know. */
static __always_inline void stop_is_over(struct tailor_stop *stop, uint64_t word)
{
	uint64_t now_ns = bpf_ktime_get_ns();

	*(volatile uint64_t *)&stop->last = TAILOR_STOP(TAILOR_STOP_KIND(word), now_ns - TAILOR_STOP_SINCE_NS(word));
	*(volatile uint64_t *)&stop->end_ns = now_ns;
}

/*
 * Says what the entry's times say. Other CPUs may change one of these meanwhile, and say so before or after this: whoever is last to say it
 * looks once more (an exchange is a full barrier), and so nobody leaves behind what is not so any more.
 */
#define STOP_SAYINGS 4 /* more changes than that meanwhile are not to be; the next change mends it */

static __always_inline void stop_say(struct tailor_stop *stop)
{
	uint64_t word = stop_word(stop), before = *(volatile uint64_t *)&stop->word;

	if (before && TAILOR_STOP_SINCE_NS(word) != TAILOR_STOP_SINCE_NS(before))
		stop_is_over(stop, before);
	before = __sync_lock_test_and_set(&stop->word, word);
	for (int i = 0; i < STOP_SAYINGS && stop_word(stop) != word; i++) {
		word = stop_word(stop);
		(void)__sync_lock_test_and_set(&stop->word, word);
	}
	if (word == before)
		return;
	if (word && TAILOR_STOP_SINCE_NS(word) != TAILOR_STOP_SINCE_NS(before))
		__sync_fetch_and_add(&stop->count, 1);
	if (stop_is_waited_for(stop))
		stop_wake();
}

/* Runs the statement for each server that is this process: several may be the same. */
#define FOR_EACH_TOLD(server, stop, tgid, statement)                                                                                  \
	for (uint32_t server = 0; server < TAILOR_STOP_SERVERS; server++) {                                                            \
		uint32_t key_ = server;                                                                                                \
		struct tailor_stop *stop = bpf_map_lookup_elem(&stops, &key_);                                                         \
		if (stop && stop->pid == (tgid))                                                                                       \
			statement;                                                                                                     \
	}

static __always_inline void stop_safepoint_changed(struct tailor_stop *stop, uint64_t since_ns)
{
	stop->safepoint_ns = since_ns;
	stop_say(stop);
}

/* For the JVM's probes: a safepoint began at that time, or (0) has ended. */
static __always_inline void stop_safepoint(uint32_t tgid, uint64_t since_ns)
{
	FOR_EACH_TOLD(server, stop, tgid, stop_safepoint_changed(stop, since_ns));
}

static __always_inline void stop_signal_begins(struct tailor_stop *stop, uint32_t server, uint64_t time_ns)
{
	if (__sync_val_compare_and_swap(&stop->signal_ns, 0, time_ns))
		return;
	__sync_fetch_and_or(&signal_stops, UINT64_C(1) << server);
	stop_say(stop);
}

static __always_inline void stop_signal_ends(struct tailor_stop *stop, uint32_t server)
{
	__sync_fetch_and_and(&signal_stops, ~(UINT64_C(1) << server));
	if (__sync_lock_test_and_set(&stop->signal_ns, 0))
		stop_say(stop);
}

/*
 * For sched_switch. A thread that goes to sleep was not asked to stop, and so its process was not: the wake-up that ended its stop came
 * unseen, since a thread can be woken between its leaving and the event of it; or a tracer has stopped another thread alone.
 */
static __always_inline void stop_switched_out(uint32_t tgid, uint32_t role, enum tailor_task_state state, uint64_t time_ns)
{
	if (role != ROLE_SERVER)
		return;
	if (state == TAILOR_TASK_STOPPED) {
		FOR_EACH_TOLD(server, stop, tgid, stop_signal_begins(stop, server, time_ns));
	} else if (state == TAILOR_TASK_SLEEPING && *(volatile uint64_t *)&signal_stops) {
		FOR_EACH_TOLD(server, stop, tgid, stop_signal_ends(stop, server));
	}
}

/* For sched_waking, of a thread in that state. */
static __always_inline void stop_woken(uint32_t tgid, uint32_t role, enum tailor_task_state state)
{
	if (role == ROLE_SERVER && state == TAILOR_TASK_STOPPED && *(volatile uint64_t *)&signal_stops)
		FOR_EACH_TOLD(server, stop, tgid, stop_signal_ends(stop, server));
}

#endif /* TAILOR_BPF_STOP_H */
