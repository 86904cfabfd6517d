/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <tailor/timeline.h>
#include <unistd.h>

#include <tailor_bpf.skel.h>

#include "base/limits.h"
#include "collect/kernel_clock.h"
#include "collect/kernel_probes.h"
#include "collect/kernel_stops.h"
#include "collect/kernel_traced.h"
#include "collect/kernel_uprobe.h"

/* An interrupt costs some 11 us in a virtual machine: 0.1% of a CPU. */
#define CLOCK_PERIOD_NS 10000000
/* Shorter lateness is not told from what interrupts do. */
#define STALL_MIN_NS 5000000

struct mapping {
	void *start; /* NULL: not mapped */
	size_t bytes;
};

struct tailor_kernel {
	struct tailor_bpf *bpf;
	struct bpf_link *links[TAILOR_PROBES_MAX][TAILOR_PROBE_PROGRAMS_MAX];
	struct tailor_kernel_clock *clock; /* NULL: none */
	struct tailor_probe probes[TAILOR_PROBES_MAX];
	const struct tailor_probe_plan *chosen[TAILOR_PROBES_MAX]; /* how each is answered; NULL: not at all */
	size_t probe_count;
	struct mapping heads;
	struct mapping slots;
	struct mapping tags;
	struct mapping lates;
	struct tailor_kernel_stops *stops;
	struct tailor_channel *channels;
	size_t channel_count;
	struct tailor_uprobes *uprobes; /* NULL: this kernel has none */
	int uprobes_at_once;            /* see kernel_uprobe.h */
	pthread_mutex_t lock; /* of what follows */
	struct tailor_kernel_traced traced;
};

/* The first thing libbpf complained about in this thread since it was last cleared: the later ones only repeat it less
 * precisely. */
static _Thread_local char complaint[160];

__attribute__((format(printf, 2, 0)))
static int keep_complaint(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && !complaint[0]) {
		vsnprintf(complaint, sizeof(complaint), format, arguments);
		complaint[strcspn(complaint, "\n")] = '\0';
	}
	return 0;
}

static int fail(int error, const char *tried, char *text, size_t size)
{
	snprintf(text, size, "cannot %s: %s%s%s%s; %s", tried, strerror(error), complaint[0] ? " (" : "", complaint,
	         complaint[0] ? ")" : "", tailor_bpf_remedy(error));
	return -error;
}

/* The programs see ids of the initial pid namespace; in another one the same number is a stranger. The inode is ABI
 * (PROC_PID_INIT_INO). */
static int in_initial_pid_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == 0xEFFFFFFCu;
}

static int are_tracepoints_preemptible(void)
{
	struct utsname names;

	return uname(&names) != 0 || tailor_probe_preemptible(names.release, names.version);
}

static void set_autoload(struct tailor_kernel *kernel, const struct tailor_probe_plan *plan, int load)
{
	for (size_t i = 0; i < TAILOR_PROBE_PROGRAMS_MAX && plan->programs[i]; i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(kernel->bpf->obj, plan->programs[i]), load);
}

/* Asks for one probe, and where the kernel has none, for what stands in for it. Returns 0 or why there is none. */
static int choose_probe(struct tailor_kernel *kernel, size_t i, const struct tailor_probe_plan *plan,
			const struct btf *kernel_types)
{
	struct tailor_probe *probe = &kernel->probes[i];
	char ignored[sizeof(probe->reason)];
	int result = tailor_probe_ask(plan, kernel_types, probe->reason, sizeof(probe->reason));

	kernel->chosen[i] = result == 0 ? plan : NULL;
	if (result != 0 && plan->instead && (result == -ENOENT || plan->function) &&
	    tailor_probe_ask(plan->instead, kernel_types, ignored, sizeof(ignored)) == 0) {
		kernel->chosen[i] = plan->instead;
		probe->name = plan->instead->name;
		probe->reason[0] = '\0';
		result = 0;
	}
	return result;
}

