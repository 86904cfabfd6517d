/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/demo_gc_log.h"

/*
 * "[2026-01-01T10:00:00.000+0000][3.264s][2112345678901ns] GC(5) Pause Young (Allocation Failure)
 * 81M->15M(247M) 1.326ms": the line at the end of a pause, so that the time is its end. The line at its begin has no
 * length. Returns 1 if it is one.
 */
static int parse_pause(const char *line, struct demo_collection *ret_pause)
{
	const char *decorator = strchr(line, '[');
	const char *pause = strstr(line, " Pause ");
	const char *length = strrchr(line, ' ');
	unsigned long long end_ns = 0;
	double length_ms;
	char unit[4];
	int columns;

	if (!decorator || !pause || !strstr(line, "] GC(") || !length)
		return 0;
	for (columns = 0; decorator && columns < 2; columns++)
		decorator = strchr(decorator + 1, '[');
	if (!decorator || sscanf(decorator, "[%lluns]", &end_ns) != 1)
		return 0;
	if (sscanf(length, " %lf%3s", &length_ms, unit) != 2 || strcmp(unit, "ms") != 0)
		return 0;
	ret_pause->end_ns = end_ns;
	ret_pause->begin_ns = end_ns - (uint64_t)(length_ms * 1e6);
	return 1;
}

int demo_gc_log_read(const char *path, uint64_t from_ns, uint64_t to_ns, struct demo_collection **ret_collections,
                     size_t *ret_count)
{
	cleanup_fclose FILE *file = fopen(path, "re");
	cleanup_free struct demo_collection *collections = NULL;
	size_t count = 0, room = 0;
	char line[1024];

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		struct demo_collection pause;

		if (!parse_pause(line, &pause) || pause.begin_ns < from_ns || pause.begin_ns >= to_ns)
			continue;
		if (count > 0 && pause.begin_ns < collections[count - 1].end_ns + TAILOR_NS_PER_MS) {
			collections[count - 1].end_ns = pause.end_ns;
			continue;
		}
		if (count == room) {
			size_t more = room ? room * 2 : 64;
			struct demo_collection *larger = reallocarray(collections, more, sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			collections = larger;
			room = more;
		}
		collections[count++] = pause;
	}
	*ret_collections = take_pointer(collections);
	*ret_count = count;
	return 0;
}
