/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_probes.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <tailor/timeline.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "collect/kernel_uprobe.h"

static const struct tailor_probe_plan receive_by_function = {
	.name = "tcp_recvmsg",
	.kernel_name = "tcp_recvmsg",
	.programs = {"on_tcp_recvmsg"},
	.function = 1,
};

static const struct tailor_probe_plan send_by_function = {
	.name = "tcp_sendmsg",
	.kernel_name = "tcp_sendmsg",
	.programs = {"on_tcp_sendmsg"},
	.function = 1,
};

static const struct tailor_probe_plan fault_by_memory = {
	.name = "rss_stat",
	.kernel_name = "rss_stat",
	.programs = {"on_rss_stat"},
};

static const struct tailor_probe_plan plans[] = {
	{
		.name = "sched_switch",
		.question = "when a thread got a CPU, who had it before, and how it lost it",
		.kernel_name = "sched_switch",
		.programs = {"on_sched_switch"},
		.remedy = "needs Linux 6.1 or later with CONFIG_TRACEPOINTS",
		.required = 1,
	},
	{
		.name = "sched_waking",
		.question = "who woke a thread, and when",
		.kernel_name = "sched_waking",
		.programs = {"on_sched_waking"},
		.remedy = "needs Linux 6.1 or later with CONFIG_TRACEPOINTS",
		.required = 1,
	},
	{
		.name = "sched_wakeup_new",
		.question = "who started a thread, and when",
		.kernel_name = "sched_wakeup_new",
		.programs = {"on_sched_wakeup_new"},
		.remedy = "needs Linux 6.1 or later with CONFIG_TRACEPOINTS",
	},
	{
		.name = "sock_recv_length",
		.question = "which request a thread serves",
		.kernel_name = "sock_recv_length",
		.programs = {"on_sock_recv_length"},
		.instead = &receive_by_function,
		.remedy = "needs Linux 6.3 or later, or one that allows fentry/fexit programs",
		.missing = TAILOR_MISSING_WRITE,
	},
	{
		.name = "sock_send_length",
		.question = "when the response was written, and by which thread",
		.kernel_name = "sock_send_length",
		.programs = {"on_sock_send_length"},
		.instead = &send_by_function,
		.remedy = "needs Linux 6.3 or later, or one that allows fentry/fexit programs",
		.missing = TAILOR_MISSING_WRITE,
	},
	{
		.name = "net_dev_queue",
		.question = "when the response's bytes left",
		.kernel_name = "net_dev_queue",
		.programs = {"on_net_dev_queue"},
		.remedy = "needs a kernel with CONFIG_NET and CONFIG_TRACEPOINTS",
		.required = 1,
	},
	{
		.name = "tcp_retransmit_skb",
		.question = "which bytes had to be sent again",
		.kernel_name = "tcp_retransmit_skb",
		.programs = {"on_tcp_retransmit_skb"},
		.remedy = "needs a kernel with CONFIG_INET and CONFIG_TRACEPOINTS",
	},
	{
		.name = "page_fault_user",
		.question = "which memory was not there when touched",
		.kernel_name = "page_fault_user",
		.programs = {"on_page_fault_user"},
		.remedy = "needs a kernel with the exceptions tracepoints (x86)",
		.missing = TAILOR_MISSING_FAULT_TIME,
	},
	{
		.name = "handle_mm_fault",
		.question = "how long a page fault took, and whether it read from disk",
		.kernel_name = "handle_mm_fault",
		.programs = {"on_fault_begin", "on_fault_end"},
		.instead = &fault_by_memory,
		.remedy = "needs one that does, such as a distribution's",
		.missing = TAILOR_MISSING_FAULT_TIME,
		.function = 1,
	},
	{
		.name = "sk_data_ready",
		.question = "what came while the proxy itself was kept from running",
		.kernel_name = "sk_data_ready",
		.programs = {"on_sk_data_ready"},
		.remedy = "needs Linux 6.3 or later",
		.missing = TAILOR_MISSING_ARRIVAL,
	},
	{
		.name = "uprobe",
		.question = "when a JVM stopped its threads, and for what",
		.programs = {"on_jvm_probe"},
		.remedy = "needs one with CONFIG_UPROBE_EVENTS",
		.missing = TAILOR_MISSING_SAFEPOINTS,
		.uprobe = 1,
	},
	{
		.name = "cpu_idle",
		.question = "when a CPU left its idle state, and which",
		.kernel_name = "cpu_idle",
		.programs = {"on_cpu_idle"},
		.remedy = "needs a kernel with the power tracepoints (CONFIG_TRACEPOINTS, x86)",
	},
	{
		.name = "cpu-clock",
		.question = "whether the machine itself stood still",
		.kernel_name = "hrtimer_expire_entry",
		.programs = {"on_hrtimer_expire_entry"},
		.remedy = "needs a kernel with the timer tracepoints (CONFIG_TRACEPOINTS)",
		.missing = TAILOR_MISSING_STALL,
		.clock = 1,
	},
	{
		.name = "irq_handler",
		.question = "how long devices' interrupts kept a thread's CPU (trace.interrupts)",
		.kernel_name = "irq_handler_entry",
		/* Attached in this order: what begins is to have an end. */
		.programs = {"on_irq_handler_exit", "on_irq_handler_entry"},
		.remedy = "needs a kernel with CONFIG_TRACEPOINTS",
		.on_request = 1,
	},
	{
		.name = "softirq",
		.question = "how long the network's and timers' softirqs kept a thread's CPU (trace.interrupts)",
		.kernel_name = "softirq_entry",
		.programs = {"on_softirq_exit", "on_softirq_entry"},
		.remedy = "needs a kernel with CONFIG_TRACEPOINTS",
		.on_request = 1,
	},
};
_Static_assert(sizeof(plans) / sizeof(plans[0]) <= TAILOR_PROBES_MAX, "callers size their arrays by TAILOR_PROBES_MAX");

