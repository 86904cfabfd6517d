/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are mapped where in a process: what a page fault's address means to a person. */
#ifndef TAILOR_COLLECT_MAPPINGS_H
#define TAILOR_COLLECT_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/window.h>

#define TAILOR_MAPPINGS_PROCESSES 8

/* Zero at first; one thread; tailor_mappings_free() at the end. */
struct tailor_mappings {
	struct tailor_window_mapping *list; /* ordered by pid, start: what a window takes */
	size_t count, capacity;
	struct {
		uint32_t pid; /* 0: unused */
		uint64_t read_ns;
	} process[TAILOR_MAPPINGS_PROCESSES];
};

/*
 * Reads /proc/PID/maps, unless it has been read in the last 300 ms: whoever maps memory in that process waits for a moment meanwhile.
 * Returns 0 or a negative errno (-ESRCH, -EACCES: not one's own process, and no rights to look into it); what was known of a process that
 * has ended stays. The one that was read longest ago is forgotten for a ninth one.
 */
int tailor_mappings_read(struct tailor_mappings *mappings, uint32_t pid, uint64_t now_ns);

/*
 * Reads those of every process of which the window has page faults that slept or took a twentieth of the request; without any, the window
 * gets none, and nothing is read.
 */
void tailor_mappings_for(struct tailor_mappings *mappings, struct tailor_window *window, uint64_t now_ns);
void tailor_mappings_free(struct tailor_mappings *mappings);

#endif /* TAILOR_COLLECT_MAPPINGS_H */
