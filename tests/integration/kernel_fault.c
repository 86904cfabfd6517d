/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/kernel_harness.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tailor/timeline.h>
#include <unistd.h>

#include "base/clock.h"

#define STORM_PAGES 100000
#define OTHERS_MAX 40 /* faults of what the child does besides */
#define SLEEP_NS (5 * TAILOR_NS_PER_MS)

static struct tailor_kernel *kernel;
static int faults_have_ends; /* each fault is told, with its end: fexit is allowed */
static size_t page;

/* What the child touches next; the number of pages is in the lower bits. */
#define DO_FRESH (1 << 20)
#define DO_FILE (2 << 20)    /* a file's pages, which are in memory */
#define DO_COPIED (3 << 20)  /* own pages that a child of its shares */
#define DO_PRIVATE (4 << 20) /* a file's pages, written to in a private mapping */
#define DO_PAGES 0xfffff

/* Kept out of the way of the compiler: its address is compared with what the kernel says, and a sanitizer would touch memory of its own. */
__attribute__((noinline, no_sanitize_address)) static void touch(volatile char *memory, size_t pages, int write)
{
	for (size_t i = 0; i < pages; i++) {
		if (write)
			memory[i * page] = 1;
		else
			(void)memory[i * page];
	}
}

static char *map_pages(size_t pages, int fd)
{
	char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, fd, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	return memory;
}

static int file_of(size_t pages)
{
	char name[] = "/var/tmp/tailor-fault-XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) != 0 || posix_fallocate(fd, 0, (off_t)(pages * page)) != 0)
		_exit(1);
	for (size_t i = 0; i < pages; i++) {
		if (pwrite(fd, "x", 1, (off_t)(i * page)) != 1)
			_exit(1);
	}
	return fd;
}

/* Prepares, says so, touches when told, and answers with where and, as the next number, with the ns it took. */
static void touch_pages(int control, void *context)
{
	(void)context;
	for (;;) {
		int64_t order = control_hear(control), kind = order & ~DO_PAGES;
		size_t pages = (size_t)order & DO_PAGES;
		char *memory = map_pages(pages, kind == DO_FILE || kind == DO_PRIVATE ? file_of(pages) : -1);
		uint64_t start_ns;
		pid_t shares = 0;

		if (kind == DO_COPIED) {
			touch(memory, pages, 1);
			shares = fork();
			if (shares == 0) {
				pause();
				_exit(0);
			}
		}
		control_tell(control, (int64_t)(uintptr_t)memory);
		control_hear(control);
		start_ns = tailor_clock_ns();
		touch(memory, pages, kind != DO_FILE);
		control_tell(control, (int64_t)(tailor_clock_ns() - start_ns));
		control_hear(control); /* asleep, it has told all; freeing so much takes a while */
		if (shares) {
			kill(shares, SIGKILL);
			waitpid(shares, NULL, 0);
		}
		munmap(memory, pages * page);
		control_tell(control, 0);
	}
}

/* What was seen of the faults of touching the pages from `start` on. */
struct seen {
	size_t events;
	uint64_t faults;  /* those that slept too */
	uint64_t slept;
	uint64_t ns;      /* in faults */
	uint64_t took_ns; /* the whole touching */
	uint64_t start;
	struct recording recording;
};

static struct seen see(const struct child *child, int64_t order)
{
	struct seen seen = {.start = (uint64_t)child_ask(child, order)};
	const struct tailor_event *event;
	size_t index = 0;

	recording_begin(&seen.recording, kernel);
	seen.took_ns = (uint64_t)child_ask(child, 0);
	recording_end(&seen.recording);
	child_ask(child, 0);
	while ((event = recording_next(&seen.recording, &index, TAILOR_EVENT_PAGE_FAULTS, child->pid))) {
		assert_in_range(event->time_ns, event->arg[0], event->arg[0] + 2 * TAILOR_NS_PER_MS + 200 * TAILOR_NS_PER_MS);
		assert_in_range(event->arg[1], 0, event->time_ns - event->arg[0]);
		assert_true(event->extra > 0);
		seen.events++;
		seen.faults += event->extra;
		seen.ns += event->arg[1];
	}
	/* As many as it slept in, or more: it may sleep more than once in one. */
	seen.slept = recording_count(&seen.recording, TAILOR_EVENT_PAGE_FAULT, child->pid);
	seen.faults += seen.slept;
	return seen;
}

static struct child start_toucher(void)
{
	struct child child = child_start("toucher", touch_pages, NULL);

	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	child_ask(&child, DO_FRESH | 1);
	child_ask(&child, 0);
	child_ask(&child, 0);
	return child;
}

static void stop_toucher(struct child *child)
{
	tailor_kernel_untrace(kernel, child->pid);
	child_stop(child);
}

