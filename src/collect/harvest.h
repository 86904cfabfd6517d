/* SPDX-License-Identifier: Apache-2.0 */
/* Channels -> the ordered events of one stretch of time, with what was lost in it. */
#ifndef TAILOR_COLLECT_HARVEST_H
#define TAILOR_COLLECT_HARVEST_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/channel.h>
#include <tailor/window.h>

/* A channel to read from. */
struct tailor_source {
	struct tailor_channel channel;
	char name[24];     /* as losses call it: "cpu0", "jvm:a" */
	uint32_t own_pid;  /* events with this pid... */
	uint32_t pid;      /* ...are of this process as we see it; both 0 where they need no mapping */
	uint64_t before_ns; /* how far before the window's start its events matter */
};

/* Grows as needed and is used again for the next stretch; zero it at first. Owned by one thread. */
struct tailor_harvest {
	/* The window. */
	struct tailor_window_event *events;
	size_t event_count;
	struct tailor_loss *losses;
	size_t loss_count, loss_capacity;

	/* What was read, inside src/collect only. */
	struct tailor_window_event *read, *merged; /* by source, newest first; by time */
	size_t read_count, read_capacity, merged_capacity;
	size_t merged_begin, merged_end;
	uint16_t *merged_source; /* of each in merged: index in before_ns */
	size_t merged_source_capacity;
	uint64_t *before_ns; /* of each source */
	size_t before_capacity, source_count;
	void *runs;
	size_t runs_capacity;
	char *text;
	size_t text_used, text_capacity;
	struct tailor_loss *all_losses;
	size_t all_loss_count, all_loss_capacity;
};

/*
 * Reads from all sources what happened in [from_ns - before_ns, to_ns], ordered by time. Returns 0 or -ENOMEM.
 * Producers are never disturbed. The window is all of it then, and stays valid until the next call.
 */
int tailor_harvest_read(struct tailor_harvest *harvest, const struct tailor_source *sources, size_t count, uint64_t from_ns,
                        uint64_t to_ns);
/*
 * Makes the window what tailor_harvest_read() would have made it for these times, without reading anything again: they must be
 * within those of the last read, and from_ns not before the one of the last cut. Returns 0 or -ENOMEM.
 */
int tailor_harvest_cut(struct tailor_harvest *harvest, uint64_t from_ns, uint64_t to_ns);
/* Adds a loss that is known from elsewhere (a request channel's) to the window. Returns 0 or -ENOMEM. */
int tailor_harvest_add_loss(struct tailor_harvest *harvest, const struct tailor_loss *loss);
void tailor_harvest_free(struct tailor_harvest *harvest);

#endif /* TAILOR_COLLECT_HARVEST_H */
