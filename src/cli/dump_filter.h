/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a store's timelines a reading command is about: the options for it, the reading, and what there is to tell of it. */
#ifndef TAILOR_CLI_DUMP_FILTER_H
#define TAILOR_CLI_DUMP_FILTER_H

#include <argp.h>
#include <tailor/store.h>

#define DUMP_DEFAULT_PATH "./timelines"

struct dump_filter {
	const char *command; /* "tailor dump", for messages */
	uint64_t slowest;    /* 0: all */
	uint64_t request;
	int one_request;
	int cause;         /* of most of the time; -1: any */
	uint64_t since_ns; /* CLOCK_REALTIME, 0: any */
};

/* --slowest, --request, --cause and --since, as an argp child; its input is a struct dump_filter. */
extern const struct argp dump_filter_parser;

/* A cause by its key, or -1. dump_filter_refuse_cause() ends with a usage error that lists the keys. */
int dump_filter_cause(const char *key);
void dump_filter_refuse_cause(struct argp_state *state, const char *text);

/* Whether the options besides --slowest let it through. */
int dump_filter_wants(const struct dump_filter *filter, const struct tailor_timeline *timeline);

/* What one reading of a store found. */
struct dump_found {
	uint64_t read;
	uint64_t wanted;
	uint64_t omitted; /* slow requests, since --since, of which the store only says that there were more */
	int damaged;      /* something was there that could not be read */
};

/*
 * Reads the store and calls `take` for each of its timelines, with whether it is wanted. `take` returns 1 when it took the
 * timeline over (and frees it), 0 when it did not, or a negative errno, which ends the reading. Problems are told on stderr,
 * also that nothing was found. Returns 0, or a negative errno after having told it; -ENODATA when nothing was wanted.
 */
int dump_filter_read(const struct dump_filter *filter, const char *path,
                     int (*take)(void *context, struct tailor_timeline *timeline, int wanted), void *context,
                     struct dump_found *ret_found);

/* Opens the store, or tells on stderr why not. Returns 0 or a negative errno. */
int dump_filter_open(const struct dump_filter *filter, const char *path, struct tailor_store_reader **ret_reader);
/* Tells on stderr what was damaged of what has been read. Returns 1 if anything was. */
int dump_filter_damage(const struct dump_filter *filter, const struct tailor_store_reader *reader, const char *path);

/* Timelines that were chosen, in memory. Zero is none. */
struct dump_chosen {
	const struct dump_filter *filter;
	struct tailor_timeline *timelines;
	size_t count;
	size_t capacity;
};

/* A `take` for dump_filter_read(), whose context is a struct dump_chosen. With --slowest, at most twice as many as asked for are held. */
int dump_chosen_take(void *context, struct tailor_timeline *timeline, int wanted);

/* Puts them in order: by time, or the slowest first with --slowest. */
void dump_chosen_finish(struct dump_chosen *chosen);
void dump_chosen_by_time(struct dump_chosen *chosen);
void dump_chosen_free(struct dump_chosen *chosen);

#endif /* TAILOR_CLI_DUMP_FILTER_H */
