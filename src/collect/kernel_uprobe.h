/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the room: listens at the probes of JVMs (bpf/safepoint.bpf.c). A place in libjvm.so is a breakpoint that exists only in the
 * processes that are followed. Registering one takes the kernel milliseconds, so a thread of its own does it.
 */
#ifndef TAILOR_COLLECT_KERNEL_UPROBE_H
#define TAILOR_COLLECT_KERNEL_UPROBE_H

#include <sys/types.h>

struct tailor_uprobes;

/* BPF_TRACE_UPROBE_MULTI, which older headers lack: what a program is to be loaded for that is linked to all places at once. */
#define TAILOR_ATTACH_UPROBE_MULTI 48

/* Whether this kernel has uprobes for perf_event_open(2). Returns the type for its attribute, or a negative errno. */
int tailor_uprobes_type(void);

/*
 * Follows nobody at first. `program` stays the caller's; at_once: it was loaded for that. Returns 0, -ENOMEM, -EMFILE, -EBADF or
 * tailor_uprobes_type()'s.
 */
int tailor_uprobes_open(int program, int at_once, struct tailor_uprobes **ret_uprobes);

/*
 * Ends all that was begun; what had no time to begin does not begin any more. Waits for what is being begun, but 2 s at most: a process whose
 * file system does not answer keeps nobody from stopping. NULL is nothing.
 */
void tailor_uprobes_close(struct tailor_uprobes *uprobes);

/*
 * Begins and ends listening to a process, soon; ids that end must be forgotten before they can be another's. The thread that does it
 * starts with the first call and has the caller's rights: finding and reading libjvm.so takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH;
 * listening, unless all at once, CAP_PERFMON, since Linux 6.16 CAP_SYS_ADMIN. Any thread; never waits for the kernel.
 */
void tailor_uprobes_follow(struct tailor_uprobes *uprobes, pid_t pid);
void tailor_uprobes_forget(struct tailor_uprobes *uprobes, pid_t pid);

/* 1 when all the places of the process are listened to, 0 when not yet, or a negative errno: what came in the way (-ESRCH: it is not followed; -ENOENT: no libjvm.so, or
 * one without the probes; -ESTALE: the file was replaced since the JVM started). Any thread. */
int tailor_uprobes_state(struct tailor_uprobes *uprobes, pid_t pid);

#endif /* TAILOR_COLLECT_KERNEL_UPROBE_H */