/* Chooses every probe and leaves in the object only the programs that the kernel will take. */
static int choose_probes(struct tailor_kernel *kernel, const struct btf *kernel_types, int optional, char *error,
                         size_t error_size)
{
	const struct tailor_probe_plan *plans;

	kernel->probe_count = tailor_probe_plans(&plans);
	for (size_t i = 0; i < kernel->probe_count; i++) {
		struct tailor_probe *probe = &kernel->probes[i];
		int result = -ENOENT;

		*probe = (struct tailor_probe){
			.name = plans[i].name, .question = plans[i].question, .required = plans[i].required};
		kernel->chosen[i] = NULL;
		if (optional || probe->required)
			result = choose_probe(kernel, i, &plans[i], kernel_types);
		else
			snprintf(probe->reason, sizeof(probe->reason),
			         "left out, as the kernel refused all of the programs together");
		set_autoload(kernel, &plans[i], kernel->chosen[i] == &plans[i]);
		if (plans[i].instead)
			set_autoload(kernel, plans[i].instead, kernel->chosen[i] == plans[i].instead);
		if (result != 0 && probe->required) {
			snprintf(error, error_size, "cannot trace with %s: %s", probe->name, probe->reason);
			return result;
		}
	}
	return 0;
}

/* There is nobody yet to attach to. */
static int open_uprobes(struct tailor_kernel *kernel, struct tailor_probe *probe, const struct tailor_probe_plan *plan)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(kernel->bpf->obj, plan->programs[0]);
	int error = tailor_uprobes_open(bpf_program__fd(program), kernel->uprobes_at_once, &kernel->uprobes);

	if (error)
		snprintf(probe->reason, sizeof(probe->reason), "cannot attach: %s; %s", strerror(-error), tailor_bpf_remedy(-error));
	else
		probe->attached = 1;
	return error;
}

/* Attaches the programs of one probe, all or none. */
static int attach_probe(struct tailor_kernel *kernel, size_t i)
{
	struct tailor_probe *probe = &kernel->probes[i];
	const struct tailor_probe_plan *plan = kernel->chosen[i];

	if (plan->uprobe)
		return open_uprobes(kernel, probe, plan);
	if (plan->clock) {
		int result = tailor_kernel_clock_open(CLOCK_PERIOD_NS, &kernel->clock, probe->reason, sizeof(probe->reason));

		if (result != 0)
			return result;
	}
	for (size_t j = 0; j < TAILOR_PROBE_PROGRAMS_MAX && plan->programs[j]; j++) {
		struct bpf_program *program = bpf_object__find_program_by_name(kernel->bpf->obj, plan->programs[j]);
		int result;

		kernel->links[i][j] = bpf_program__attach(program);
		if (kernel->links[i][j])
			continue;
		result = -errno;
		snprintf(probe->reason, sizeof(probe->reason), "cannot attach: %s; %s", strerror(-result),
		         tailor_bpf_remedy(-result));
		while (j-- > 0) {
			bpf_link__destroy(kernel->links[i][j]);
			kernel->links[i][j] = NULL;
		}
		return result;
	}
	probe->attached = 1;
	return 0;
}

static int attach_probes(struct tailor_kernel *kernel, char *error, size_t error_size)
{
	for (size_t i = 0; i < kernel->probe_count; i++) {
		int result = 0;

		kernel->probes[i].unasked = kernel->chosen[i] && kernel->chosen[i]->on_request;
		if (kernel->probes[i].unasked)
			snprintf(kernel->probes[i].reason, sizeof(kernel->probes[i].reason), "nobody asked for it");
		else if (kernel->chosen[i])
			result = attach_probe(kernel, i);
		if (result != 0 && kernel->probes[i].required) {
			snprintf(error, error_size, "cannot trace with %s: %s", kernel->probes[i].name,
			         kernel->probes[i].reason);
			return result;
		}
	}
	return 0;
}

void tailor_kernel_watch_interrupts(struct tailor_kernel *kernel)
{
	for (size_t i = 0; i < kernel->probe_count; i++) {
		if (!kernel->probes[i].unasked)
			continue;
		kernel->probes[i].unasked = 0;
		kernel->probes[i].reason[0] = '\0';
		(void)attach_probe(kernel, i);
	}
}

