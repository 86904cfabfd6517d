/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the programs keep of each CPU between two events of it; written only on that CPU. */
#ifndef TAILOR_BPF_CPU_H
#define TAILOR_BPF_CPU_H

#include "kernel_types.bpf.h"

#include <bpf/bpf_helpers.h>

struct cpu_memory {
	uint64_t idle_end_ns;        /* when it last left an idle state; 0: not seen yet */
	uint32_t idle_state;         /* that one's number + 1, or of the one it is in; 0: not known */
	uint32_t in_softirq;         /* 1: a softirq took the CPU from a traced task, at interrupt_begin_ns */
	uint64_t interrupt_begin_ns; /* when an interrupt took the CPU from a traced task; 0: none has */
	uint64_t clock_ns;           /* when a timer of it expired last; 0: never */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct cpu_memory);
} cpu_memories __weak SEC(".maps");

static __always_inline struct cpu_memory *this_cpu(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&cpu_memories, &zero);
}

#endif /* TAILOR_BPF_CPU_H */
