/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is sorted: small, and the thread's identity beside the entry. */
struct key {
	uint32_t tid;
	uint32_t pid;
	uint32_t event;
	uint8_t woke;
};

static int by_thread(const void *a, const void *b)
{
	const struct key *left = a, *right = b;

	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	return (left->event > right->event) - (left->event < right->event);
}

/* TCP_TRANSMIT and TCP_RETRANSMIT are left out on purpose: their task is whoever happened to run. */
static int tells_about_its_thread(uint8_t kind)
{
	switch (kind) {
	case TAILOR_EVENT_WAKEUP:
	case TAILOR_EVENT_SWITCH_IN:
	case TAILOR_EVENT_SWITCH_OUT:
	case TAILOR_EVENT_PAGE_FAULT:
	case TAILOR_EVENT_PAGE_FAULT_END:
	case TAILOR_EVENT_RECEIVE:
	case TAILOR_EVENT_SYSCALL_WRITE: return 1;
	default: return 0;
	}
}

static size_t collect_keys(const struct tailor_window *window, struct key *keys)
{
	size_t count = 0;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;
		uint32_t waker;

		if (event->tid == 0 || !tells_about_its_thread(event->kind))
			continue;
		keys[count++] = (struct key){event->tid, event->pid, (uint32_t)i, 0};
		waker = TAILOR_TASK_TID(event->arg[0]);
		if (event->kind == TAILOR_EVENT_WAKEUP && waker != 0 && waker != event->tid)
			keys[count++] = (struct key){waker, TAILOR_TASK_PID(event->arg[0]), (uint32_t)i, 1};
	}
	if (count > 0)
		qsort(keys, count, sizeof(*keys), by_thread);
	return count;
}

static void fill_thread(struct thread_index *index, struct thread_events *thread, const struct key *keys, size_t count,
                        struct thread_entry *entries)
{
	uint32_t wakeup = NO_POSITION, scheduling = NO_POSITION, faults = 0;

	*thread = (struct thread_events){
	        .tid = keys[0].tid, .pid = keys[0].pid, .count = (uint32_t)count, .entries = entries};
	for (size_t i = 0; i < count; i++) {
		uint8_t kind = index->window->events[keys[i].event].event.kind;

		if (!keys[i].woke) {
			thread->pid = keys[i].pid;
			if (kind == TAILOR_EVENT_WAKEUP)
				wakeup = (uint32_t)i;
			if (kind == TAILOR_EVENT_PAGE_FAULT)
				faults++;
			if (kind == TAILOR_EVENT_RECEIVE)
				thread->receives = 1;
			if (kind == TAILOR_EVENT_SWITCH_IN || kind == TAILOR_EVENT_SWITCH_OUT)
				thread->scheduled = 1;
			if (kind == TAILOR_EVENT_WAKEUP || kind == TAILOR_EVENT_SWITCH_IN ||
			    kind == TAILOR_EVENT_SWITCH_OUT)
				scheduling = (uint32_t)i;
		}
		entries[i] = (struct thread_entry){keys[i].event, wakeup, scheduling, faults, keys[i].woke};
	}
}

int thread_index_build(struct thread_index *index, const struct tailor_window *window)
{
	struct key *keys;
	size_t count, threads = 0;

	*index = (struct thread_index){.window = window};
	if (window->event_count >= UINT32_MAX / 2)
		return -E2BIG;
	keys = calloc(2 * window->event_count + 1, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	count = collect_keys(window, keys);
	for (size_t i = 0; i < count; i++)
		threads += i == 0 || keys[i].tid != keys[i - 1].tid;
	index->entries = calloc(count + 1, sizeof(*index->entries));
	index->threads = calloc(threads + 1, sizeof(*index->threads));
	if (!index->entries || !index->threads) {
		free(keys);
		return -ENOMEM;
	}
	for (size_t first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count && keys[next].tid == keys[first].tid; next++)
			;
		fill_thread(index, &index->threads[index->thread_count++], &keys[first], next - first,
		            &index->entries[first]);
	}
	free(keys);
	return 0;
}

void thread_index_free(struct thread_index *index)
{
	free(index->entries);
	free(index->threads);
	*index = (struct thread_index){0};
}

const struct thread_events *thread_index_find(const struct thread_index *index, uint32_t tid)
{
	size_t low = 0, high = index->thread_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < index->thread_count && index->threads[low].tid == tid ? &index->threads[low] : NULL;
}

uint32_t thread_entries_before(const struct thread_events *thread, uint32_t event)
{
	uint32_t low = 0, high = thread->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (thread->entries[middle].event < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t thread_entries_until(const struct thread_index *index, const struct thread_events *thread, uint64_t time_ns)
{
	uint32_t low = 0, high = thread->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (thread_entry_event(index, thread, middle)->time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *thread_name(const struct tailor_window *window, uint32_t tid)
{
	size_t low = 0, high = window->thread_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (window->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < window->thread_count && window->threads[low].tid == tid ? window->threads[low].name : NULL;
}

const char *event_comm(const struct tailor_event *event, char buffer[COMM_BYTES])
{
	memcpy(buffer, &event->arg[1], 16);
	buffer[16] = '\0';
	return buffer;
}