static int map_memory(struct bpf_map *map, size_t entry_bytes, int protection, struct mapping *ret_mapping)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (bpf_map__max_entries(map) * entry_bytes + page - 1) & ~(page - 1);
	void *start = mmap(NULL, bytes, protection, MAP_SHARED, bpf_map__fd(map), 0);

	if (start == MAP_FAILED)
		return -errno;
	*ret_mapping = (struct mapping){.start = start, .bytes = bytes};
	return 0;
}

static void unmap_memory(struct mapping *mapping)
{
	if (mapping->start)
		munmap(mapping->start, mapping->bytes);
	*mapping = (struct mapping){0};
}

/* Channels are mapped read-only: this process reads what the kernel records and cannot spoil it. */
static int map_channels(struct tailor_kernel *kernel, size_t slots_per_cpu)
{
	int result = map_memory(kernel->bpf->maps.heads, sizeof(struct tailor_channel_head), PROT_READ, &kernel->heads);

	if (result == 0)
		result = map_memory(kernel->bpf->maps.slots, sizeof(struct tailor_event), PROT_READ, &kernel->slots);
	if (result == 0)
		result = map_memory(kernel->bpf->maps.tags, sizeof(struct tailor_tag), PROT_READ | PROT_WRITE, &kernel->tags);
	if (result == 0)
		result = map_memory(kernel->bpf->maps.lates, sizeof(struct tailor_late), PROT_READ, &kernel->lates);
	if (result == 0)
		result = tailor_kernel_stops_open(bpf_map__fd(kernel->bpf->maps.stops), bpf_map__fd(kernel->bpf->maps.stop_changes),
		                                  &kernel->bpf->bss->signal_stops, &kernel->stops);
	if (result != 0)
		return result;
	kernel->channels = calloc(kernel->channel_count, sizeof(*kernel->channels));
	if (!kernel->channels)
		return -ENOMEM;
	for (size_t cpu = 0; cpu < kernel->channel_count; cpu++)
		kernel->channels[cpu] = (struct tailor_channel){
			.head = (struct tailor_channel_head *)kernel->heads.start + cpu,
			.slots = (struct tailor_event *)kernel->slots.start + cpu * slots_per_cpu,
			.mask = slots_per_cpu - 1,
		};
	return 0;
}

/* Opens the object, sizes its maps and loads what `optional` and the kernel allow. */
static int load_programs(struct tailor_kernel *kernel, const struct btf *kernel_types, size_t slots_per_cpu,
                         int optional, char *error, size_t error_size)
{
	int result;

	complaint[0] = '\0';
	kernel->bpf = tailor_bpf__open();
	if (!kernel->bpf)
		return fail(errno, "open the BPF programs", error, error_size);
	result = choose_probes(kernel, kernel_types, optional, error, error_size);
	if (result != 0)
		return result;
	kernel->bpf->rodata->slots_shift = (uint32_t)__builtin_ctzll(slots_per_cpu);
	kernel->bpf->rodata->tracepoints_preemptible = are_tracepoints_preemptible();
	kernel->bpf->rodata->retransmit_has_error = tailor_probe_arguments("tcp_retransmit_skb", kernel_types) > 2;
	for (size_t i = 0; i < kernel->probe_count; i++) {
		if (kernel->chosen[i] && strcmp(kernel->chosen[i]->name, "handle_mm_fault") == 0)
			kernel->bpf->rodata->faults_have_ends = 1;
	}
	kernel->uprobes_at_once = tailor_probe_uprobes_at_once(kernel_types);
	if (kernel->uprobes_at_once)
		bpf_program__set_expected_attach_type(kernel->bpf->progs.on_jvm_probe, (enum bpf_attach_type)TAILOR_ATTACH_UPROBE_MULTI);
	kernel->bpf->rodata->clock_period_ns = CLOCK_PERIOD_NS;
	kernel->bpf->rodata->stall_min_ns = STALL_MIN_NS;
	bpf_map__set_max_entries(kernel->bpf->maps.heads, (__u32)kernel->channel_count);
	bpf_map__set_max_entries(kernel->bpf->maps.slots, (__u32)(kernel->channel_count * slots_per_cpu));
	complaint[0] = '\0';
	result = tailor_bpf__load(kernel->bpf);
	return result == 0 ? 0 : fail(-result, "load the BPF programs", error, error_size);
}

