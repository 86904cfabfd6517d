/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/safepoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/losses.h"

/* More JVMs than this in one window are no servers of ours. */
#define PROCESSES_MAX 32

/* HotSpot's names (vmOperation.hpp, without "VM_"), where the name alone says too little. */
static const struct {
	const char *name, *meaning;
} known[] = {
	{"PrintThreads", "a thread dump"},
	{"ThreadDump", "a thread dump"},
	{"FindDeadlocks", "a search for deadlocks"},
	{"PrintJNI", "a count of JNI references"},
	{"PrintMetadata", "a report on metaspace"},
	{"HeapDumper", "a heap dump"},
	{"GC_HeapInspection", "a class histogram"},
	{"RedefineClasses", "classes are replaced"},
	{"GetAllStackTraces", "all threads' stacks are read"},
	{"GetThreadListStackTraces", "threads' stacks are read"},
	{"Cleanup", "the JVM's own housekeeping"},
	{"ForceSafepoint", "the JVM's own housekeeping"},
	{"ICBufferFull", "compiled calls are relinked"},
	{"BulkRevokeBias", "biased locking is given up"},
	{"RevokeBias", "biased locking is given up"},
	{"DeoptimizeAll", "compiled code is given up"},
	{"DeoptimizeFrame", "compiled code is given up"},
	{"ChangeBreakpoints", "a debugger"},
	{"Exit", "the JVM ends"},
	{"Halt", "the JVM ends"},
};

const char *operation_meaning(const char *operation)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].name, operation) == 0)
			return known[i].meaning;
	}
	return NULL;
}

int operation_collects(const char *operation)
{
	static const char *const starts[] = {"G1", "GenCollect", "SerialCollect", "SerialGC", "Parallel", "CollectFor", "ZMark", "ZRelocate",
	                                     "Shenandoah", "XMark", "XRelocate"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		if (strncmp(operation, starts[i], strlen(starts[i])) == 0)
			return 1;
	}
	return 0;
}

/* What is open in each process while the events are read in their order. */
struct reader {
	struct safepoint *list;
	size_t count;
	struct {
		uint32_t pid;
		size_t open; /* index in list + 1; 0: none */
	} process[PROCESSES_MAX];
	size_t processes;
};

static size_t *open_of(struct reader *reader, uint32_t pid)
{
	for (size_t i = 0; i < reader->processes; i++) {
		if (reader->process[i].pid == pid)
			return &reader->process[i].open;
	}
	if (reader->processes == PROCESSES_MAX)
		return NULL;
	reader->process[reader->processes].pid = pid;
	return &reader->process[reader->processes++].open;
}

static struct safepoint *begin(struct reader *reader, size_t *open, const struct tailor_event *event)
{
	struct safepoint *safepoint = &reader->list[reader->count++];

	*open = reader->count;
	*safepoint = (struct safepoint){.pid = event->pid, .begin_ns = event->time_ns, .end_ns = event->time_ns, .going_on = 1};
	return safepoint;
}

static void operation_begins(struct reader *reader, size_t *open, const struct tailor_window_event *entry)
{
	struct safepoint *safepoint = *open ? &reader->list[*open - 1] : NULL;

	/* Without its begin, which was before the window or is lost, or of another one whose end is lost. */
	if (!safepoint || safepoint->beside != (entry->event.extra == 1))
		safepoint = begin(reader, open, &entry->event);
	safepoint->beside = entry->event.extra == 1;
	if (!safepoint->stopped_ns)
		safepoint->stopped_ns = entry->event.time_ns;
	if (!safepoint->operation)
		safepoint->operation = entry->text;
}

static void ends(struct reader *reader, size_t *open, uint64_t time_ns)
{
	struct safepoint *safepoint = &reader->list[*open - 1];

	safepoint->end_ns = time_ns;
	safepoint->going_on = 0;
	*open = 0;
}

static void read_event(struct reader *reader, const struct tailor_window_event *entry)
{
	const struct tailor_event *event = &entry->event;
	size_t *open;

	if (event->kind != TAILOR_EVENT_GC_START &&
	    (event->kind < TAILOR_EVENT_SAFEPOINT_BEGIN || event->kind > TAILOR_EVENT_VM_OPERATION_END))
		return;
	open = open_of(reader, event->pid);
	if (!open)
		return;
	switch (event->kind) {
	case TAILOR_EVENT_SAFEPOINT_BEGIN: begin(reader, open, event); break;
	case TAILOR_EVENT_VM_OPERATION_BEGIN: operation_begins(reader, open, entry); break;
	case TAILOR_EVENT_GC_START:
		if (*open && !reader->list[*open - 1].stopped_ns)
			reader->list[*open - 1].stopped_ns = event->time_ns;
		break;
	case TAILOR_EVENT_VM_OPERATION_END:
		if (*open && reader->list[*open - 1].beside)
			ends(reader, open, event->time_ns);
		else if (*open) /* should the safepoint's end be lost, it lasted until now */
			reader->list[*open - 1].end_ns = event->time_ns;
		break;
	case TAILOR_EVENT_SAFEPOINT_END:
		if (*open && !reader->list[*open - 1].beside)
			ends(reader, open, event->time_ns);
		break;
	default: break;
	}
}

static int by_pid_and_begin(const void *a, const void *b)
{
	const struct safepoint *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

int safepoints_read(const struct tailor_window *window, struct safepoint **ret_safepoints, size_t *ret_count)
{
	struct reader reader = {0};
	size_t count = 0;

	for (size_t i = 0; i < window->event_count; i++)
		count += window->events[i].event.kind == TAILOR_EVENT_SAFEPOINT_BEGIN ||
		         window->events[i].event.kind == TAILOR_EVENT_VM_OPERATION_BEGIN;
	reader.list = calloc(count + 1, sizeof(*reader.list));
	if (!reader.list)
		return -ENOMEM;
	for (size_t i = 0; i < window->event_count; i++)
		read_event(&reader, &window->events[i]);
	/* What is open at the end goes on, as far as the kernel's events can tell. */
	for (size_t i = 0; i < reader.processes; i++) {
		struct safepoint *open = reader.process[i].open ? &reader.list[reader.process[i].open - 1] : NULL;

		if (open)
			open->end_ns = losses_known_until(window, "cpu", open->end_ns);
	}
	if (reader.count > 1)
		qsort(reader.list, reader.count, sizeof(*reader.list), by_pid_and_begin);
	*ret_safepoints = reader.list;
	*ret_count = reader.count;
	return 0;
}
