/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What all programs share: the channels they write, who is traced, which request a thread is bound to.
 * Each file of programs is compiled alone and the objects are linked; the shared symbols are weak so that
 * the linker keeps one of each.
 */
#ifndef TAILOR_BPF_EMIT_H
#define TAILOR_BPF_EMIT_H

#include "kernel_types.bpf.h"

#include <bpf/bpf_helpers.h>
#include <tailor/channel.h>

#include "compat.bpf.h"

/* Set by the loader before load. */
const volatile uint32_t slots_shift __weak = 0; /* log2 of the slots per CPU */

/* The channels: one per possible CPU, mapped by the observer. The loader sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct tailor_event);
} slots __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct tailor_channel_head);
} heads __weak SEC(".maps");

/* Traced processes: thread group id -> enum tailor_traced_role. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, uint32_t);
	__type(value, uint32_t);
} traced __weak SEC(".maps");

/* As in src/collect/kernel.h. */
enum { ROLE_NONE = 0, ROLE_SERVER = 1, ROLE_PROXY = 2 };

/*
 * The same by id modulo the size: almost every switch on a machine is between two tasks that nobody asked about, and those
 * that somebody did ask about are few. One load tells both kinds; the hash is asked only where two traced ids share an
 * entry. The loader keeps it; as in src/collect/kernel.c.
 */
#define TRACED_HINTS 1024
#define HINT(tgid, role) ((uint32_t)(tgid) << 2 | (role)) /* 0: nobody traced has such an id */
#define HINT_ROLE(hint) ((hint) & 3)
#define HINT_SHARED 3
uint32_t traced_hint[TRACED_HINTS] __weak = {};

/* What a thread of a server works on since its last receive. */
struct bound {
	uint64_t request;
	uint16_t server_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct bound);
} bound __weak SEC(".maps");

/*
 * For what hardly ever happens: a function of its own. A program's instructions are as cold as its data are when it runs between two
 * requests' work; what it jumps over in passing costs lines, too.
 */
#define RARE static __noinline __attribute__((unused))
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

RARE uint32_t role_in_table(uint32_t tgid)
{
	uint32_t *role = bpf_map_lookup_elem(&traced, &tgid);

	return role ? *role : ROLE_NONE;
}

/* The role of a process; ROLE_NONE for all that nobody asked for. */
static __always_inline uint32_t role_of(uint32_t tgid)
{
	uint32_t hint = *(volatile uint32_t *)&traced_hint[tgid & (TRACED_HINTS - 1)];

	if (unlikely(HINT_ROLE(hint) == HINT_SHARED))
		return role_in_table(tgid);
	return hint == HINT(tgid, HINT_ROLE(hint)) ? HINT_ROLE(hint) : ROLE_NONE;
}

static __always_inline uint32_t current_role(void)
{
	return role_of(TAILOR_TASK_PID(bpf_get_current_pid_tgid()));
}

/* The request a task of that role is bound to, 0 for none: only a server's receives bind. */
static __always_inline uint64_t request_of(struct task_struct *task, uint32_t role)
{
	const struct bound *binding = role == ROLE_SERVER ? bpf_task_storage_get(&bound, task, NULL, 0) : NULL;

	return binding ? binding->request : 0;
}

/*
 * Who can come between two instructions of a program and write to the same channel, which is its CPU's: nobody; a program in an
 * interrupt, which ends before this one goes on; or any other one.
 */
enum emit_context { EMIT_INTERRUPTS_OFF, EMIT_INTERRUPTIBLE, EMIT_PREEMPTIBLE };

/* Most tracepoints'. */
#define EMIT_TRACEPOINT (tracepoints_preemptible ? EMIT_PREEMPTIBLE : EMIT_INTERRUPTIBLE)

/* An event that is being written. */
struct emission {
	struct tailor_channel_head *head;
	uint64_t position;
	uint64_t writing; /* what head->writing was before */
	enum emit_context context;
};