static int open_kernel(struct tailor_kernel *kernel, const struct btf *kernel_types, size_t slots_per_cpu, char *error,
                       size_t error_size)
{
	int result = load_programs(kernel, kernel_types, slots_per_cpu, 1, error, error_size);

	if (result == -EINVAL || result == -EACCES || result == -ENOTSUP) {
		/* Each optional probe was accepted with an empty program, but some real one was not: do without all of
		 * them rather than without the required ones. */
		tailor_bpf__destroy(kernel->bpf);
		result = load_programs(kernel, kernel_types, slots_per_cpu, 0, error, error_size);
	}
	if (result != 0)
		return result;
	result = map_channels(kernel, slots_per_cpu);
	if (result != 0)
		return fail(-result, "map the kernel's channels", error, error_size);
	kernel->traced.map = bpf_map__fd(kernel->bpf->maps.traced);
	kernel->traced.hints = kernel->bpf->bss->traced_hint;
	kernel->traced.hint_count = sizeof(kernel->bpf->bss->traced_hint) / sizeof(kernel->bpf->bss->traced_hint[0]);
	return attach_probes(kernel, error, error_size);
}

/* Open files of its programs, maps and links, and some more while they are loaded; and a clock event for each CPU. */
#define FILES_MAX 64

int tailor_kernel_open(size_t slots_per_cpu, struct tailor_kernel **ret_kernel, char *error, size_t error_size)
{
	struct tailor_kernel *kernel;
	struct btf *kernel_types;
	int cpus = libbpf_num_possible_cpus();
	int result;

	libbpf_set_print(keep_complaint);
	complaint[0] = '\0';
	/* First of all: loading without goes on to do without this or that, and fails by something else in the end. */
	result = tailor_limits_ask_for_files(FILES_MAX + (size_t)(cpus > 0 ? cpus : 0));
	if (result != 0) {
		snprintf(error, error_size, "not enough open files for kernel events: %s; %s", strerror(-result), tailor_bpf_remedy(-result));
		return result;
	}
	if (cpus <= 0 || slots_per_cpu == 0 || (slots_per_cpu & (slots_per_cpu - 1)) || slots_per_cpu > UINT32_MAX / (unsigned int)cpus) {
		snprintf(error, error_size, "cannot keep %zu events per CPU: the number must be a power of two", slots_per_cpu);
		return -EINVAL;
	}
	if (!in_initial_pid_namespace()) {
		snprintf(error, error_size, "cannot trace from inside a pid namespace, where process ids differ from the kernel's: "
		                            "run in the host's (docker run --pid=host, hostPID: true)");
		return -EOPNOTSUPP;
	}
	kernel_types = btf__load_vmlinux_btf();
	if (!kernel_types) {
		result = -errno;
		if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
			result = -errno; /* libbpf tries other places too and tells only of the last */
		snprintf(error, error_size, "cannot read /sys/kernel/btf/vmlinux: %s; %s", strerror(-result),
		         tailor_limits_remedy(result) ?: "needs a kernel with CONFIG_DEBUG_INFO_BTF=y and sysfs mounted");
		return result == -EPERM || result == -EACCES ? -EPERM : -ENOENT;
	}
	kernel = calloc(1, sizeof(*kernel));
	if (!kernel) {
		btf__free(kernel_types);
		return fail(ENOMEM, "open the kernel's recording", error, error_size);
	}
	pthread_mutex_init(&kernel->lock, NULL);
	kernel->channel_count = (size_t)cpus;
	result = open_kernel(kernel, kernel_types, slots_per_cpu, error, error_size);
	btf__free(kernel_types);
	if (result != 0) {
		tailor_kernel_close(kernel);
		return result;
	}
	*ret_kernel = kernel;
	return 0;
}