static void where_fexit_is_allowed_each_first_touch_of_memory_shows_with_its_address_and_duration(void **state)
{
	struct child child = start_toucher();
	const struct tailor_event *event;
	struct seen seen = see(&child, DO_FRESH | 8);
	size_t index = 0, found = 0;

	(void)state;
	while ((event = recording_next(&seen.recording, &index, TAILOR_EVENT_PAGE_FAULT, child.pid))) {
		if (event->arg[0] < seen.start || event->arg[0] >= seen.start + 8 * page)
			continue;
		assert_int_equal(event->arg[0], seen.start + found * page);
		assert_int_equal(event->arg[2] & 7, 6); /* of user mode, a write, page not present */
		/* the same code as in this process, which was forked */
		assert_in_range(event->arg[1], (uintptr_t)touch, (uintptr_t)touch + 4096);
		found++;
	}
	assert_int_equal(found, 8);
	for (index = found = 0; (event = recording_next(&seen.recording, &index, TAILOR_EVENT_PAGE_FAULT_END, child.pid));) {
		if (event->arg[0] < seen.start || event->arg[0] >= seen.start + 8 * page)
			continue;
		assert_in_range(event->arg[1], 1, TAILOR_NS_PER_S);
		assert_int_equal(event->extra, 0); /* no disk had to be read */
		found++;
	}
	assert_int_equal(found, 8);
	assert_int_equal(seen.events, 0);
	recording_free(&seen.recording);
	stop_toucher(&child);
}

static void elsewhere_touches_in_a_row_are_told_together_with_the_time_that_they_took(void **state)
{
	struct child child = start_toucher();
	struct seen seen = see(&child, DO_FRESH | 8);

	(void)state;
	assert_in_range(seen.faults, 8, 8 + OTHERS_MAX);
	assert_in_range(seen.events, 1, 8 + OTHERS_MAX); /* the host may stand still between two */
	assert_in_range(seen.ns, 8 * 100, seen.took_ns);
	recording_free(&seen.recording);
	stop_toucher(&child);
}

static void a_storm_of_faults_gives_few_events_that_count_each_of_them(void **state)
{
	struct child child = start_toucher();
	struct seen seen = see(&child, DO_FRESH | STORM_PAGES);

	(void)state;
	print_message("             %zu events for %d faults, %llu of which slept; %.0f ns each of which %.0f ns were seen\n", seen.events, STORM_PAGES,
	              (unsigned long long)seen.slept, (double)seen.took_ns / STORM_PAGES, (double)seen.ns / STORM_PAGES);
	assert_in_range(seen.faults, STORM_PAGES, STORM_PAGES + OTHERS_MAX);
	assert_in_range(seen.events, 10, STORM_PAGES / 20);
	assert_int_equal(seen.recording.lost, 0);
	assert_in_range(seen.ns, seen.took_ns / 4, seen.took_ns);
	recording_free(&seen.recording);
	stop_toucher(&child);
}

/* A write to a page that a forked process shares gives one page for another: nothing changes that could be seen. */
static void each_kind_of_fault_is_counted_and_those_that_bring_memory_have_their_time(void **state)
{
	static const struct {
		const char *name;
		int kind;
		uint64_t faults;
		int has_time;
	} kinds[] = {{"fresh", DO_FRESH, 1000, 1},
	             {"of a file", DO_FILE, 1000 / 16, 1}, /* which brings those around it, too: fault_around_bytes */
	             {"written to a file's", DO_PRIVATE, 1000, 1},
	             {"copied", DO_COPIED, 1000, 0}};
	struct child child = start_toucher();

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct seen seen = see(&child, kinds[i].kind | 1000);

		print_message("             %s: %.0f ns each, %.0f ns seen\n", kinds[i].name, (double)seen.took_ns / (double)kinds[i].faults,
		              (double)seen.ns / (double)kinds[i].faults);
		assert_in_range(seen.faults, kinds[i].faults, kinds[i].faults + OTHERS_MAX);
		if (kinds[i].has_time)
			assert_in_range(seen.ns, kinds[i].faults * 50, seen.took_ns);
		else
			assert_in_range(seen.ns, 0, seen.took_ns / 10);
		recording_free(&seen.recording);
	}
	stop_toucher(&child);
}

struct gift {
	int fd;        /* userfaultfd(2)'s */
	char *content; /* a page; mapped by the one who is to wait: their faults would wait for the address space as well */
};

/* Gives the page that somebody waits for only after a while, and wakes them once before: they sleep twice in one fault. */
static void *give_page(void *context)
{
	const struct gift *gift = context;
	int fd = gift->fd;
	struct uffd_msg message;
	struct uffdio_range range = {.len = page};
	struct uffdio_copy copy = {.src = (uint64_t)(uintptr_t)gift->content, .len = page};

	if (read(fd, &message, sizeof(message)) != sizeof(message))
		_exit(1);
	range.start = copy.dst = message.arg.pagefault.address & ~(page - 1);
	usleep(SLEEP_NS / TAILOR_NS_PER_US);
	if (ioctl(fd, UFFDIO_WAKE, &range) != 0)
		_exit(1);
	usleep(SLEEP_NS / TAILOR_NS_PER_US);
	if (ioctl(fd, UFFDIO_COPY, &copy) != 0)
		_exit(1);
	return NULL;
}

