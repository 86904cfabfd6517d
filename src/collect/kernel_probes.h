/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: which of the BPF programs this kernel can run, found by asking it. */
#ifndef TAILOR_COLLECT_KERNEL_PROBES_H
#define TAILOR_COLLECT_KERNEL_PROBES_H

#include "collect/kernel.h"

#define TAILOR_PROBE_PROGRAMS_MAX 2

/* A probe and the programs (names in bpf/) that make it up. */
struct tailor_probe_plan {
	const char *name;
	const char *question;
	const char *kernel_name;                         /* the tracepoint or function */
	const char *programs[TAILOR_PROBE_PROGRAMS_MAX]; /* NULL where fewer */
	const char *remedy;                              /* when the kernel does not have it */
	uint32_t missing;                                /* enum tailor_missing bits that follow from its absence */
	int required;
	int function;   /* fentry/fexit of a kernel function, not a tracepoint */
	int uprobe;     /* of places in traced processes (kernel_uprobe.h): there is nothing to attach to at first */
	int clock;      /* needs a clock event on every CPU, too (kernel_clock.h) */
	int on_request; /* attached only by tailor_kernel_watch_interrupts() */
	/* What answers the question where the kernel has no such probe or does not allow it; NULL: nothing does. */
	const struct tailor_probe_plan *instead;
};

/* All probes; returns how many, at most TAILOR_PROBES_MAX. */
size_t tailor_probe_plans(const struct tailor_probe_plan **ret_plans);

struct btf;

/*
 * Asks the kernel whether it has the probe and accepts a program there, by loading one that does nothing. Returns 0,
 * -ENOENT when the kernel does not have it, or the negative errno with which it refused; in both cases `reason` says so
 * with the remedy.
 */
int tailor_probe_ask(const struct tailor_probe_plan *plan, const struct btf *kernel_types, char *reason,
                     size_t reason_size);

/* Whether a program can be linked to all places of a process at once (kernel_uprobe.h). */
int tailor_probe_uprobes_at_once(const struct btf *kernel_types);

/* Number of arguments of a tracepoint as BPF programs see it, or -ENOENT. */
int tailor_probe_arguments(const char *tracepoint, const struct btf *kernel_types);

/*
 * Whether a kernel of that name (uname's release and version) may let another task come between the instructions of a tracepoint's program:
 * since 7.0 (its commits a46023d5616e, f7d327654b88) tracepoints do not turn preemption off any more. 1 where the name does not say: it costs a
 * little, and harms nothing.
 */
int tailor_probe_preemptible(const char *release, const char *version);

/* What to do about an errno of bpf(2): one clause, static. */
const char *tailor_bpf_remedy(int error);

#endif /* TAILOR_COLLECT_KERNEL_PROBES_H */