void tailor_kernel_close(struct tailor_kernel *kernel)
{
	if (!kernel)
		return;
	tailor_uprobes_close(kernel->uprobes);
	for (size_t i = 0; i < TAILOR_PROBES_MAX; i++) {
		for (size_t j = 0; j < TAILOR_PROBE_PROGRAMS_MAX; j++)
			bpf_link__destroy(kernel->links[i][j]);
	}
	tailor_kernel_clock_close(kernel->clock);
	unmap_memory(&kernel->heads);
	unmap_memory(&kernel->slots);
	unmap_memory(&kernel->tags);
	unmap_memory(&kernel->lates);
	tailor_kernel_stops_close(kernel->stops);
	tailor_bpf__destroy(kernel->bpf);
	pthread_mutex_destroy(&kernel->lock);
	free(kernel->channels);
	free(kernel);
}

const struct tailor_late *tailor_kernel_lates(const struct tailor_kernel *kernel)
{
	return kernel->lates.start;
}

struct tailor_stop *tailor_kernel_stops(const struct tailor_kernel *kernel)
{
	return tailor_kernel_stops_table(kernel->stops);
}

int tailor_kernel_stops_fd(const struct tailor_kernel *kernel)
{
	return tailor_kernel_stops_changes(kernel->stops);
}

int tailor_kernel_tell_stops(struct tailor_kernel *kernel, unsigned int server, pid_t pid)
{
	return tailor_kernel_stops_tell(kernel->stops, server, pid);
}

struct tailor_tag *tailor_kernel_tags(struct tailor_kernel *kernel)
{
	return kernel->tags.start;
}

size_t tailor_kernel_channels(struct tailor_kernel *kernel, const struct tailor_channel **ret_channels)
{
	*ret_channels = kernel->channels;
	return kernel->channel_count;
}

size_t tailor_kernel_probes(const struct tailor_kernel *kernel, const struct tailor_probe **ret_probes)
{
	*ret_probes = kernel->probes;
	return kernel->probe_count;
}

uint32_t tailor_kernel_missing(const struct tailor_kernel *kernel)
{
	const struct tailor_probe_plan *plans;
	uint32_t missing = 0;

	tailor_probe_plans(&plans);
	for (size_t i = 0; i < kernel->probe_count; i++) {
		if (!kernel->probes[i].attached)
			missing |= plans[i].missing;
	}
	return missing;
}

uint32_t tailor_kernel_process_missing(const struct tailor_kernel *kernel, pid_t pid)
{
	return kernel->uprobes && tailor_uprobes_state(kernel->uprobes, pid) == 1 ? 0 : TAILOR_MISSING_SAFEPOINTS;
}

int tailor_kernel_needs_perfmon(const struct tailor_kernel *kernel)
{
	return kernel->uprobes && !kernel->uprobes_at_once;
}

int tailor_kernel_trace(struct tailor_kernel *kernel, pid_t pid, enum tailor_traced_role role)
{
	int result;

	if (pid <= 0)
		return -EINVAL;
	pthread_mutex_lock(&kernel->lock);
	result = tailor_kernel_traced_add(&kernel->traced, pid, role);
	if (result == 0 && kernel->uprobes && role == TAILOR_TRACED_SERVER)
		tailor_uprobes_follow(kernel->uprobes, pid);
	pthread_mutex_unlock(&kernel->lock);
	return result;
}

int tailor_kernel_untrace(struct tailor_kernel *kernel, pid_t pid)
{
	int result;

	pthread_mutex_lock(&kernel->lock);
	result = tailor_kernel_traced_remove(&kernel->traced, pid);
	if (kernel->uprobes)
		tailor_uprobes_forget(kernel->uprobes, pid);
	pthread_mutex_unlock(&kernel->lock);
	tailor_kernel_stops_forget(kernel->stops, pid);
	return result;
}

int tailor_kernel_survey(struct tailor_probe *ret_probes, size_t size, char *error, size_t error_size)
{
	struct tailor_kernel *kernel;
	size_t count;
	int result = tailor_kernel_open(64, &kernel, error, error_size);

	if (result != 0)
		return result;
	tailor_kernel_watch_interrupts(kernel);
	count = kernel->probe_count < size ? kernel->probe_count : size;
	memcpy(ret_probes, kernel->probes, count * sizeof(*ret_probes));
	tailor_kernel_close(kernel);
	return (int)count;
}
