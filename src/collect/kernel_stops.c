/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_stops.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/kernel_thread.h"

/* The ring buffer takes 4096 changes: more in that time than there can be, and if there were, workers would only not be woken. */
#define TAKE_OUT_S 1

struct tailor_kernel_stops {
	struct tailor_stop *table;
	uint64_t *signal_stops;
	int changes;
	unsigned long *consumer;       /* positions in the ring buffer, in bytes; the first page of it, which the reader writes, */
	const unsigned long *producer; /* and the second */
	size_t page;
	pthread_mutex_t lock; /* of what follows, and who writes the table */
	pthread_cond_t stopping;
	int is_running;
	int stop;
	pthread_t thread;
};

static void *map(int fd, size_t bytes, int protection, off_t offset)
{
	void *start = mmap(NULL, bytes, protection, MAP_SHARED, fd, offset);

	return start == MAP_FAILED ? NULL : start;
}

int tailor_kernel_stops_open(int table, int changes, uint64_t *signal_stops, struct tailor_kernel_stops **ret_stops)
{
	struct tailor_kernel_stops *stops = calloc(1, sizeof(*stops));
	pthread_condattr_t clock;
	int error;

	if (!stops)
		return -ENOMEM;
	stops->page = (size_t)sysconf(_SC_PAGESIZE);
	stops->signal_stops = signal_stops;
	stops->changes = changes;
	pthread_mutex_init(&stops->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&stops->stopping, &clock);
	pthread_condattr_destroy(&clock);
	stops->table = map(table, stops->page, PROT_READ | PROT_WRITE, 0);
	if (stops->table)
		stops->consumer = map(changes, stops->page, PROT_READ | PROT_WRITE, 0);
	if (stops->consumer)
		stops->producer = map(changes, stops->page, PROT_READ, (off_t)stops->page);
	if (!stops->producer) {
		error = -errno;
		tailor_kernel_stops_close(stops);
		return error;
	}
	*ret_stops = stops;
	return 0;
}

/* The last record stays, and so the descriptor stays readable: who polls is woken first, and asks then whether it is. */
static void take_out(struct tailor_kernel_stops *stops)
{
	unsigned long end = __atomic_load_n(stops->producer, __ATOMIC_ACQUIRE);

	if (end > TAILOR_STOP_CHANGE_BYTES_ALL)
		__atomic_store_n(stops->consumer, end - TAILOR_STOP_CHANGE_BYTES_ALL, __ATOMIC_RELEASE);
}

static void *run(void *context)
{
	struct tailor_kernel_stops *stops = context;
	struct timespec next;

	prctl(PR_SET_NAME, "stops");
	pthread_mutex_lock(&stops->lock);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!stops->stop) {
		take_out(stops);
		next.tv_sec += TAKE_OUT_S;
		while (!stops->stop && pthread_cond_timedwait(&stops->stopping, &stops->lock, &next) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&stops->lock);
	return NULL;
}

static int start(struct tailor_kernel_stops *stops)
{
	int error;

	if (stops->is_running)
		return 0;
	error = tailor_kernel_thread_start(&stops->thread, run, stops);
	stops->is_running = !error;
	return error;
}

void tailor_kernel_stops_close(struct tailor_kernel_stops *stops)
{
	if (!stops)
		return;
	if (stops->is_running) {
		pthread_mutex_lock(&stops->lock);
		stops->stop = 1;
		pthread_cond_signal(&stops->stopping);
		pthread_mutex_unlock(&stops->lock);
		pthread_join(stops->thread, NULL);
	}
	if (stops->table)
		munmap(stops->table, stops->page);
	if (stops->consumer)
		munmap(stops->consumer, stops->page);
	if (stops->producer)
		munmap((void *)(uintptr_t)stops->producer, stops->page);
	pthread_cond_destroy(&stops->stopping);
	pthread_mutex_destroy(&stops->lock);
	free(stops);
}

/* In the order in which the programs do it, which may do so at the same time. */
static void clear(struct tailor_kernel_stops *stops, unsigned int server)
{
	struct tailor_stop *stop = &stops->table[server];

	__atomic_fetch_and(stops->signal_stops, ~(UINT64_C(1) << server), __ATOMIC_SEQ_CST);
	__atomic_store_n(&stop->signal_ns, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&stop->safepoint_ns, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&stop->word, 0, __ATOMIC_SEQ_CST);
}

/* Programs that have found the process in the table before it was taken out may still write there; they do not sleep. */
static void clear_for_good(struct tailor_kernel_stops *stops, unsigned int server)
{
	clear(stops, server);
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0); /* kernels with nohz_full CPUs do not have it */
	clear(stops, server);
}

int tailor_kernel_stops_tell(struct tailor_kernel_stops *stops, unsigned int server, pid_t pid)
{
	uint64_t *told = server < TAILOR_STOP_SERVERS ? &stops->table[server].pid : NULL;
	int error;

	if (!told || pid < 0)
		return -EINVAL;
	pthread_mutex_lock(&stops->lock);
	error = pid ? start(stops) : 0;
	if (*told) {
		__atomic_store_n(told, 0, __ATOMIC_SEQ_CST);
		clear_for_good(stops, server);
	}
	if (!error)
		__atomic_store_n(told, (uint64_t)pid, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&stops->lock);
	return error;
}

void tailor_kernel_stops_forget(struct tailor_kernel_stops *stops, pid_t pid)
{
	pthread_mutex_lock(&stops->lock);
	for (unsigned int i = 0; i < TAILOR_STOP_SERVERS; i++) {
		if (pid > 0 && stops->table[i].pid == (uint64_t)pid)
			clear_for_good(stops, i);
	}
	pthread_mutex_unlock(&stops->lock);
}

struct tailor_stop *tailor_kernel_stops_table(const struct tailor_kernel_stops *stops)
{
	return stops->table;
}

int tailor_kernel_stops_changes(const struct tailor_kernel_stops *stops)
{
	return stops->changes;
}
