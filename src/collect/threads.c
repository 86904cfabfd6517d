/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/process.h"

#define MISSED_MAX 10

/* Index of the thread, or of where it belongs. */
static size_t place_of(const struct tailor_threads *threads, uint32_t tid)
{
	size_t low = 0, high = threads->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (threads->list[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Makes room for one more at that place. */
static int insert(struct tailor_threads *threads, size_t place)
{
	size_t behind = threads->count - place;

	if (threads->count == threads->capacity) {
		size_t capacity = threads->capacity ? threads->capacity * 2 : 64;
		void *list = realloc(threads->list, capacity * sizeof(*threads->list)), *lives;

		if (!list)
			return -ENOMEM;
		threads->list = list;
		lives = realloc(threads->lives, capacity * sizeof(*threads->lives));
		if (!lives)
			return -ENOMEM;
		threads->lives = lives;
		threads->capacity = capacity;
	}
	memmove(&threads->list[place + 1], &threads->list[place], behind * sizeof(*threads->list));
	memmove(&threads->lives[place + 1], &threads->lives[place], behind * sizeof(*threads->lives));
	threads->count++;
	return 0;
}

static int name_thread(struct tailor_threads *threads, uint32_t pid, uint32_t tid, const char *name, int told)
{
	size_t place = place_of(threads, tid);
	struct tailor_window_thread *thread;

	if ((place == threads->count || threads->list[place].tid != tid) && insert(threads, place) != 0)
		return -ENOMEM;
	thread = &threads->list[place];
	thread->pid = pid;
	thread->tid = tid;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	threads->lives[place] = (struct tailor_thread_life){.told = (uint8_t)told};
	return 0;
}

/* What is known of the thread's life; NULL when nothing is. */
static struct tailor_thread_life *life_of(const struct tailor_threads *threads, uint32_t pid, uint32_t tid)
{
	size_t place = place_of(threads, tid);

	if (place == threads->count || threads->list[place].tid != tid || threads->list[place].pid != pid)
		return NULL;
	return &threads->lives[place];
}

int tailor_threads_learn(struct tailor_threads *threads, uint32_t pid, uint32_t tid, const char *name)
{
	return name_thread(threads, pid, tid, name, 1);
}

void tailor_threads_ended(struct tailor_threads *threads, uint32_t pid, uint32_t tid)
{
	struct tailor_thread_life *life = life_of(threads, pid, tid);

	if (life)
		life->told = 0;
}

struct scan {
	struct tailor_threads *threads;
	uint32_t pid;
	int error;
};

/* Only those that no agent told are asked for their names: a JVM has many threads. */
static void found(void *context, pid_t tid)
{
	struct scan *scan = context;
	struct tailor_thread_life *life = life_of(scan->threads, scan->pid, (uint32_t)tid);
	char comm[TAILOR_COMM_BYTES];

	if (life && life->told)
		life->missed = 0;
	else if (!scan->error && tailor_process_comm((pid_t)scan->pid, tid, comm) == 0)
		scan->error = name_thread(scan->threads, scan->pid, (uint32_t)tid, comm, 0);
}

int tailor_threads_scan(struct tailor_threads *threads, pid_t pid)
{
	struct scan scan = {.threads = threads, .pid = (uint32_t)pid};
	int error = tailor_process_tids(pid, found, &scan);

	return error ? error : scan.error;
}

void tailor_threads_age(struct tailor_threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		if (threads->lives[i].missed++ >= MISSED_MAX)
			continue;
		threads->list[kept] = threads->list[i];
		threads->lives[kept++] = threads->lives[i];
	}
	threads->count = kept;
}

void tailor_threads_free(struct tailor_threads *threads)
{
	free(threads->list);
	free(threads->lives);
	memset(threads, 0, sizeof(*threads));
}
