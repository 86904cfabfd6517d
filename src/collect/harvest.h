/* SPDX-License-Identifier: Apache-2.0 */
/* Channels -> the ordered events of one stretch of time, with what was lost in it. */
#ifndef TAILOR_COLLECT_HARVEST_H
#define TAILOR_COLLECT_HARVEST_H

#include <stddef.h>
#include <stdint.h>
#include <tailor/channel.h>
#include <tailor/window.h>

#include "collect/hold.h"

/* A channel to read from. */
struct tailor_source {
	struct tailor_channel channel;
	char name[24];     /* as losses call it: "cpu0", "jvm:a" */
	uint32_t own_pid;  /* events with this pid... */
	uint32_t pid;      /* ...are of this process as we see it; both 0 where they need no mapping */
	uint64_t before_ns; /* how far before the window's start its events matter */
	uint64_t earlier_ns; /* how far before that its receives, writes and scheduling do; see HARVEST_EARLIER_MAX */
	struct tailor_hold *hold; /* of that channel: what is read from there, too, and where losses are counted; NULL: none */
};

/* So many positions of a channel are looked through for what matters before its events: on a busy server that is not as far as asked. */
#define HARVEST_EARLIER_MAX 16384

/* Grows as needed and is used again for the next stretch; zero it at first. Owned by one thread. */
struct tailor_harvest {
	/* The window. */
	struct tailor_window_event *events;
	size_t event_count;
	struct tailor_window_point *earlier;
	size_t earlier_count, earlier_capacity;
	struct tailor_event *scheduling;
	size_t scheduling_count, scheduling_capacity;
	uint64_t whole_ns; /* as earlier_whole_ns of struct tailor_window */
	struct tailor_loss *losses;
	size_t loss_count, loss_capacity;

	/* What was read, inside src/collect only. */
	struct tailor_window_event *read, *merged; /* by source, newest first; by time */
	size_t read_count, read_capacity, merged_capacity;
	size_t merged_begin, merged_end;
	uint16_t *merged_source; /* of each in merged: index in sources */
	size_t merged_source_capacity;
	struct tailor_source *sources;
	size_t sources_capacity, source_count;
	struct tailor_window_event *thinned; /* instead of merged, for one window */
	uint16_t *thinned_source;
	size_t thinned_capacity, thinned_source_capacity;
	void *runs;
	size_t runs_capacity;
	char *text;
	size_t text_used, text_capacity;
	uint64_t read_whole_ns; /* without what was cut off since */
	struct tailor_loss *all_losses;
	size_t all_loss_count, all_loss_capacity;
};

/*
 * Reads from all sources what happened in [from_ns - before_ns, to_ns], ordered by time, and what matters before that. Returns
 * 0 or -ENOMEM.
 * Producers are never disturbed. The window is all of it then, and stays valid until the next call.
 */
int tailor_harvest_read(struct tailor_harvest *harvest, const struct tailor_source *sources, size_t count, uint64_t from_ns,
                        uint64_t to_ns);
/*
 * Makes the window what tailor_harvest_read() would have made it for these times, without reading anything again: they must be
 * within those of the last read, and from_ns not before the one of the last cut. Returns 0 or -ENOMEM.
 */
int tailor_harvest_cut(struct tailor_harvest *harvest, uint64_t from_ns, uint64_t to_ns);

/* Whom a request had to do with. */
struct tailor_concern {
	const struct tailor_window_server *servers;
	size_t server_count;
	uint32_t proxy_pid, worker_tid; /* the one of the proxy's threads that carried it */
};

/*
 * Where the window has more than `max` events: leaves out those of threads that the request had nothing to do with. Where that is not
 * enough, leaves out what is in its middle, and says so as losses: where it began and how it ended explains more. Returns how many
 * were left out of the middle, or -ENOMEM.
 */
int64_t tailor_harvest_thin(struct tailor_harvest *harvest, const struct tailor_concern *concern, size_t max);
/* Adds a loss that is known from elsewhere (a request channel's) to the window. Returns 0 or -ENOMEM. */
int tailor_harvest_add_loss(struct tailor_harvest *harvest, const struct tailor_loss *loss);
/* Gives memory back that only a very long window needs: more than for `events`. The window is gone then. */
void tailor_harvest_shrink(struct tailor_harvest *harvest, size_t events);
void tailor_harvest_free(struct tailor_harvest *harvest);

#endif /* TAILOR_COLLECT_HARVEST_H */
