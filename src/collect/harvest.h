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

/* Grows as needed and is used again for the next window; zero it at first. Owned by one thread. */
struct tailor_harvest {
	struct tailor_window_event *events;
	size_t event_count, event_capacity;
	char *text;
	size_t text_used, text_capacity;
	struct tailor_loss *losses;
	size_t loss_count, loss_capacity;
};

/*
 * Reads from all sources what happened in [from_ns - before_ns, to_ns], ordered by time. Returns 0 or -ENOMEM.
 * Producers are never disturbed. The result stays valid until the next call.
 */
int tailor_harvest_read(struct tailor_harvest *harvest, const struct tailor_source *sources, size_t count, uint64_t from_ns,
                        uint64_t to_ns);
/* Adds a loss that is known from elsewhere (a request channel's). Returns 0 or -ENOMEM. */
int tailor_harvest_add_loss(struct tailor_harvest *harvest, const struct tailor_loss *loss);
void tailor_harvest_free(struct tailor_harvest *harvest);

#endif /* TAILOR_COLLECT_HARVEST_H */
