/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/process.h"

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

static int is_known(const struct tailor_threads *threads, uint32_t pid, uint32_t tid)
{
	size_t place = place_of(threads, tid);

	return place < threads->count && threads->list[place].tid == tid && threads->list[place].pid == pid;
}

int tailor_threads_learn(struct tailor_threads *threads, uint32_t pid, uint32_t tid, const char *name)
{
	size_t place = place_of(threads, tid);
	struct tailor_window_thread *thread;

	if (place == threads->count || threads->list[place].tid != tid) {
		if (threads->count == threads->capacity) {
			size_t capacity = threads->capacity ? threads->capacity * 2 : 64;
			void *grown = realloc(threads->list, capacity * sizeof(*threads->list));

			if (!grown)
				return -ENOMEM;
			threads->list = grown;
			threads->capacity = capacity;
		}
		memmove(&threads->list[place + 1], &threads->list[place], (threads->count - place) * sizeof(*threads->list));
		threads->count++;
	}
	thread = &threads->list[place];
	thread->pid = pid;
	thread->tid = tid;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	return 0;
}

struct scan {
	struct tailor_threads *threads;
	uint32_t pid;
	int error;
};

static void found(void *context, pid_t tid, const char *comm)
{
	struct scan *scan = context;

	if (!is_known(scan->threads, scan->pid, (uint32_t)tid) && !scan->error)
		scan->error = tailor_threads_learn(scan->threads, scan->pid, (uint32_t)tid, comm);
}

int tailor_threads_scan(struct tailor_threads *threads, pid_t pid)
{
	struct scan scan = {.threads = threads, .pid = (uint32_t)pid};
	int error = tailor_process_threads(pid, found, &scan);

	return error ? error : scan.error;
}

void tailor_threads_forget(struct tailor_threads *threads, uint32_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		if (threads->list[i].pid != pid)
			threads->list[kept++] = threads->list[i];
	}
	threads->count = kept;
}

void tailor_threads_free(struct tailor_threads *threads)
{
	free(threads->list);
	memset(threads, 0, sizeof(*threads));
}
