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

/* The role of a process; ROLE_NONE for all that nobody asked for. */
static __always_inline uint32_t role_of(uint32_t tgid)
{
	uint32_t hint = *(volatile uint32_t *)&traced_hint[tgid & (TRACED_HINTS - 1)];
	uint32_t *role;

	if (HINT_ROLE(hint) != HINT_SHARED)
		return hint == HINT(tgid, HINT_ROLE(hint)) ? HINT_ROLE(hint) : ROLE_NONE;
	role = bpf_map_lookup_elem(&traced, &tgid);
	return role ? *role : ROLE_NONE;
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

/* The slot of a reserved position of this CPU, claimed; NULL when it is dropped. */
static __always_inline struct tailor_event *claim_slot(uint32_t cpu, uint64_t position)
{
	uint32_t index = (cpu << slots_shift) + (position & ((UINT64_C(1) << slots_shift) - 1));
	struct tailor_event *slot = bpf_map_lookup_elem(&slots, &index);

	return slot && tailor_slot_claim(slot, position) ? slot : NULL;
}

/*
 * Begins an event in this CPU's channel, over the oldest: returns its slot with kind and cpu filled and *ret_position, or NULL when
 * it is dropped (a reader sees it as lost). The caller fills all the rest but `sequence`, which is what an older event left there, and
 * must call emit_end(). Where interrupts may come, the time is taken only now: an event that is older than many of those before it in
 * its channel would look like the end of what a reader looks for. `texts` more positions behind it are the caller's to claim.
 */
static __always_inline struct tailor_event *emit_begin_with(enum tailor_event_kind kind, uint32_t texts, uint64_t *ret_position)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	struct tailor_channel_head *head = bpf_map_lookup_elem(&heads, &cpu);
	struct tailor_event *slot;

	if (!head)
		return NULL;
	*ret_position = tailor_channel_reserve(head, 1 + texts);
	slot = claim_slot(cpu, *ret_position);
	if (!slot)
		return NULL;
	slot->kind = kind;
	slot->texts = texts;
	slot->cpu = cpu;
	return slot;
}

/* The same without a text. */
static __always_inline struct tailor_event *emit_begin(enum tailor_event_kind kind, uint64_t *ret_position)
{
	return emit_begin_with(kind, 0, ret_position);
}

static __always_inline void emit_end(struct tailor_event *slot, uint64_t position)
{
	tailor_slot_publish(slot, position);
}

#endif /* TAILOR_BPF_EMIT_H */
