/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's recording alone, for tests in Python: opens it, keeps of root's capabilities only those with the numbers in
 * argv[1] ("2,19,38"; "all"), then obeys the lines of its standard input and prints one line per thing that happens, fields
 * separated by '|'. Ends at the end of its input.
 *
 *   trace PID, untrace PID     (a server's)
 *   tell PID                   (its stops in the table's first entry; 0: nobody's)
 *   state PID                  prints state | PID | MISSING, and once more when that has changed
 *
 *   ready | MISSING
 *   event POSITION KIND TIME CPU PID TID ARG0 EXTRA TEXT      ("?" where the text was lost), of kinds from safepoint-begin on
 *   lost COUNT
 *   stop KIND SINCE COUNT SEEN      the first entry, each time that whoever polls was woken and found another word
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tailor/event_names.h>
#include "base/clock.h"
#include "collect/kernel.h"
#include "collect/tail.h"
#include "collect/text.h"
#include "ring/ring.h"

#define CPUS_MAX 256
/* How long the thread that watches the table goes on. */
#define END_NS (50 * TAILOR_NS_PER_MS)

static struct tailor_kernel *kernel;
static struct tailor_tail tails[CPUS_MAX];
static size_t tail_count;

static int keep_only(const char *numbers)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	while (*numbers) {
		char *end;
		unsigned long number = strtoul(numbers, &end, 10);

		data[number / 32].effective |= 1u << number % 32;
		data[number / 32].permitted |= 1u << number % 32;
		numbers = *end ? end + 1 : end;
	}
	return syscall(SYS_capset, &header, data) == 0 ? 0 : -errno;
}

static void print_events(void)
{
	struct tailor_event event;
	uint64_t position;

	for (size_t i = 0; i < tail_count; i++) {
		while (tailor_tail_next(&tails[i], tailor_clock_ns(), &event, &position)) {
			char text[TAILOR_TEXTS_MAX * TAILOR_TEXT_BYTES + 1] = "";

			if (event.kind < TAILOR_EVENT_SAFEPOINT_BEGIN)
				continue;
			if (tailor_text_read(&tails[i].channel, position, &event, text, sizeof(text)) < 0)
				strcpy(text, "?");
			printf("event|%" PRIu64 "|%s|%" PRIu64 "|%u|%u|%u|%" PRIu64 "|%u|%s\n", position,
			       tailor_event_kind_name((enum tailor_event_kind)event.kind), event.time_ns, event.cpu, event.pid, event.tid,
			       event.arg[0], event.extra, text);
		}
		if (tails[i].lost)
			printf("lost|%" PRIu64 "\n", tails[i].lost);
		tails[i].lost = 0;
	}
}

/* A process whose state is watched until it changes. */
static struct {
	pid_t pid;
	uint32_t missing;
} watched;

static void obey(const char *line)
{
	char order[16];
	int pid, result = 0;

	if (sscanf(line, "%15s %d", order, &pid) != 2)
		exit(2);
	if (strcmp(order, "trace") == 0)
		result = tailor_kernel_trace(kernel, pid, TAILOR_TRACED_SERVER);
	else if (strcmp(order, "tell") == 0)
		result = tailor_kernel_tell_stops(kernel, 0, pid);
	else if (strcmp(order, "untrace") == 0)
		result = tailor_kernel_untrace(kernel, pid);
	else
		watched.pid = pid;
	if (result)
		printf("failed|%s|%s\n", line, strerror(-result));
	watched.missing = UINT32_MAX;
}

static void print_state(void)
{
	uint32_t missing = watched.pid ? tailor_kernel_process_missing(kernel, watched.pid) : UINT32_MAX;

	if (missing != watched.missing)
		printf("state|%d|%u\n", (int)watched.pid, missing);
	watched.missing = missing;
}

static int is_ending;

/* As a worker does it. */
static void *watch_stops(void *context)
{
	struct tailor_stop *stop = tailor_kernel_stops(kernel);
	struct tailor_ring_options options = {.entries = 8};
	struct tailor_completion completion;
	struct tailor_ring *ring;
	uint64_t before = 0;

	(void)context;
	if (tailor_ring_open(&options, &ring) != 0)
		exit(1);
	__atomic_store_n(&stop->waits[0], 1, __ATOMIC_SEQ_CST);
	tailor_ring_poll(ring, tailor_kernel_stops_fd(kernel), 0);
	while (!__atomic_load_n(&is_ending, __ATOMIC_RELAXED)) {
		int result = tailor_ring_wait(ring, tailor_clock_ns() + END_NS);
		uint64_t seen_ns = tailor_clock_ns(), word = __atomic_load_n(&stop->word, __ATOMIC_ACQUIRE);

		if (result == 0)
			continue;
		while (tailor_ring_next(ring, &completion)) {
			if (!(completion.flags & TAILOR_RING_MORE))
				exit(1);
		}
		if (word != before)
			printf("stop|%d|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "\n", (int)TAILOR_STOP_KIND(word), TAILOR_STOP_SINCE_NS(word), stop->count,
			       seen_ns);
		before = word;
	}
	tailor_ring_close(ring);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct tailor_channel *channels;
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char error[512], line[64];
	pthread_t watcher;
	int result = argc < 2 ? -EINVAL : tailor_kernel_open(16384, &kernel, error, sizeof(error));

	if (result) {
		fprintf(stderr, "%s\n", argc < 2 ? "usage: kernel_driver CAPABILITIES" : error);
		return result == -EPERM || result == -ENOENT ? 77 : 1;
	}
	if (strcmp(argv[1], "all") != 0 && keep_only(argv[1]) != 0)
		return 1;
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	tail_count = tailor_kernel_channels(kernel, &channels);
	for (size_t i = 0; i < tail_count && i < CPUS_MAX; i++)
		tailor_tail_open(&tails[i], &channels[i], 0);
	printf("ready|%u\n", tailor_kernel_missing(kernel));
	if (pthread_create(&watcher, NULL, watch_stops, NULL) != 0)
		return 1;
	for (;;) {
		if (poll(&input, 1, 10) > 0) {
			if (!fgets(line, sizeof(line), stdin))
				break;
			obey(line);
		}
		print_events();
		print_state();
	}
	print_events();
	__atomic_store_n(&is_ending, 1, __ATOMIC_RELAXED);
	pthread_join(watcher, NULL);
	tailor_kernel_close(kernel);
	return 0;
}
