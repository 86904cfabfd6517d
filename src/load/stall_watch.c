/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "load/stall.h"

/* A sleep costs up to 17 us of CPU in a virtual machine: twice as often would be more than 1% of it. */
#define TICK_NS (2 * TAILOR_NS_PER_MS)
/* Before from_ns nothing is to be measured; this long the end of the watch may have to wait. */
#define IDLE_TICK_NS (20 * TAILOR_NS_PER_MS)
#define STACK_BYTES 65536
/* Reading schedstat costs more than all the rest: not after each sleep. Then some of the sleeps before count, too. */
#define READ_EVERY 32

struct watcher {
	struct tailor_stall_watch *watch;
	pthread_t thread;
	int cpu;
};

struct tailor_stall_watch {
	pthread_mutex_t lock; /* of the list, taken only when a CPU stood still */
	struct tailor_stall_list list;
	uint64_t from_ns;
	atomic_bool ended;
	atomic_int error; /* of a thread that could not go on */
	unsigned int count;
	struct watcher watchers[];
};

/* How long this thread has waited for its CPU since it started: the second number of its schedstat. */
static int read_run_delay(int fd, uint64_t *ret_ns)
{
	unsigned long long ran_ns, waited_ns;
	char text[96];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	if (sscanf(text, "%llu %llu", &ran_ns, &waited_ns) != 2)
		return -EBADMSG;
	*ret_ns = waited_ns;
	return 0;
}

/* One sleep; adds what the CPU, and not its scheduler, made it longer. */
static int tick(struct tailor_stall_watch *watch, int schedstat, uint64_t number, uint64_t *waited_ns)
{
	uint64_t before_ns = *waited_ns, now_ns = tailor_clock_ns(), due_ns, waited_here_ns;
	struct timespec due;
	bool late;
	int ret;

	if (now_ns + TICK_NS >= watch->from_ns)
		due_ns = now_ns + TICK_NS;
	else
		due_ns = now_ns + IDLE_TICK_NS < watch->from_ns ? now_ns + IDLE_TICK_NS : watch->from_ns;
	due = (struct timespec){.tv_sec = (time_t)(due_ns / TAILOR_NS_PER_S), .tv_nsec = (long)(due_ns % TAILOR_NS_PER_S)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
		;
	now_ns = tailor_clock_ns();
	late = now_ns >= due_ns + TAILOR_STALL_MIN_NS;
	if (!late && number % READ_EVERY != 0)
		return 0;
	ret = read_run_delay(schedstat, waited_ns);
	if (ret < 0)
		return ret;
	waited_here_ns = *waited_ns - before_ns;
	/* A thread of the kernel or of higher priority kept the CPU: it stood still for nobody else. */
	if (!late || now_ns < due_ns + waited_here_ns + TAILOR_STALL_MIN_NS || now_ns <= watch->from_ns)
		return 0;
	pthread_mutex_lock(&watch->lock);
	tailor_stall_list_add(&watch->list, due_ns > watch->from_ns ? due_ns : watch->from_ns, now_ns - waited_here_ns);
	pthread_mutex_unlock(&watch->lock);
	return 0;
}

static void *watch_cpu(void *context)
{
	struct watcher *watcher = context;
	struct tailor_stall_watch *watch = watcher->watch;
	cleanup_close int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	uint64_t waited_ns = 0;
	int ret = schedstat < 0 ? -errno : read_run_delay(schedstat, &waited_ns);

	for (uint64_t i = 0; ret == 0 && !atomic_load_explicit(&watch->ended, memory_order_relaxed); i++)
		ret = tick(watch, schedstat, i, &waited_ns);
	if (ret < 0)
		atomic_store_explicit(&watch->error, ret, memory_order_relaxed);
	return NULL;
}

static int start_watcher(struct watcher *watcher)
{
	struct sched_param first = {.sched_priority = 2}; /* `tailor proxy` itself may have 1 */
	pthread_attr_t attributes;
	cpu_set_t only;
	int ret;

	CPU_ZERO(&only);
	CPU_SET(watcher->cpu, &only);
	ret = pthread_attr_init(&attributes);
	if (ret != 0)
		return -ret;
	ret = pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	ret = ret ?: pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	ret = ret ?: pthread_attr_setschedparam(&attributes, &first);
	ret = ret ?: pthread_attr_setaffinity_np(&attributes, sizeof(only), &only);
	ret = ret ?: pthread_attr_setstacksize(&attributes, STACK_BYTES);
	ret = ret ?: pthread_create(&watcher->thread, &attributes, watch_cpu, watcher);
	pthread_attr_destroy(&attributes);
	return -ret;
}

int tailor_stall_watch_start(uint64_t from_ns, struct tailor_stall_watch **ret_watch)
{
	struct tailor_stall_watch *watch;
	cpu_set_t allowed;
	int ret = 0;

	if (access("/proc/thread-self/schedstat", R_OK) < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	watch = calloc(1, sizeof(*watch) + (size_t)CPU_COUNT(&allowed) * sizeof(watch->watchers[0]));
	if (!watch)
		return -ENOMEM;
	pthread_mutex_init(&watch->lock, NULL);
	watch->from_ns = from_ns;
	for (int cpu = 0; cpu < CPU_SETSIZE && ret == 0; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		watch->watchers[watch->count] = (struct watcher){.watch = watch, .cpu = cpu};
		ret = start_watcher(&watch->watchers[watch->count]);
		if (ret == 0)
			watch->count++;
	}
	if (ret < 0)
		tailor_stall_watch_stop(watch);
	else
		*ret_watch = watch;
	return ret;
}

struct tailor_stalls tailor_stall_watch_stop(struct tailor_stall_watch *watch)
{
	struct tailor_stalls stalls = {0};

	if (!watch)
		return stalls;
	atomic_store_explicit(&watch->ended, true, memory_order_relaxed);
	for (unsigned int i = 0; i < watch->count; i++)
		pthread_join(watch->watchers[i].thread, NULL);
	/* A CPU that was not watched may have stood still. */
	if (atomic_load_explicit(&watch->error, memory_order_relaxed) == 0)
		stalls = tailor_stall_list_sum(&watch->list);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
	return stalls;
}
