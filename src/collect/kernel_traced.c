/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_traced.h"

#include <bpf/bpf.h>
#include <errno.h>

/* As in bpf/emit.bpf.h. */
#define HINT(tgid, role) ((uint32_t)(tgid) << 2 | (uint32_t)(role))
#define HINT_SHARED 3u

/* Says of all traced processes whose ids agree with this one modulo the hints what the programs are to know without the map. */
static void update_hint(struct tailor_kernel_traced *traced, pid_t pid)
{
	uint32_t hint = 0;

	for (size_t i = 0; i < traced->count; i++) {
		if ((size_t)traced->processes[i].pid % traced->hint_count != (size_t)pid % traced->hint_count)
			continue;
		hint = hint ? HINT_SHARED : HINT(traced->processes[i].pid, traced->processes[i].role);
	}
	__atomic_store_n(&traced->hints[(size_t)pid % traced->hint_count], hint, __ATOMIC_RELEASE);
}

int tailor_kernel_traced_add(struct tailor_kernel_traced *traced, pid_t pid, enum tailor_traced_role role)
{
	uint32_t key = (uint32_t)pid, value = role;
	size_t i;

	if (bpf_map_update_elem(traced->map, &key, &value, BPF_ANY) != 0)
		return -errno;
	for (i = 0; i < traced->count && traced->processes[i].pid != pid; i++)
		;
	if (i == traced->count)
		traced->count++; /* the map has as many entries as this array */
	traced->processes[i].pid = pid;
	traced->processes[i].role = role;
	update_hint(traced, pid);
	return 0;
}

int tailor_kernel_traced_remove(struct tailor_kernel_traced *traced, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	if (bpf_map_delete_elem(traced->map, &key) != 0 && errno != ENOENT)
		return -errno;
	for (size_t i = 0; i < traced->count; i++) {
		if (traced->processes[i].pid != pid)
			continue;
		traced->processes[i] = traced->processes[--traced->count];
		break;
	}
	if (pid > 0)
		update_hint(traced, pid);
	return 0;
}
