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

/* The threads that the keys are of, found by hash: a window has many events of few threads. */
struct group {
	uint32_t tid;
	uint32_t count;
	uint32_t first; /* where its keys begin when they are grouped */
};

struct groups {
	struct group *list;
	uint32_t *table; /* index in list + 1, 0: free; linear probing, at most half full */
	size_t count, mask;
};

static int by_tid(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return (left->tid > right->tid) - (left->tid < right->tid);
}

static uint32_t *place_of(const struct groups *groups, uint32_t tid)
{
	size_t i = (size_t)((tid * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & groups->mask;

	while (groups->table[i] && groups->list[groups->table[i] - 1].tid != tid)
		i = (i + 1) & groups->mask;
	return &groups->table[i];
}

static void enter_all(struct groups *groups)
{
	memset(groups->table, 0, (groups->mask + 1) * sizeof(*groups->table));
	for (size_t i = 0; i < groups->count; i++)
		*place_of(groups, groups->list[i].tid) = (uint32_t)i + 1;
}

static int grow(struct groups *groups)
{
	size_t entries = groups->table ? 2 * (groups->mask + 1) : 256;
	uint32_t *table = realloc(groups->table, entries * sizeof(*table));
	struct group *list;

	if (!table)
		return -ENOMEM;
	groups->table = table;
	list = realloc(groups->list, entries / 2 * sizeof(*list));
	if (!list)
		return -ENOMEM;
	groups->list = list;
	groups->mask = entries - 1;
	enter_all(groups);
	return 0;
}

/* Counts the keys of each thread, and leaves the threads ordered by tid with where their keys begin. */
static int find_groups(struct groups *groups, const struct key *keys, size_t count)
{
	uint32_t first = 0;

	if (grow(groups))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint32_t *place = place_of(groups, keys[i].tid);

		if (!*place) {
			if (groups->count == (groups->mask + 1) / 2) {
				if (grow(groups))
					return -ENOMEM;
				place = place_of(groups, keys[i].tid);
			}
			groups->list[groups->count++] = (struct group){.tid = keys[i].tid};
			*place = (uint32_t)groups->count;
		}
		groups->list[*place - 1].count++;
	}
	if (groups->count > 1)
		qsort(groups->list, groups->count, sizeof(*groups->list), by_tid);
	enter_all(groups);
	for (size_t i = 0; i < groups->count; i++) {
		groups->list[i].first = first;
		first += groups->list[i].count;
	}
	return 0;
}

/* Orders the keys by thread; those of a thread stay in the order of events. */
static int group_by_thread(const struct key *keys, size_t count, struct key *ret_grouped, size_t *ret_threads)
{
	struct groups groups = {0};
	int error = find_groups(&groups, keys, count);

	if (!error) {
		for (size_t i = 0; i < count; i++)
			ret_grouped[groups.list[*place_of(&groups, keys[i].tid) - 1].first++] = keys[i];
		*ret_threads = groups.count;
	}
	free(groups.list);
	free(groups.table);
	return error;
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
	return count;
}

static void fill_thread(struct thread_index *index, struct thread_events *thread, const struct key *keys, size_t count,
                        struct thread_entry *entries)
{
	uint32_t wakeup = NO_POSITION, scheduling = NO_POSITION, faults = 0, others = 0;

	*thread = (struct thread_events){
	        .tid = keys[0].tid, .pid = keys[0].pid, .count = (uint32_t)count, .entries = entries};
	for (size_t i = 0; i < count; i++) {
		const struct tailor_event *event = &index->window->events[keys[i].event].event;
		uint8_t kind = event->kind;

		if (!keys[i].woke) {
			thread->pid = keys[i].pid;
			if (kind == TAILOR_EVENT_WAKEUP)
				wakeup = (uint32_t)i;
			if (kind == TAILOR_EVENT_PAGE_FAULT)
				faults++;
			if (kind == TAILOR_EVENT_RECEIVE)
				thread->receives = 1;
			if ((kind == TAILOR_EVENT_RECEIVE || kind == TAILOR_EVENT_SYSCALL_WRITE) &&
			    event->request != index->window->record.request.id)
				others++;
			if (kind == TAILOR_EVENT_SWITCH_IN || kind == TAILOR_EVENT_SWITCH_OUT)
				thread->scheduled = 1;
			if (kind == TAILOR_EVENT_WAKEUP || kind == TAILOR_EVENT_SWITCH_IN ||
			    kind == TAILOR_EVENT_SWITCH_OUT)
				scheduling = (uint32_t)i;
		}
		entries[i] = (struct thread_entry){keys[i].event, wakeup, scheduling, faults, others, keys[i].woke};
	}
}

int thread_index_build(struct thread_index *index, const struct tailor_window *window)
{
	struct key *keys, *grouped;
	size_t count, threads = 0;
	int error;

	*index = (struct thread_index){.window = window};
	if (window->event_count >= UINT32_MAX / 2)
		return -E2BIG;
	/* The keys as they come, then grouped. */
	keys = malloc((4 * window->event_count + 1) * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	grouped = keys + 2 * window->event_count;
	count = collect_keys(window, keys);
	error = group_by_thread(keys, count, grouped, &threads);
	if (!error) {
		index->entries = malloc((count + 1) * sizeof(*index->entries));
		index->threads = malloc((threads + 1) * sizeof(*index->threads));
		error = index->entries && index->threads ? 0 : -ENOMEM;
	}
	for (size_t first = 0, next; !error && first < count; first = next) {
		for (next = first + 1; next < count && grouped[next].tid == grouped[first].tid; next++)
			;
		fill_thread(index, &index->threads[index->thread_count++], &grouped[first], next - first,
		            &index->entries[first]);
	}
	free(keys);
	return error;
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
	int nobody = TAILOR_TASK_TID(event->arg[0]) == 0;

	/* The idle task of a SWITCH_IN has numbers in place of its name. */
	memset(buffer, 0, COMM_BYTES);
	if (!nobody)
		memcpy(buffer, &event->arg[1], COMM_BYTES - 1);
	return buffer;
}
