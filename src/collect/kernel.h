/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side of the recording: loads the BPF programs, maps their channels and the tag table,
 * and says what this kernel allowed. The only room that links libbpf.
 */
#ifndef TAILOR_COLLECT_KERNEL_H
#define TAILOR_COLLECT_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tailor/channel.h>
#include <tailor/late.h>
#include <tailor/stop.h>
#include <tailor/tag.h>

struct tailor_kernel;

/* One probe: what it answers, whether it works here, and the remedy if it does not. Strings are static or live as long as the kernel. */
struct tailor_probe {
	const char *name;     /* "sched_switch"; on kernels without it, what stands in for it ("tcp_recvmsg" for sock_recv_length) */
	const char *question; /* "when a thread got a CPU and who had it before" */
	int required;
	int attached;
	int unasked;          /* not attached, as it is only on request (tailor_kernel_watch_interrupts()) */
	char reason[160];     /* why not, and what to do; "" when attached */
};

#define TAILOR_PROBES_MAX 24

/*
 * Loads and attaches. slots_per_cpu: events kept per CPU, a power of two (65536 are 4 MiB).
 * Returns 0 and *ret_kernel (tailor_kernel_close() it), or a negative errno with one line in `error` that
 * names what failed and the remedy: -EPERM (rights or lockdown), -ENOENT (no BTF in /sys/kernel/btf/vmlinux), -ENOMEM, -EMFILE,
 * -EINVAL (slots_per_cpu), -EOPNOTSUPP (this process is in a pid namespace of its own: the ids it knows are not the kernel's), ...
 * A missing optional probe is not an error.
 */
int tailor_kernel_open(size_t slots_per_cpu, struct tailor_kernel **ret_kernel, char *error, size_t error_size);
void tailor_kernel_close(struct tailor_kernel *kernel);

/*
 * From now on also tells how long interrupts kept a traced task from its CPU (TAILOR_EVENT_INTERRUPT): it costs every interrupt of the machine
 * something. Needs the rights that tailor_kernel_open() needs; one thread, before others use the kernel. What is missing has its
 * reason in tailor_kernel_probes(), as it has while this was not called.
 */
void tailor_kernel_watch_interrupts(struct tailor_kernel *kernel);

/* The tag table shared with the programs; TAILOR_TAGS entries; lives as long as the kernel. */
struct tailor_tag *tailor_kernel_tags(struct tailor_kernel *kernel);

/* What the programs say of threads of the proxy that were kept from running; TAILOR_LATE_THREADS entries; lives as long as the kernel. */
const struct tailor_late *tailor_kernel_lates(const struct tailor_kernel *kernel);

/*
 * Which of the traced servers stand still, as the kernel sees them; TAILOR_STOP_SERVERS entries; lives as long as the kernel. The
 * descriptor polls readable from the first change on that somebody waited for (tailor_stop.waits, which the caller's workers write); whoever waits
 * for edges (a multishot poll of io_uring, EPOLLET) is woken at each one, several in a row perhaps at once. Nobody reads it, and as many as
 * like may poll it.
 */
struct tailor_stop *tailor_kernel_stops(const struct tailor_kernel *kernel);
int tailor_kernel_stops_fd(const struct tailor_kernel *kernel);

/*
 * From now on the process's stops are told in that entry, whose word is cleared; with pid 0 nobody's. The process is also traced as a server
 * (tailor_kernel_trace()), or nothing of it is seen; a stop that had begun before is not told, and tailor_kernel_untrace() clears the word.
 * Takes some ms where another process's were told. The first call starts a thread, with the caller's rights. Returns 0 or a negative errno:
 * -EINVAL (server, pid), -EAGAIN (no thread). Any thread.
 */
int tailor_kernel_tell_stops(struct tailor_kernel *kernel, unsigned int server, pid_t pid);

/* The channels, one per possible CPU; returns how many. They live as long as the kernel. */
size_t tailor_kernel_channels(struct tailor_kernel *kernel, const struct tailor_channel **ret_channels);

/* What is attached; returns how many entries *ret_probes has. */
size_t tailor_kernel_probes(const struct tailor_kernel *kernel, const struct tailor_probe **ret_probes);

/* enum tailor_missing bits that follow from missing probes. */
uint32_t tailor_kernel_missing(const struct tailor_kernel *kernel);

/*
 * Those that hold for one process: TAILOR_MISSING_SAFEPOINTS unless it is a traced server whose JVM's probes are listened to (one
 * without them has none, another VM's process neither, and a new one's take some ms to begin). Any thread.
 */
uint32_t tailor_kernel_process_missing(const struct tailor_kernel *kernel, pid_t pid);

/* 1 when listening to JVMs that come later takes CAP_PERFMON on this kernel, which then must be kept (kernel_uprobe.h); else 0. */
int tailor_kernel_needs_perfmon(const struct tailor_kernel *kernel);

enum tailor_traced_role {
	TAILOR_TRACED_SERVER = 1, /* receives on tagged connections bind its threads to requests */
	TAILOR_TRACED_PROXY = 2,
};

/*
 * Starts or stops recording events of a process (thread group id). Idempotent. Returns 0 or a negative errno (-E2BIG: more
 * than 256). Any thread. Untrace a process that has ended: its id may become another's. A server's JVM is listened to, too, from soon after
 * (a thread begins it, which needs the rights that kernel_uprobe.h names).
 */
int tailor_kernel_trace(struct tailor_kernel *kernel, pid_t pid, enum tailor_traced_role role);
int tailor_kernel_untrace(struct tailor_kernel *kernel, pid_t pid);

/*
 * What tailor_kernel_open() would find, without leaving anything loaded: for `tailor doctor`. Fills up to
 * `size` probes and returns how many, or a negative errno with `error` as above when nothing can be loaded at all.
 */
int tailor_kernel_survey(struct tailor_probe *ret_probes, size_t size, char *error, size_t error_size);

#endif /* TAILOR_COLLECT_KERNEL_H */