size_t tailor_probe_plans(const struct tailor_probe_plan **ret_plans)
{
	*ret_plans = plans;
	return sizeof(plans) / sizeof(plans[0]);
}

/* The type through which a BPF program attaches to the tracepoint: a typedef of a pointer to its prototype. */
static int tracepoint_type(const char *tracepoint, const struct btf *kernel_types)
{
	char name[96];

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	return btf__find_by_name_kind(kernel_types, name, BTF_KIND_TYPEDEF);
}

int tailor_probe_arguments(const char *tracepoint, const struct btf *kernel_types)
{
	const struct btf_type *type;
	int id = tracepoint_type(tracepoint, kernel_types);

	if (id < 0)
		return -ENOENT;
	type = btf__type_by_id(kernel_types, btf__type_by_id(kernel_types, (__u32)id)->type);
	if (!type || !btf_is_ptr(type))
		return -ENOENT;
	type = btf__type_by_id(kernel_types, type->type);
	if (!type || !btf_is_func_proto(type) || btf_vlen(type) == 0)
		return -ENOENT;
	return btf_vlen(type) - 1; /* the first is the tracepoint's own context, which programs do not see */
}

static int kernel_is_locked_down(void)
{
	cleanup_fclose FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char line[128];

	return file && fgets(line, sizeof(line), file) && strstr(line, "[confidentiality]");
}

const char *tailor_bpf_remedy(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		if (kernel_is_locked_down())
			return "kernel lockdown is in confidentiality mode, which forbids tracing: boot with "
			       "lockdown=integrity or none";
		return "needs root or CAP_BPF+CAP_PERFMON";
	case ENOMEM: return "not enough memory for the channels: keep fewer events or raise the memory cgroup's limit";
	case ENOSYS: return "this kernel has no bpf(2): needs CONFIG_BPF_SYSCALL=y";
	case EMFILE:
	case ENFILE: return tailor_limits_remedy(-error);
	default: return "run tailor doctor and report this with the kernel's version";
	}
}

