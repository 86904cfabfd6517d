/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FRESH_NS UINT64_C(300000000)
/* A JVM has some thousand; a process with more is not worth the time. */
#define MAPPINGS_MAX 65536
/* Faults that took less than this part of a request are not what made it slow; to read the maps for them took as long as all else. */
#define MATTERS_PART 20

static void forget(struct tailor_mappings *mappings, uint32_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < mappings->count; i++) {
		if (mappings->list[i].pid != pid)
			mappings->list[kept++] = mappings->list[i];
	}
	mappings->count = kept;
}

/* The path's end, from a '/' on as far as that goes. */
static void shorten(char *to, size_t size, const char *path)
{
	size_t length = strlen(path);
	const char *from = path;

	if (length >= size) {
		from = path + length - (size - 1);
		from = strchr(from, '/') ? strchr(from, '/') : from;
	}
	snprintf(to, size, "%s", from);
}

static int add(struct tailor_mappings *mappings, uint32_t pid, uint64_t start, uint64_t end, const char *path)
{
	struct tailor_window_mapping *mapping;

	if (mappings->count == MAPPINGS_MAX)
		return 0;
	if (mappings->count == mappings->capacity) {
		size_t capacity = mappings->capacity ? 2 * mappings->capacity : 256;
		void *list = realloc(mappings->list, capacity * sizeof(*mappings->list));

		if (!list)
			return -ENOMEM;
		mappings->list = list;
		mappings->capacity = capacity;
	}
	mapping = &mappings->list[mappings->count++];
	*mapping = (struct tailor_window_mapping){.pid = pid, .start = start, .end = end};
	/* "[heap]", "[stack]" and "[anon:...]" are no files; "" says so. */
	if (path[0] == '/')
		shorten(mapping->name, sizeof(mapping->name), path);
	return 0;
}

static int by_place(const void *left, const void *right)
{
	const struct tailor_window_mapping *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

static int read_maps(struct tailor_mappings *mappings, FILE *file, uint32_t pid)
{
	char line[4096 + 128]; /* PATH_MAX and what stands before the path */
	int error = 0;

	while (!error && fgets(line, sizeof(line), file)) {
		uint64_t start, end;
		int path = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &start, &end, &path) == 2 && path > 0)
			error = add(mappings, pid, start, end, line + path);
	}
	return error;
}

/* The place of a process among those that are known, or of the one that it replaces. */
static size_t place_of(struct tailor_mappings *mappings, uint32_t pid)
{
	size_t oldest = 0;

	for (size_t i = 0; i < TAILOR_MAPPINGS_PROCESSES; i++) {
		if (mappings->process[i].pid == pid)
			return i;
		if (mappings->process[i].read_ns < mappings->process[oldest].read_ns)
			oldest = i;
	}
	forget(mappings, mappings->process[oldest].pid);
	mappings->process[oldest].pid = pid;
	mappings->process[oldest].read_ns = 0;
	return oldest;
}

int tailor_mappings_read(struct tailor_mappings *mappings, uint32_t pid, uint64_t now_ns)
{
	size_t place = place_of(mappings, pid);
	char path[64];
	cleanup_fclose FILE *file = NULL;
	int error;

	if (mappings->process[place].read_ns && now_ns - mappings->process[place].read_ns < FRESH_NS)
		return 0;
	mappings->process[place].read_ns = now_ns;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	forget(mappings, pid);
	error = read_maps(mappings, file, pid);
	qsort(mappings->list, mappings->count, sizeof(*mappings->list), by_place);
	return error;
}

/* Whether somebody would want to know what the faults of that process were in: they are part of why the request took so long. */
static int matters(const struct tailor_window *window, uint32_t pid, uint64_t request_ns)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if (event->kind == TAILOR_EVENT_PAGE_FAULT && event->pid == pid)
			return 1;
		if (event->kind == TAILOR_EVENT_PAGE_FAULTS && event->pid == pid)
			ns += event->arg[1];
	}
	return ns >= request_ns / MATTERS_PART;
}

void tailor_mappings_for(struct tailor_mappings *mappings, struct tailor_window *window, uint64_t now_ns)
{
	const struct tailor_request *request = &window->record.request;
	uint32_t last = 0;
	int found = 0;

	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if ((event->kind != TAILOR_EVENT_PAGE_FAULT && event->kind != TAILOR_EVENT_PAGE_FAULTS) || event->pid == last)
			continue;
		last = event->pid;
		if (!matters(window, last, request->end_ns - request->begin_ns))
			continue;
		found = 1;
		/* Where it cannot be read, an address is all that there is to say. */
		(void)tailor_mappings_read(mappings, last, now_ns);
	}
	window->mappings = found ? mappings->list : NULL;
	window->mapping_count = found ? mappings->count : 0;
}

void tailor_mappings_free(struct tailor_mappings *mappings)
{
	free(mappings->list);
	memset(mappings, 0, sizeof(*mappings));
}
