/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/waits.h"

#include <stdio.h>

#include "correlate/calls.h"

/* From a fault to its sleep for the disk, where the call is not recorded. Later the thread may have left the fault. */
#define FAULT_TO_SLEEP_NS 100000
/* From a class file's last read to its bytes being at hand, and between two reads of it. */
#define READ_TO_CLASS_NS 300000
/* From the end of one timed wait for a monitor to the next. */
#define TRY_AGAIN_NS 1000000
/* How far a thread's single run is looked through. */
#define RUN_ENTRIES 256

uint16_t wait_call(const struct stretch *stretch)
{
	return stretch->out ? TAILOR_SWITCH_CALL(stretch->out->extra) : 0;
}

const char *wait_mapping(const struct tailor_window *window, uint32_t pid, uint64_t address)
{
	for (size_t i = 0; i < window->mapping_count; i++) {
		const struct tailor_window_mapping *mapping = &window->mappings[i];

		if (mapping->pid == pid && mapping->start <= address && address < mapping->end)
			return mapping->name[0] ? mapping->name : "memory without a file";
	}
	return NULL;
}

/* "ended by X (pid 9)", after what is there already. */
static void say_who_ended(const struct path *path, const struct tailor_event *wakeup, struct tailor_span *span)
{
	const char *name = thread_name(path->index->window, TAILOR_TASK_TID(wakeup->arg[0]));
	char comm[COMM_BYTES];

	if (TAILOR_TASK_TID(wakeup->arg[0]) == 0)
		span_detail_more(span, "ended by an interrupt");
	else
		span_detail_more(span, "ended by %.40s (pid %u)", name && name[0] ? name : event_comm(wakeup, comm),
		                 TAILOR_TASK_PID(wakeup->arg[0]));
}

/* The fault that was the last thing the thread did before it slept; NULL when that was something else. */
static const struct tailor_event *fault_before(const struct path *path, const struct stretch *stretch)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = stretch->out_position;
	const struct tailor_event *before;

	if (position == NO_POSITION || position == 0 || thread->entries[position - 1].woke)
		return NULL;
	before = thread_entry_event(path->index, thread, position - 1);
	if (before->kind != TAILOR_EVENT_PAGE_FAULT)
		return NULL;
	return wait_call(stretch) == TAILOR_CALL_NONE || stretch->start_ns - before->time_ns <= FAULT_TO_SLEEP_NS ? before : NULL;
}

/* The class that the thread was about to load from what it read, or was loading. */
static const struct overlay *class_read(const struct path *path, const struct stretch *stretch)
{
	const struct overlay *class = overlay_after(&path->overlays->classes, path->cursor.thread->tid, path->now_ns);

	if (!class || class->start_ns > path->now_ns + READ_TO_CLASS_NS)
		return NULL;
	return class->start_ns <= stretch->start_ns || class->start_ns >= path->now_ns ? class : NULL;
}

static void explain_fault(const struct path *path, const struct stretch *stretch, struct tailor_span *span)
{
	const struct tailor_event *fault = fault_before(path, stretch);
	const char *file = fault ? wait_mapping(path->index->window, fault->pid, fault->arg[0]) : NULL;
	uint32_t waker = TAILOR_TASK_PID(stretch->wakeup->arg[0]);

	span->cause = TAILOR_CAUSE_PAGE_FAULT_MAJOR;
	/* The disk is not a thread of the server: that one held the lock of the process's memory map. */
	if (waker == path->server_pid && waker != 0 && wait_call(stretch) == TAILOR_CALL_NONE) {
		span->cause = TAILOR_CAUSE_BLOCKED_LOCK;
		span_detail(span, "a page fault while another thread changed the memory map");
	} else if (file) {
		span_detail(span, "%.40s at %llx", file, (unsigned long long)fault->arg[0]);
	} else if (fault && fault->arg[0]) {
		span_detail(span, "at %llx", (unsigned long long)fault->arg[0]);
	}
	say_who_ended(path, stretch->wakeup, span);
}

static void explain_disk(const struct path *path, const struct stretch *stretch, struct tailor_span *span)
{
	const struct overlay *fault = overlay_after(&path->overlays->faults, path->cursor.thread->tid, stretch->start_ns);
	const struct overlay *class = class_read(path, stretch);
	uint16_t call = wait_call(stretch);
	char name[32];

	span->cause = TAILOR_CAUSE_BLOCKED_IO;
	if (class) {
		span->cause = TAILOR_CAUSE_CLASS_LOADING;
		span_detail(span, "reading %.48s", class->name ? class->name : "a class");
	}
	if (call == TAILOR_CALL_NONE || (call == 0 && fault_before(path, stretch))) {
		if (!class)
			explain_fault(path, stretch, span);
		return;
	}
	if (!class && fault && fault->start_ns <= stretch->start_ns && fault->end_ns >= path->now_ns)
		span->cause = fault->cause;
	if (call)
		span_detail_more(span, "in %s", call_name(call, name, sizeof(name)));
	say_who_ended(path, stretch->wakeup, span);
}

/* By what can end a wait in such a call; without a call, an interrupt is taken for a timer's. */
static enum tailor_cause cause_of_sleep(enum call_family family, int by_interrupt)
{
	switch (family) {
	case CALL_SLEEP: return TAILOR_CAUSE_BLOCKED_SLEEP;
	case CALL_POLL:
	case CALL_RECEIVE:
	case CALL_SEND: return TAILOR_CAUSE_BLOCKED_NETWORK;
	default: return by_interrupt ? TAILOR_CAUSE_BLOCKED_SLEEP : TAILOR_CAUSE_BLOCKED_LOCK;
	}
}