static int load_trial(enum bpf_prog_type type, enum bpf_attach_type attach, __u32 type_id)
{
	/* r0 = 0; exit */
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach, .attach_btf_id = type_id);
	int fd = bpf_prog_load(type, "tailor_ask", "GPL", nothing, 2, &options);

	return fd < 0 ? -errno : fd;
}

/*
 * Linux 6.6 brought it, but saw only a process's first thread when told its id, until 6.10 and some later 6.6 and 6.9. A member that came with
 * 6.12 tells the kernels that are certain.
 */
int tailor_probe_uprobes_at_once(const struct btf *kernel_types)
{
	int id = btf__find_by_name_kind(kernel_types, "bpf_uprobe", BTF_KIND_STRUCT);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(kernel_types, (__u32)id);

	for (__u32 i = 0; type && i < btf_vlen(type); i++) {
		if (strcmp(btf__name_by_offset(kernel_types, btf_members(type)[i].name_off), "uprobe") == 0)
			return 1;
	}
	return 0;
}

#define PREEMPTIBLE_SINCE 7 /* Linux 7.0 */

int tailor_probe_preemptible(const char *release, const char *version)
{
	unsigned int major;

	return sscanf(release, "%u.", &major) != 1 || major >= PREEMPTIBLE_SINCE || strstr(version, "PREEMPT_RT") != NULL;
}

static int ask_uprobe(const struct tailor_probe_plan *plan, const struct btf *kernel_types, char *reason, size_t reason_size)
{
	cleanup_close int program = -1;
	int at_once = tailor_probe_uprobes_at_once(kernel_types);
	int type = at_once ? 0 : tailor_uprobes_type();

	if (type < 0) {
		snprintf(reason, reason_size, "this kernel does not have it: %s", plan->remedy);
		return -ENOENT;
	}
	program = load_trial(BPF_PROG_TYPE_KPROBE, at_once ? TAILOR_ATTACH_UPROBE_MULTI : 0, 0);
	if (program < 0)
		snprintf(reason, reason_size, "the kernel refused it (%s): %s", strerror(-program), tailor_bpf_remedy(-program));
	return program < 0 ? program : 0;
}

int tailor_probe_ask(const struct tailor_probe_plan *plan, const struct btf *kernel_types, char *reason,
                     size_t reason_size)
{
	int id = plan->uprobe     ? 0
	         : plan->function ? btf__find_by_name_kind(kernel_types, plan->kernel_name, BTF_KIND_FUNC)
	                          : tracepoint_type(plan->kernel_name, kernel_types);
	cleanup_close int program = -1;
	cleanup_close int link = -1;
	int error;

	if (plan->uprobe)
		return ask_uprobe(plan, kernel_types, reason, reason_size);
	if (id < 0) {
		snprintf(reason, reason_size, "this kernel does not have it: %s", plan->remedy);
		return -ENOENT;
	}
	program = load_trial(BPF_PROG_TYPE_TRACING, plan->function ? BPF_TRACE_FEXIT : BPF_TRACE_RAW_TP, (__u32)id);
	if (program < 0) {
		error = -program;
	} else if (plan->function) {
		/* Hardened kernels accept the program and refuse to patch the function, or the other way round. */
		link = bpf_raw_tracepoint_open(NULL, program);
		error = link < 0 ? errno : 0;
	} else {
		error = 0;
	}
	if (error && plan->function)
		snprintf(reason, reason_size, "this kernel or its hardening allows no fentry/fexit programs (%s): %s",
		         strerror(error), plan->remedy);
	else if (error)
		snprintf(reason, reason_size, "the kernel refused it (%s): %s", strerror(error),
		         tailor_bpf_remedy(error));
	return -error;
}