static void sleep_in_a_fault(int control, void *context)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct gift gift = {.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), .content = map_pages(1, -1)};
	char *memory = map_pages(2, -1);
	pthread_t thread;

	(void)context;
	if (gift.fd < 0 || ioctl(gift.fd, UFFDIO_API, &api) != 0) {
		control_tell(control, 0);
		return;
	}
	range.range.start = (uint64_t)(uintptr_t)memory + page;
	range.range.len = page;
	if (ioctl(gift.fd, UFFDIO_REGISTER, &range) != 0 || pthread_create(&thread, NULL, give_page, &gift) != 0)
		_exit(1);
	control_tell(control, (int64_t)(uintptr_t)memory);
	control_hear(control);
	touch(memory, 2, 1);
	pthread_join(thread, NULL);
	control_tell(control, 1);
	control_hear(control);
}

static void a_fault_that_sleeps_shows_just_before_each_sleep_and_is_not_counted_with_the_others(void **state)
{
	struct child child = child_start("sleeper", sleep_in_a_fault, NULL);
	uint64_t start = (uint64_t)child_hear(&child), slept_ns = 0;
	const struct tailor_event *event, *fault = NULL;
	struct recording recording;
	size_t index = 0, sleeps = 0, others = 0;

	(void)state;
	if (!start) {
		print_message("             without userfaultfd(2), which this kernel does not allow\n");
		child_stop(&child);
		skip();
	}
	assert_int_equal(tailor_kernel_trace(kernel, child.pid, TAILOR_TRACED_SERVER), 0);
	recording_begin(&recording, kernel);
	child_ask(&child, 1);
	tailor_kernel_untrace(kernel, child.pid);
	recording_end(&recording);
	for (; index < recording.count; index++) {
		event = &recording.events[index];
		if (event->tid != (uint32_t)child.pid)
			continue;
		if (event->kind == TAILOR_EVENT_PAGE_FAULT && event->arg[0] == start + page)
			fault = event;
		else if (event->kind == TAILOR_EVENT_PAGE_FAULT_END && event->arg[0] == start + page && sleeps >= 2)
			fault = NULL;
		else if (event->kind == TAILOR_EVENT_PAGE_FAULTS)
			others += event->extra;
		else if (event->kind == TAILOR_EVENT_SWITCH_OUT && fault && TAILOR_SWITCH_STATE(event->extra) == TAILOR_TASK_SLEEPING) {
			sleeps++;
			if (!faults_have_ends)
				assert_int_equal(fault->time_ns, event->time_ns);
			slept_ns -= event->time_ns;
		} else if (event->kind == TAILOR_EVENT_SWITCH_IN && fault && sleeps > 0 && slept_ns > UINT64_MAX / 2) {
			slept_ns += event->time_ns;
			fault = faults_have_ends ? fault : NULL;
		}
	}
	assert_in_range(sleeps, 2, 3);
	assert_in_range(slept_ns, 2 * SLEEP_NS - TAILOR_NS_PER_MS, 2 * SLEEP_NS + 300 * TAILOR_NS_PER_MS);
	if (!faults_have_ends)
		assert_in_range(others, 1, OTHERS_MAX);
	recording_free(&recording);
	child_stop(&child);
}

int main(void)
{
	const struct CMUnitTest each[] = {
		cmocka_unit_test(where_fexit_is_allowed_each_first_touch_of_memory_shows_with_its_address_and_duration),
		cmocka_unit_test(a_fault_that_sleeps_shows_just_before_each_sleep_and_is_not_counted_with_the_others),
	};
	const struct CMUnitTest together[] = {
		cmocka_unit_test(elsewhere_touches_in_a_row_are_told_together_with_the_time_that_they_took),
		cmocka_unit_test(a_storm_of_faults_gives_few_events_that_count_each_of_them),
		cmocka_unit_test(each_kind_of_fault_is_counted_and_those_that_bring_memory_have_their_time),
		cmocka_unit_test(a_fault_that_sleeps_shows_just_before_each_sleep_and_is_not_counted_with_the_others),
	};
	const struct tailor_probe *probes;
	size_t count;
	int failed;

	page = (size_t)sysconf(_SC_PAGESIZE);
	kernel = harness_open(16384);
	count = tailor_kernel_probes(kernel, &probes);
	for (size_t i = 0; i < count; i++)
		faults_have_ends |= probes[i].attached && strcmp(probes[i].name, "handle_mm_fault") == 0;
	if (tailor_kernel_missing(kernel) & TAILOR_MISSING_FAULT_TIME) {
		fprintf(stderr, "skipped: this kernel allows neither fexit programs nor has it rss_stat\n");
		tailor_kernel_close(kernel);
		return 77;
	}
	failed = faults_have_ends ? cmocka_run_group_tests(each, NULL, NULL) : cmocka_run_group_tests(together, NULL, NULL);
	tailor_kernel_close(kernel);
	return failed;
}
