/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU did meanwhile: idle states left, timers that did not come, interrupts. */
#include "tests/integration/kernel_harness.h"

#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <tailor/timeline.h>
#include <time.h>
#include <unistd.h>

#include <tailor_bpf.skel.h>

#include "base/clock.h"

static struct tailor_kernel *kernel;

static int is_attached(const char *name)
{
	const struct tailor_probe *probes;
	size_t count = tailor_kernel_probes(kernel, &probes);

	for (size_t i = 0; i < count; i++)
		if (strcmp(probes[i].name, name) == 0)
			return probes[i].attached;
	fail_msg("no probe %s", name);
	return 0;
}

static void nap(int control, void *context)
{
	const struct timespec time = {.tv_nsec = 10000000};

	(void)context;
	for (;;) {
		int64_t naps = control_hear(control);

		for (int64_t i = 0; i < naps; i++)
			nanosleep(&time, NULL);
		control_tell(control, naps);
	}
}

static void a_thread_that_found_its_cpu_idle_shows_when_the_cpu_left_which_idle_state(void **state)
{
	struct child child = child_start("napper", nap, NULL);
	const struct tailor_event *event;
	struct recording recording;
	size_t idled = 0, found = 0;

	(void)state;
	if (!is_attached("cpu_idle")) {
		print_message("             cannot be tried here: no cpu_idle tracepoint\n");
		child_stop(&child);
		return;
	}
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	for (int i = 0; i < 20 && idled < 20; i++) { /* a busy machine is seldom idle */
		uint64_t wakeup_ns = 0;

		child_ask(&child, 20);
		recording_end(&recording);
		idled = found = 0;
		for (size_t index = 0; index < recording.count; index++) {
			event = &recording.events[index];
			if (event->kind == TAILOR_EVENT_WAKEUP)
				wakeup_ns = event->time_ns;
			if (event->kind != TAILOR_EVENT_SWITCH_IN || event->arg[0] != 0)
				continue;
			assert_true(event->arg[1] <= event->time_ns);
			assert_int_equal(event->arg[1] == 0, event->arg[2] == 0);
			assert_in_range(event->arg[2], 0, 16);
			idled++;
			/* The timer that woke the thread ended the idling. */
			found += event->arg[1] > wakeup_ns;
		}
	}
	tailor_kernel_untrace(kernel, child.pid);
	print_message("             the CPU was idle %zu times, in an idle state %zu times\n", idled, found);
	/* It may have been on its way into an idle state only. */
	assert_true(found >= idled / 2);
	recording_free(&recording);
	child_stop(&child);
}

static void spin(int control, void *context)
{
	(void)control;
	(void)context;
	for (;;)
		;
}

#define SLOTS 1024

/* The program alone, told that a timer is late which is not there within a ns: each tick of a busy CPU then ends a stall. */
static struct tailor_bpf *load_impatient(void)
{
	struct tailor_bpf *bpf = tailor_bpf__open();
	struct bpf_program *program;

	assert_non_null(bpf);
	bpf_object__for_each_program(program, bpf->obj)
		bpf_program__set_autoload(program, strcmp(bpf_program__name(program), "on_hrtimer_expire_entry") == 0);
	bpf->rodata->clock_period_ns = TAILOR_NS_PER_S;
	bpf->rodata->stall_min_ns = 1;
	bpf->rodata->slots_shift = (uint32_t)__builtin_ctz(SLOTS);
	bpf_map__set_max_entries(bpf->maps.heads, (uint32_t)libbpf_num_possible_cpus());
	bpf_map__set_max_entries(bpf->maps.slots, (uint32_t)libbpf_num_possible_cpus() * SLOTS);
	assert_int_equal(tailor_bpf__load(bpf), 0);
	return bpf;
}

static void a_timer_that_comes_late_shows_as_a_stall_from_the_time_on_when_it_was_due(void **state)
{
	size_t slots_bytes = (size_t)libbpf_num_possible_cpus() * SLOTS * sizeof(struct tailor_event), found = 0, on_time = 0;
	struct child child = child_start("spinner", spin, NULL); /* a CPU that never idles, where the tick comes */
	struct tailor_bpf *bpf = load_impatient();
	struct tailor_channel_head *heads;
	struct tailor_event *slots;
	struct bpf_link *link;
	uint64_t begin_ns, last_ns = 0;
	struct tailor_channel channel;

	(void)state;
	pin(child.pid, 0);
	usleep(20000);
	begin_ns = tailor_clock_ns();
	link = bpf_program__attach(bpf->progs.on_hrtimer_expire_entry);
	assert_non_null(link);
	usleep(200000);
	bpf_link__destroy(link);
	heads = mmap(NULL, sizeof(*heads), PROT_READ, MAP_SHARED, bpf_map__fd(bpf->maps.heads), 0);
	slots = mmap(NULL, slots_bytes, PROT_READ, MAP_SHARED, bpf_map__fd(bpf->maps.slots), 0);
	assert_true(heads != MAP_FAILED && slots != MAP_FAILED);
	channel = (struct tailor_channel){.head = heads, .slots = slots, .mask = SLOTS - 1}; /* the first: of CPU 0 */
	for (uint64_t position = 0; position < tailor_channel_end(&channel); position++) {
		struct tailor_event event;

		assert_int_equal(tailor_channel_read(&channel, position, &event), TAILOR_READ_OK);
		assert_int_equal(event.kind, TAILOR_EVENT_CPU_STALL);
		assert_int_equal(event.cpu, 0);
		assert_int_equal(event.pid | event.tid | event.extra | event.request, 0);
		assert_true(event.arg[0] >= event.arg[1] && event.arg[0] < event.time_ns);
		on_time += event.time_ns - event.arg[0] < TAILOR_NS_PER_MS;
		assert_in_range(event.arg[1], last_ns ? last_ns : begin_ns, event.time_ns); /* no two at one time */
		last_ns = event.time_ns;
		found++;
	}
	assert_true(found >= 10);
	assert_true(on_time >= found / 2); /* since it was due, not since the tick before */
	munmap(heads, sizeof(*heads));
	munmap(slots, slots_bytes);
	tailor_bpf__destroy(bpf);
	child_stop(&child);
}