/* The thread was woken only to be stopped: whoever did that has not ended the wait. */
static int ended_by_stop(const struct path *path, const struct stretch *stretch)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = thread_entries_before(thread, stretch->wakeup_event) + 1;

	for (; position < thread->count; position++) {
		const struct tailor_event *next = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			return 0;
		if (next->kind == TAILOR_EVENT_SWITCH_OUT)
			return TAILOR_SWITCH_STATE(next->extra) == TAILOR_TASK_STOPPED;
		if (next->kind != TAILOR_EVENT_SWITCH_IN && next->kind != TAILOR_EVENT_WAKEUP)
			return 0;
	}
	return 0;
}

/*
 * A monitor of HotSpot is waited for in short timed waits, one after the other: that the time of one was over ended nothing when
 * the thread at once waits again, until another thread ends that.
 */
static int tried_again(const struct path *path, const struct stretch *stretch)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = thread_entries_before(thread, stretch->wakeup_event) + 1;
	uint32_t end = thread->count - position > RUN_ENTRIES ? position + RUN_ENTRIES : thread->count;
	uint64_t woken_ns = stretch->wakeup->time_ns;
	int waits = 0;

	for (; position < end; position++) {
		const struct tailor_event *next = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke || next->kind == TAILOR_EVENT_RECEIVE || next->kind == TAILOR_EVENT_SYSCALL_WRITE)
			return 0;
		if (next->kind == TAILOR_EVENT_WAKEUP && waits) {
			if (TAILOR_TASK_TID(next->arg[0]) != 0)
				return 1;
			waits = 0;
			woken_ns = next->time_ns;
		} else if (next->kind == TAILOR_EVENT_SWITCH_OUT && !switched_out_ready(next)) {
			if (call_family(TAILOR_SWITCH_CALL(next->extra)) != CALL_LOCK || next->time_ns - woken_ns > TRY_AGAIN_NS)
				return 0;
			waits = 1;
		}
	}
	return 0;
}

static void explain_sleep(const struct path *path, const struct stretch *stretch, uint64_t low_ns, struct tailor_span *span)
{
	int by_interrupt = TAILOR_TASK_TID(stretch->wakeup->arg[0]) == 0;
	uint16_t call = wait_call(stretch);
	enum call_family family = call_family(call);
	char name[32];

	span->cause = cause_of_sleep(family, by_interrupt);
	if (call)
		span_detail(span, "in %s", call_name(call, name, sizeof(name)));
	if (family == CALL_LOCK && by_interrupt && tried_again(path, stretch)) {
		span->cause = TAILOR_CAUSE_BLOCKED_LOCK;
		span_detail(span, "in %s, a lock or monitor; tried again", call_name(call, name, sizeof(name)));
		return;
	}
	if (family == CALL_LOCK && by_interrupt) {
		span_detail(span, "in %s, until the time of a wait was over", call_name(call, name, sizeof(name)));
		return;
	}
	if (family == CALL_LOCK)
		span_detail_more(span, "a lock or monitor");
	else if (family == CALL_POLL)
		span_detail(span, "in %s, for other bytes or a time-out", call_name(call, name, sizeof(name)));
	if (ended_by_stop(path, stretch))
		span_detail_more(span, "until it was stopped");
	else
		say_who_ended(path, stretch->wakeup, span);
	/* It may as well have waited for a client that reads no faster. */
	if (family == CALL_UNKNOWN && span->cause == TAILOR_CAUSE_BLOCKED_SLEEP && path->doubt_from_ns && low_ns >= path->doubt_from_ns) {
		span->cause = TAILOR_CAUSE_UNEXPLAINED;
		span_detail(span, "in the middle of a long response: slow client or slow server");
	}
}

void wait_explain(const struct path *path, const struct stretch *stretch, uint64_t low_ns, struct tailor_span *span)
{
	switch (blocked_state(stretch)) {
	case TAILOR_TASK_UNINTERRUPTIBLE: explain_disk(path, stretch, span); break;
	case TAILOR_TASK_STOPPED:
		span->cause = TAILOR_CAUSE_STOPPED;
		say_who_ended(path, stretch->wakeup, span);
		break;
	default: explain_sleep(path, stretch, low_ns, span); break;
	}
}

int wait_for_space(const struct path *path, const struct stretch *stretch)
{
	const struct thread_events *thread = path->cursor.thread;
	uint32_t position = thread_entries_before(thread, stretch->wakeup_event) + 1;
	uint32_t end = thread->count - position > RUN_ENTRIES ? position + RUN_ENTRIES : thread->count;
	int in_call = call_family(wait_call(stretch)) == CALL_SEND;

	if (path->received || (!in_call && wait_call(stretch) != 0))
		return 0;
	for (; position < end; position++) {
		const struct tailor_event *next = thread_entry_event(path->index, thread, position);

		if (thread->entries[position].woke)
			continue;
		if (next->kind == TAILOR_EVENT_SYSCALL_WRITE)
			return in_call && next->request == path->index->window->record.request.id;
		if (next->kind == TAILOR_EVENT_RECEIVE ||
		    (next->kind == TAILOR_EVENT_SWITCH_OUT && !switched_out_ready(next) &&
		     call_family(TAILOR_SWITCH_CALL(next->extra)) != CALL_SEND))
			return 0;
	}
	return 0;
}
