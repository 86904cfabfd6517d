/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread of the proxy finds in its entry when it has been kept from running. */
#include "tests/integration/kernel_harness.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tailor_bpf.skel.h>

#include "base/clock.h"

#define KEPT_NS (30 * TAILOR_NS_PER_MS)

static struct tailor_kernel *kernel;

/* A worker is known by its having a ring. */
static void have_a_ring(void)
{
	struct io_uring_params parameters = {0};

	if (syscall(SYS_io_uring_setup, 1, &parameters) < 0)
		_exit(1);
}

/* Sleeps when it is told to, and tells when it has slept. */
static void sleeper(int control, void *context)
{
	have_a_ring();
	(void)context;
	for (;;)
		control_tell(control, control_hear(control) + 1);
}

static const struct tailor_late *late_of(pid_t tid)
{
	const struct tailor_late *late = &tailor_kernel_lates(kernel)[TAILOR_LATE_ENTRY(tid)];

	return late->tid == (uint32_t)tid ? late : NULL;
}

/* Stops the child, gives it something to do, and lets it go on only after a while; returns what it found then. */
static struct tailor_late kept_from_running(const struct child *child, uint64_t *ret_stopped_ns)
{
	struct tailor_late nothing = {0};
	siginfo_t information;

	*ret_stopped_ns = tailor_clock_ns();
	assert_int_equal(kill(child->pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)child->pid, &information, WSTOPPED), 0);
	child_tell(child, 1);
	usleep(KEPT_NS / TAILOR_NS_PER_US);
	assert_int_equal(kill(child->pid, SIGCONT), 0);
	assert_int_equal(child_hear(child), 2);
	return late_of(child->pid) ? *late_of(child->pid) : nothing;
}

static void a_thread_that_was_stopped_finds_since_when(void **state)
{
	struct child child = child_start("sleeper", sleeper, NULL);

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_PROXY), 0);
	assert_int_equal(child_ask(&child, 1), 2);
	/* One time or another it waits for its CPU already when it is stopped: then it was kept from running before. */
	for (int i = 0, found = 0; found < 3; i++) {
		uint64_t stopped_ns, now_ns;
		struct tailor_late late;

		usleep(3 * TAILOR_LATE_NS / 1000);
		late = kept_from_running(&child, &stopped_ns);
		now_ns = tailor_clock_ns();
		assert_int_equal(late.tid, child.pid);
		assert_true(late.until_ns > late.from_ns && late.until_ns <= now_ns);
		assert_true(i < 20);
		found += late.from_ns >= stopped_ns;
		/* It says that it stops before it leaves its CPU, which may be a while on a machine that is emulated. */
		assert_true(late.until_ns - late.from_ns >= KEPT_NS / 2);
	}
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
}

/* It has hardly had time for what came meanwhile. */
static void who_is_kept_from_running_again_at_once_finds_since_when_the_first_time(void **state)
{
	struct child child = child_start("sleeper", sleeper, NULL);
	unsigned int together = 0;

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_PROXY), 0);
	assert_int_equal(child_ask(&child, 1), 2);
	/* A busy machine may let more time pass now and then. */
	for (int i = 0; i < 20 && !together; i++) {
		uint64_t stopped_ns, again_ns;
		struct tailor_late late;

		kept_from_running(&child, &stopped_ns);
		late = kept_from_running(&child, &again_ns);
		together += late.from_ns >= stopped_ns && late.from_ns < again_ns && late.until_ns > again_ns;
		usleep(3 * TAILOR_LATE_NS / 1000);
	}
	assert_int_equal(together, 1);
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
}

static void a_thread_that_only_sleeps_finds_nothing(void **state)
{
	struct child child = child_start("sleeper", sleeper, NULL);
	unsigned int late = 0;

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_PROXY), 0);
	assert_int_equal(child_ask(&child, 1), 2);
	for (int i = 0; i < 20; i++) {
		uint64_t before_ns = tailor_clock_ns();

		usleep(3000);
		assert_int_equal(child_ask(&child, 1), 2);
		late += late_of(child.pid) && late_of(child.pid)->until_ns > before_ns;
	}
	/* A busy machine may keep it from running now and then. */
	assert_true(late < 5);
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
}

static void a_server_that_is_stopped_is_none_of_these(void **state)
{
	struct child child = child_start("sleeper", sleeper, NULL);
	uint64_t stopped_ns;

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	assert_int_equal(kept_from_running(&child, &stopped_ns).tid, 0);
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
}

static size_t count_wakeups(const struct recording *recording, pid_t tid, uint32_t extra)
{
	const struct tailor_event *event;
	size_t index = 0, count = 0;

	while ((event = recording_next(recording, &index, TAILOR_EVENT_WAKEUP, tid)))
		count += event->extra == extra;
	return count;
}

