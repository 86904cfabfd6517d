/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/vthread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/index.h"

/* Carriers are few: the last mount on one is among so many last mounts on any. */
#define CARRIERS_MAX 1024

static int is_of(const struct tailor_event *event, uint32_t pid)
{
	return event->pid == pid && (event->kind == TAILOR_EVENT_VTHREAD_MOUNT || event->kind == TAILOR_EVENT_VTHREAD_UNMOUNT);
}

/* Ends what the list has as mounted on the carrier. */
static void unmount(struct mounts *mounts, const struct tailor_event *event)
{
	for (size_t i = mounts->count, left = CARRIERS_MAX; i-- > 0 && left-- > 0;) {
		struct mount *mount = &mounts->list[i];

		if (mount->tid != event->tid)
			continue;
		/* An unmount of another one than was mounted: events between them were lost. */
		if (mount->to_ns == UINT64_MAX)
			mount->to_ns = event->kind == TAILOR_EVENT_VTHREAD_UNMOUNT && mount->vthread == event->arg[0] ? event->time_ns
			                                                                                               : mount->from_ns;
		return;
	}
}

int mounts_read(struct mounts *mounts, const struct tailor_window *window, uint32_t pid)
{
	size_t count = 0;

	*mounts = (struct mounts){0};
	for (size_t i = 0; i < window->event_count; i++)
		count += (size_t)is_of(&window->events[i].event, pid);
	if (count == 0)
		return 0;
	mounts->list = malloc(count * sizeof(*mounts->list));
	if (!mounts->list)
		return -ENOMEM;
	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if (!is_of(event, pid))
			continue;
		unmount(mounts, event);
		if (event->kind == TAILOR_EVENT_VTHREAD_MOUNT)
			mounts->list[mounts->count++] = (struct mount){event->tid, event->arg[0], event->time_ns, UINT64_MAX};
	}
	return 0;
}

void mounts_free(struct mounts *mounts)
{
	free(mounts->list);
	*mounts = (struct mounts){0};
}

uint64_t mounts_on(const struct mounts *mounts, uint32_t tid, uint64_t time_ns)
{
	size_t low = 0, high = mounts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mounts->list[middle].from_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t left = CARRIERS_MAX; low-- > 0 && left-- > 0;) {
		if (mounts->list[low].tid == tid)
			return mounts->list[low].to_ns >= time_ns ? mounts->list[low].vthread : 0;
	}
	return 0;
}

int mounts_may_be_on(const struct tailor_window *window, uint32_t tid)
{
	const char *name = thread_name(window, tid);

	return name && strncmp(name, "ForkJoinPool-", 13) == 0;
}
