/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: which processes are traced, as the BPF programs are told (bpf/emit.bpf.h, role_of()). */
#ifndef TAILOR_COLLECT_KERNEL_TRACED_H
#define TAILOR_COLLECT_KERNEL_TRACED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/kernel.h"

/* As in bpf/emit.bpf.h: entries of the map `traced`. */
#define TAILOR_KERNEL_TRACED_MAX 256

/* Zeroed at first, but for the map and the hints, which stay the caller's. One thread at a time. */
struct tailor_kernel_traced {
	int map;
	uint32_t *hints;
	size_t hint_count;
	size_t count;
	struct {
		pid_t pid;
		enum tailor_traced_role role;
	} processes[TAILOR_KERNEL_TRACED_MAX];
};

/* Tells the programs of a process, or of its new role. Returns 0 or bpf(2)'s negative errno; -E2BIG: there are too many. */
int tailor_kernel_traced_add(struct tailor_kernel_traced *traced, pid_t pid, enum tailor_traced_role role);
/* Returns 0, also when it was not traced, or bpf(2)'s negative errno. */
int tailor_kernel_traced_remove(struct tailor_kernel_traced *traced, pid_t pid);

#endif /* TAILOR_COLLECT_KERNEL_TRACED_H */