static void whoever_wakes_a_stopped_thread_says_that_it_was_stopped(void **state)
{
	struct child child = child_start("sleeper", sleeper, NULL);
	struct recording recording;
	uint64_t stopped_ns;

	(void)state;
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	for (int i = 0; i < 10; i++) {
		usleep(1000); /* until it sleeps: who does not yet need not be woken */
		assert_int_equal(child_ask(&child, 1), 2);
	}
	recording_end(&recording);
	assert_true(count_wakeups(&recording, child.pid, 0) > 0);
	assert_int_equal(count_wakeups(&recording, child.pid, TAILOR_WAKEUP_STOPPED), 0);
	recording_free(&recording);

	recording_begin(&recording, kernel);
	(void)kept_from_running(&child, &stopped_ns);
	recording_end(&recording);
	assert_int_equal(count_wakeups(&recording, child.pid, TAILOR_WAKEUP_STOPPED), 1);
	recording_free(&recording);
	tailor_kernel_untrace(kernel, child.pid);
	child_stop(&child);
}

/* Both ends of a TCP connection. */
static void connect_to_itself(int pair[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (const struct sockaddr *)&address, length) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0 ||
	    connect(pair[0], (const struct sockaddr *)&address, length) < 0)
		_exit(1);
	pair[1] = accept(listener, NULL, NULL);
	close(listener);
}

/* Is woken, and receives something only when it has been running for 3 ms. */
static void late_receiver(int control, void *context)
{
	int pair[2];
	char byte = 0;

	(void)context;
	have_a_ring();
	connect_to_itself(pair);
	if (write(pair[0], &byte, 1) != 1)
		_exit(1);
	for (;;) {
		int64_t told = control_hear(control);
		uint64_t until_ns;

		usleep(2000);
		until_ns = tailor_clock_ns() + 3 * TAILOR_NS_PER_MS;
		while (tailor_clock_ns() < until_ns)
			;
		if (recv(pair[1], &byte, 1, 0) != 1 || write(pair[0], &byte, 1) != 1)
			_exit(1);
		control_tell(control, told + 1);
	}
}

/* Only the programs that see it woken, and receive; not the one that sees how it gets a CPU. */
static struct tailor_bpf *load_without_switches(pid_t pid)
{
	struct btf *kernel_types = btf__load_vmlinux_btf();
	int has_tracepoint = btf__find_by_name_kind(kernel_types, "btf_trace_sock_recv_length", BTF_KIND_TYPEDEF) > 0;
	const char *receive = has_tracepoint ? "on_sock_recv_length" : "on_tcp_recvmsg";
	struct tailor_bpf *bpf = tailor_bpf__open();
	struct bpf_program *program;

	btf__free(kernel_types);
	assert_non_null(bpf);
	bpf_object__for_each_program(program, bpf->obj) {
		const char *name = bpf_program__name(program);

		bpf_program__set_autoload(program, strcmp(name, "on_sched_waking") == 0 || strcmp(name, receive) == 0);
	}
	bpf->bss->traced_hint[(size_t)pid % (sizeof(bpf->bss->traced_hint) / sizeof(bpf->bss->traced_hint[0]))] =
		(uint32_t)pid << 2 | TAILOR_TRACED_PROXY;
	assert_int_equal(tailor_bpf__load(bpf), 0);
	assert_int_equal(tailor_bpf__attach(bpf), 0);
	return bpf;
}

static void that_it_runs_is_seen_by_what_it_does_where_no_switch_to_it_was(void **state)
{
	struct child child = child_start("receiver", late_receiver, NULL);
	const struct tailor_late *lates, *late;
	unsigned int found = 0;
	struct tailor_bpf *bpf;

	(void)state;
	assert_int_equal(child_ask(&child, 1), 2);
	bpf = load_without_switches(child.pid);
	lates = mmap(NULL, TAILOR_LATE_THREADS * sizeof(*lates), PROT_READ, MAP_SHARED, bpf_map__fd(bpf->maps.lates), 0);
	assert_true(lates != MAP_FAILED);
	late = &lates[TAILOR_LATE_ENTRY(child.pid)];
	for (int i = 0; i < 10; i++) {
		uint64_t begin_ns = tailor_clock_ns();

		assert_int_equal(child_ask(&child, 1), 2);
		/* Who was woken before he had left his CPU was not kept from running. */
		if (late->until_ns < begin_ns)
			continue;
		assert_int_equal(late->tid, child.pid);
		assert_in_range(late->until_ns, begin_ns + 3 * TAILOR_NS_PER_MS, tailor_clock_ns());
		found += late->until_ns - late->from_ns >= 2 * TAILOR_NS_PER_MS;
	}
	assert_true(found >= 5);
	munmap((void *)(uintptr_t)lates, TAILOR_LATE_THREADS * sizeof(*lates));
	tailor_bpf__destroy(bpf);
	child_stop(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_thread_that_was_stopped_finds_since_when),
	        cmocka_unit_test(who_is_kept_from_running_again_at_once_finds_since_when_the_first_time),
	        cmocka_unit_test(a_thread_that_only_sleeps_finds_nothing),
	        cmocka_unit_test(a_server_that_is_stopped_is_none_of_these),
	        cmocka_unit_test(whoever_wakes_a_stopped_thread_says_that_it_was_stopped),
	        cmocka_unit_test(that_it_runs_is_seen_by_what_it_does_where_no_switch_to_it_was),
	};
	int failed;

	kernel = harness_open(4096);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