static size_t clock_events(void)
{
	DIR *files = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(files);
	while ((entry = readdir(files))) {
		char path[300], target[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) > 0)
			count += strcmp(target, "anon_inode:[perf_event]") == 0;
	}
	closedir(files);
	return count;
}

/* The host of a virtual machine may stop it at any time: what is told then must be possible, and longer than 5 ms. */
static void every_cpu_has_a_clock_and_what_it_calls_a_stall_is_long_enough_to_be_one(void **state)
{
	struct child child = child_start("napper", nap, NULL);
	const struct tailor_event *event;
	struct recording recording;
	uint64_t begin_ns = tailor_clock_ns(), sum_ns = 0;
	size_t index = 0;

	(void)state;
	if (tailor_kernel_missing(kernel) & TAILOR_MISSING_STALL) {
		assert_int_equal(is_attached("cpu-clock"), 0);
		print_message("             cannot be tried here: no clock events\n");
		child_stop(&child);
		return;
	}
	assert_int_equal(clock_events(), sysconf(_SC_NPROCESSORS_ONLN));
	recording_begin(&recording, kernel);
	recording.stalls = 1;
	child_ask(&child, 100);
	recording_end(&recording);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_CPU_STALL, 0))) {
		assert_true(event->arg[1] < event->arg[0] && event->arg[0] >= begin_ns - TAILOR_NS_PER_S);
		assert_true(event->time_ns - event->arg[0] >= 5 * TAILOR_NS_PER_MS);
		sum_ns += event->time_ns - event->arg[0];
	}
	print_message("             %llu ms of stalls in %llu ms\n", (unsigned long long)(sum_ns / TAILOR_NS_PER_MS),
	              (unsigned long long)((tailor_clock_ns() - begin_ns) / TAILOR_NS_PER_MS));
	assert_true(sum_ns <= (tailor_clock_ns() - begin_ns + TAILOR_NS_PER_S) * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	recording_free(&recording);
	child_stop(&child);
}

#define RECEIVERS 300

static const struct sockaddr_in crowd = {.sin_family = AF_INET, .sin_port = 0};

/* One datagram to many sockets: the softirq that hands it to all of them takes its time. */
static void send_to_many(int control, void *context)
{
	struct sockaddr_in group = crowd;
	struct ip_mreqn membership = {.imr_ifindex = 1};
	int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	socklen_t length = sizeof(group);

	(void)context;
	membership.imr_multiaddr.s_addr = htonl(0xefff2a2a);
	group.sin_addr = membership.imr_multiaddr;
	setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &membership, sizeof(membership));
	for (int i = 0; i < RECEIVERS; i++) {
		int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		setsockopt(receiver, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(receiver, (struct sockaddr *)&group, sizeof(group)) != 0 || getsockname(receiver, (struct sockaddr *)&group, &length) != 0 ||
		    setsockopt(receiver, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership)) != 0)
			_exit(1);
	}
	for (;;) {
		int64_t datagrams = control_hear(control), sent = 0;

		for (int64_t i = 0; i < datagrams; i++)
			sent += sendto(sender, "x", 1, 0, (struct sockaddr *)&group, sizeof(group)) == 1;
		control_tell(control, sent);
	}
}

#define NET_RX 3 /* NET_RX_SOFTIRQ, include/linux/interrupt.h */

static void interrupts_are_told_only_on_request_and_only_of_traced_threads(void **state)
{
	struct child child = child_start("sender", send_to_many, NULL);
	const struct tailor_event *event;
	struct recording recording;
	size_t index = 0, found = 0;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	assert_false(is_attached("softirq"));
	recording_begin(&recording, kernel);
	assert_int_equal(child_ask(&child, 20), 20);
	recording_end(&recording);
	assert_int_equal(recording_count(&recording, TAILOR_EVENT_INTERRUPT, child.pid), 0);
	recording_free(&recording);

	tailor_kernel_watch_interrupts(kernel);
	assert_true(is_attached("softirq") && is_attached("irq_handler"));
	begin_ns = tailor_clock_ns();
	recording_begin(&recording, kernel);
	assert_int_equal(child_ask(&child, 20), 20);
	recording_end(&recording);
	tailor_kernel_untrace(kernel, child.pid);
	while ((event = recording_next(&recording, &index, TAILOR_EVENT_INTERRUPT, 0))) {
		assert_int_equal(event->pid, child.pid);
		assert_in_range(event->arg[0], 20000, event->time_ns - begin_ns);
		found += event->extra == TAILOR_INTERRUPT(1, NET_RX);
	}
	assert_true(found >= 10);
	recording_free(&recording);

	recording_begin(&recording, kernel);
	assert_int_equal(child_ask(&child, 20), 20);
	recording_end(&recording);
	assert_int_equal(recording.count, 0);
	recording_free(&recording);
	child_stop(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_found_its_cpu_idle_shows_when_the_cpu_left_which_idle_state),
		cmocka_unit_test(a_timer_that_comes_late_shows_as_a_stall_from_the_time_on_when_it_was_due),
		cmocka_unit_test(every_cpu_has_a_clock_and_what_it_calls_a_stall_is_long_enough_to_be_one),
		cmocka_unit_test(interrupts_are_told_only_on_request_and_only_of_traced_threads),
	};
	int failed;

	kernel = harness_open(16384);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
