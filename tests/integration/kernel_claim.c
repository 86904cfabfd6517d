/* SPDX-License-Identifier: Apache-2.0 */
/* A program that may have come between another one's stores does not write into that one's slot; nobody else asks. */
#include "tests/integration/kernel_harness.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>
#include <tailor/channel.h>
#include <unistd.h>

#include <tailor_bpf.skel.h>

#include "collect/kernel_probes.h"

#define SHIFT 6
#define SLOTS (1 << SHIFT)
#define PAGES 100
#define SOMEBODY_INSIDE 1 /* odd: as sequence of a slot whose writer has not come back */

/* Sleeps, is woken, and touches memory that is not there. */
static void fault(int control, void *context)
{
	(void)context;
	for (;;) {
		int64_t pages = control_hear(control);
		size_t bytes = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
		char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			_exit(1);
		madvise(memory, bytes, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < bytes; i += (size_t)sysconf(_SC_PAGESIZE))
			((volatile char *)memory)[i] = 1;
		munmap(memory, bytes);
		control_tell(control, pages);
	}
}

static struct tailor_bpf *load(pid_t pid, bool preemptible)
{
	struct tailor_bpf *bpf = tailor_bpf__open();
	uint32_t cpus = (uint32_t)libbpf_num_possible_cpus();
	struct bpf_program *program;

	assert_non_null(bpf);
	bpf_object__for_each_program(program, bpf->obj) {
		const char *name = bpf_program__name(program);

		bpf_program__set_autoload(program, strcmp(name, "on_sched_waking") == 0 || strcmp(name, "on_sched_switch") == 0 ||
							   strcmp(name, "on_page_fault_user") == 0);
	}
	bpf->rodata->slots_shift = SHIFT;
	bpf->rodata->faults_have_ends = 1; /* each fault is told, by a program that interrupts may come between */
	bpf->rodata->tracepoints_preemptible = preemptible;
	bpf_map__set_max_entries(bpf->maps.heads, cpus);
	bpf_map__set_max_entries(bpf->maps.slots, cpus * SLOTS);
	bpf->bss->traced_hint[(size_t)pid % (sizeof(bpf->bss->traced_hint) / sizeof(bpf->bss->traced_hint[0]))] =
		(uint32_t)pid << 2 | TAILOR_TRACED_SERVER;
	assert_int_equal(tailor_bpf__load(bpf), 0);
	assert_int_equal(tailor_bpf__attach(bpf), 0);
	return bpf;
}

/* The channel of CPU 0. */
static struct tailor_channel_head head_of(const struct tailor_bpf *bpf)
{
	struct tailor_channel_head head;
	uint32_t cpu = 0;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(bpf->maps.heads), &cpu, &head), 0);
	return head;
}

static struct tailor_event slot_of(const struct tailor_bpf *bpf, uint32_t index)
{
	struct tailor_event slot;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(bpf->maps.slots), &index, &slot), 0);
	return slot;
}

/* As programs would leave it that stand between their claim and their last store. */
static void somebody_is_inside(const struct tailor_bpf *bpf, uint64_t writing)
{
	struct tailor_event slot = {.sequence = SOMEBODY_INSIDE, .time_ns = 4711};
	struct tailor_channel_head head = head_of(bpf);
	uint32_t cpu = 0;

	head.writing = writing;
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(bpf->maps.heads), &cpu, &head, BPF_EXIST), 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(bpf->maps.slots), &i, &slot, BPF_EXIST), 0);
}

static unsigned int written(const struct tailor_bpf *bpf, enum tailor_event_kind kind)
{
	unsigned int found = 0;

	for (uint32_t i = 0; i < SLOTS; i++) {
		struct tailor_event slot = slot_of(bpf, i);

		assert_true(slot.sequence == SOMEBODY_INSIDE || !TAILOR_SEQUENCE_IS_BUSY(slot.sequence));
		found += slot.sequence != SOMEBODY_INSIDE && slot.kind == kind;
	}
	return found;
}

static void claims(bool preemptible)
{
	struct child child = child_start("fault", fault, NULL);
	struct tailor_bpf *bpf;
	uint64_t reserved;

	pin(child.pid, 0);
	pin(getpid(), 0);
	assert_int_equal(child_ask(&child, 1), 1);
	bpf = load(child.pid, preemptible);

	somebody_is_inside(bpf, 1);
	reserved = head_of(bpf).reserved_count;
	assert_int_equal(child_ask(&child, PAGES), PAGES);
	assert_true(head_of(bpf).reserved_count >= reserved + PAGES);
	for (uint32_t i = 0; i < SLOTS; i++) {
		assert_int_equal(slot_of(bpf, i).sequence, SOMEBODY_INSIDE);
		assert_int_equal(slot_of(bpf, i).time_ns, 4711);
	}
	assert_int_equal(head_of(bpf).writing, 1); /* each one took back what it had added */

	somebody_is_inside(bpf, 0);
	for (int i = 0; i < 3; i++) {
		/* On one CPU with it: who answers may lose the CPU to who asked before it goes to sleep, and then nobody needs to wake it. */
		usleep(2000);
		assert_int_equal(child_ask(&child, 1), 1);
	}
	assert_true(written(bpf, TAILOR_EVENT_WAKEUP) >= 2);
	assert_true(written(bpf, TAILOR_EVENT_SWITCH_IN) >= 2);
	assert_true(written(bpf, TAILOR_EVENT_SWITCH_OUT) >= 2);
	/* Where other tasks may come between, who tells a fault asks about the slot, which is taken here. */
	assert_int_equal(written(bpf, TAILOR_EVENT_PAGE_FAULT) >= 2, !preemptible);
	assert_int_equal(head_of(bpf).writing, 0);

	tailor_bpf__destroy(bpf);
	child_stop(&child);
}

static void a_slot_that_somebody_may_be_inside_is_claimed_and_any_other_is_just_written(void **state)
{
	(void)state;
	claims(false);
}

static void where_other_tasks_may_come_between_a_slot_is_always_claimed_but_by_the_schedulers_programs(void **state)
{
	(void)state;
	claims(true);
}

static void other_tasks_may_come_between_since_7_0_and_where_it_is_not_known(void **state)
{
	static const struct {
		const char *release, *version;
		int preemptible;
	} names[] = {
	        {"6.1.0-31-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.128-1", 0},
	        {"6.18.4", "#1 SMP PREEMPT_DYNAMIC", 0},
	        {"6.12.9-rt", "#1 SMP PREEMPT_RT", 1},
	        {"7.0.0-rc1", "#1 SMP PREEMPT_DYNAMIC", 1},
	        {"10.2", "#1 SMP", 1},
	        {"unknown", "#1 SMP", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(tailor_probe_preemptible(names[i].release, names[i].version), names[i].preemptible);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_that_somebody_may_be_inside_is_claimed_and_any_other_is_just_written),
		cmocka_unit_test(where_other_tasks_may_come_between_a_slot_is_always_claimed_but_by_the_schedulers_programs),
		cmocka_unit_test(other_tasks_may_come_between_since_7_0_and_where_it_is_not_known),
	};

	tailor_kernel_close(harness_open(SLOTS)); /* or skip */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
