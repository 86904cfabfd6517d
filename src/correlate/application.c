/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/application.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What has been heard so far. */
struct hearing {
	struct testimony *testimony;
	const struct mounts *mounts;
	size_t capacity;
	int error;
};

static void add(struct hearing *hearing, uint32_t tid, uint64_t from_ns, uint64_t to_ns)
{
	struct testimony *testimony = hearing->testimony;

	if (from_ns >= to_ns || hearing->error)
		return;
	if (testimony->count == hearing->capacity) {
		size_t capacity = hearing->capacity ? 2 * hearing->capacity : 16;
		struct told *list = realloc(testimony->list, capacity * sizeof(*list));

		if (!list) {
			hearing->error = -ENOMEM;
			return;
		}
		testimony->list = list;
		hearing->capacity = capacity;
	}
	testimony->list[testimony->count++] = (struct told){tid, from_ns, to_ns, 0};
}

/* Where a virtual thread ran between two times. */
static void add_mounts(struct hearing *hearing, uint64_t vthread, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < hearing->mounts->count; i++) {
		const struct mount *mount = &hearing->mounts->list[i];

		if (mount->from_ns >= to_ns)
			break;
		if (mount->vthread == vthread)
			add(hearing, mount->tid, mount->from_ns > from_ns ? mount->from_ns : from_ns,
			    mount->to_ns < to_ns ? mount->to_ns : to_ns);
	}
}

static int is_word_of(const struct tailor_event *event, uint32_t pid)
{
	return event->pid == pid && (event->kind == TAILOR_EVENT_APP_BEGIN || event->kind == TAILOR_EVENT_APP_END);
}

/* Who says so: a virtual thread, wherever it runs, or a thread of the platform. */
static int is_same_speaker(const struct tailor_event *a, const struct tailor_event *b)
{
	return a->arg[0] == b->arg[0] && (a->arg[0] != 0 || a->tid == b->tid);
}

/* When what the speaker said holds no longer. */
static uint64_t end_of_word(const struct tailor_window *window, size_t begin, uint32_t pid, uint64_t last_ns)
{
	for (size_t i = begin + 1; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if (event->time_ns >= last_ns)
			break;
		if (!is_word_of(event, pid) || !is_same_speaker(event, &window->events[begin].event))
			continue;
		/* An end of something else than was begun ends nothing; a begin takes the place of the one before. */
		if (event->kind == TAILOR_EVENT_APP_BEGIN || event->request == window->events[begin].event.request)
			return event->time_ns;
	}
	return last_ns;
}

static void hear_application(struct hearing *hearing, const struct tailor_window *window, uint32_t pid, uint64_t last_ns)
{
	struct testimony *testimony = hearing->testimony;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;
		uint64_t end_ns;

		if (event->kind != TAILOR_EVENT_APP_BEGIN || event->request != window->record.request.id || !is_word_of(event, pid) ||
		    event->time_ns >= last_ns)
			continue;
		end_ns = end_of_word(window, i, pid, last_ns);
		if (testimony->count == 0)
			testimony->first_event = (uint32_t)i;
		if (event->arg[0])
			add_mounts(hearing, event->arg[0], event->time_ns, end_ns);
		else
			add(hearing, event->tid, event->time_ns, end_ns);
	}
	if (testimony->count > 0) {
		testimony->telling = TELLING_WHO;
		testimony->by_application = 1;
	}
}

/* Mounts may be missing. */
static int jvm_lost(const struct tailor_window *window, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < window->loss_count; i++) {
		const struct tailor_loss *loss = &window->losses[i];

		if (strncmp(loss->channel, "jvm:", 4) == 0 && loss->from_ns < to_ns && loss->to_ns > from_ns)
			return 1;
	}
	return 0;
}

static void hear_mounts(struct hearing *hearing, const struct tailor_window *window, const struct wire *wire)
{
	const struct tailor_event *receive = wire->first_receive, *write = wire->last_write;
	struct testimony *testimony = hearing->testimony;
	uint64_t vthread = mounts_on(hearing->mounts, receive->tid, receive->time_ns);

	if (vthread && vthread == mounts_on(hearing->mounts, write->tid, write->time_ns) &&
	    !jvm_lost(window, receive->time_ns, write->time_ns)) {
		add_mounts(hearing, vthread, receive->time_ns, write->time_ns);
		testimony->telling = TELLING_WHO;
		testimony->first_event = (uint32_t)((const struct tailor_window_event *)(const void *)receive - window->events);
	} else if (vthread || mounts_may_be_on(window, receive->tid)) {
		testimony->telling = TELLING_REFUSED;
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct told *left = a, *right = b;

	if (left->from_ns != right->from_ns)
		return left->from_ns < right->from_ns ? -1 : 1;
	return (left->to_ns > right->to_ns) - (left->to_ns < right->to_ns);
}

/* Orders the list, and finds for each the last one before it that ended later. */
static void put_in_order(struct testimony *testimony)
{
	struct told *list = testimony->list;

	if (testimony->count > 1)
		qsort(list, testimony->count, sizeof(*list), by_begin);
	for (size_t i = 1; i < testimony->count; i++) {
		size_t outer = i;

		while (outer > 0 && list[outer - 1].to_ns <= list[i].to_ns)
			outer = list[outer - 1].outer;
		list[i].outer = outer;
	}
}

int testimony_hear(struct testimony *testimony, const struct tailor_window *window, const struct wire *wire, uint32_t pid)
{
	struct mounts mounts;
	struct hearing hearing = {testimony, &mounts, 0, 0};
	int error = mounts_read(&mounts, window, pid);

	*testimony = (struct testimony){.telling = TELLING_NOTHING};
	if (!error && wire->first_receive && wire->last_write) {
		hear_application(&hearing, window, pid, wire->last_write->time_ns);
		if (testimony->telling == TELLING_NOTHING)
			hear_mounts(&hearing, window, wire);
		error = hearing.error;
		put_in_order(testimony);
	}
	mounts_free(&mounts);
	return error;
}

void testimony_free(struct testimony *testimony)
{
	free(testimony->list);
	*testimony = (struct testimony){0};
}

const struct told *testimony_before(const struct testimony *testimony, uint64_t time_ns, uint64_t *ret_until_ns)
{
	size_t low = 0, high = testimony->count;

	*ret_until_ns = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (testimony->list[middle].from_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	/* Those that are passed over ended even earlier than the one that leads past them. */
	for (; low > 0; low = testimony->list[low - 1].outer) {
		const struct told *told = &testimony->list[low - 1];

		if (told->to_ns >= time_ns)
			return told;
		*ret_until_ns = told->to_ns;
	}
	return NULL;
}