static __always_inline struct tailor_event *slot_at(uint32_t cpu, uint64_t position)
{
	uint32_t index = (cpu << slots_shift) + (position & ((UINT64_C(1) << slots_shift) - 1));

	return bpf_map_lookup_elem(&slots, &index);
}

/*
 * Takes `count` positions. A slot's line was last touched a lap ago and is in no cache: to claim it by compare-and-swap is to wait for it,
 * which took longer than all else that a program does. So it is claimed only where somebody may be inside a slot: head->writing says so, and
 * is in the line that is needed anyway. Stores alone do not wait.
 */
static __always_inline void emission_begin(struct emission *emission, uint64_t count)
{
	struct tailor_channel_head *head = emission->head;

	emission->writing = tailor_load(&head->writing);
	switch (emission->context) {
	case EMIT_INTERRUPTS_OFF:
		emission->position = tailor_load(&head->reserved_count);
		*(volatile uint64_t *)&head->reserved_count = emission->position + count;
		return;
	case EMIT_INTERRUPTIBLE:
		*(volatile uint64_t *)&head->writing = emission->writing + 1;
		break;
	case EMIT_PREEMPTIBLE:
		__sync_fetch_and_add(&head->writing, 1);
		break;
	}
	emission->position = tailor_channel_reserve(head, count);
}

static __always_inline void emission_end(const struct emission *emission)
{
	if (emission->context == EMIT_INTERRUPTIBLE)
		*(volatile uint64_t *)&emission->head->writing = emission->writing;
	else if (emission->context == EMIT_PREEMPTIBLE)
		__sync_fetch_and_add(&emission->head->writing, -1);
}

RARE int claim_contended(struct tailor_event *slot, uint64_t position)
{
	return slot ? tailor_slot_claim(slot, position) : 0;
}

/* Makes the slot of that position the caller's; false: it is dropped. */
static __always_inline bool emission_claim(const struct emission *emission, struct tailor_event *slot, uint64_t position)
{
#ifdef __TARGET_ARCH_x86 /* whose stores stay in order */
	if (likely(!emission->writing && emission->context != EMIT_PREEMPTIBLE)) {
		*(volatile uint64_t *)&slot->sequence = TAILOR_SEQUENCE_BUSY(position);
		__asm__ volatile("" ::: "memory");
		return true;
	}
#endif
	return claim_contended(slot, position);
}

/*
 * Begins an event in this CPU's channel, over the oldest: returns its slot with kind and cpu filled, or NULL when
 * it is dropped (a reader sees it as lost). The caller fills all the rest but `sequence`, which is what an older event left there, and
 * must call emit_end(). Where interrupts may come, the time is taken only now: an event that is older than many of those before it in
 * its channel would look like the end of what a reader looks for. `texts` more positions behind it are the caller's to claim.
 */
static __always_inline struct tailor_event *emit_begin_with(enum tailor_event_kind kind, uint32_t texts, enum emit_context context,
							    struct emission *ret_emission)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	struct tailor_event *slot;

	ret_emission->context = context;
	ret_emission->head = bpf_map_lookup_elem(&heads, &cpu);
	if (!ret_emission->head)
		return NULL;
	emission_begin(ret_emission, 1 + texts);
	slot = slot_at(cpu, ret_emission->position);
	if (!slot || !emission_claim(ret_emission, slot, ret_emission->position)) {
		emission_end(ret_emission);
		return NULL;
	}
	slot->kind = kind;
	slot->texts = texts;
	slot->cpu = cpu;
	return slot;
}

/* The same without a text. */
static __always_inline struct tailor_event *emit_begin(enum tailor_event_kind kind, enum emit_context context, struct emission *ret_emission)
{
	return emit_begin_with(kind, 0, context, ret_emission);
}

static __always_inline void emit_end(struct tailor_event *slot, const struct emission *emission)
{
	tailor_slot_publish(slot, emission->position);
	emission_end(emission);
}

#endif /* TAILOR_BPF_EMIT_H */
