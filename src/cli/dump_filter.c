/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/timeline_names.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/units.h"
#include "cli/dump_filter.h"

#define SLOWEST_MAX 100000

enum {
	OPTION_SLOWEST = 512,
	OPTION_REQUEST,
	OPTION_CAUSE,
	OPTION_SINCE,
};

static const struct argp_option option_table[] = {
        {"slowest", OPTION_SLOWEST, "N", 0, "Only the N slowest, slowest first", 0},
        {"request", OPTION_REQUEST, "ID", 0, "Only the request with this id (16 hexadecimal digits)", 0},
        {"cause", OPTION_CAUSE, "CAUSE", 0, "Only those mostly caused by CAUSE (gc, response-buffered, ...)", 0},
        {"since", OPTION_SINCE, "TIME", 0, "Only those since then: 10m, 2h, or 2026-01-31T12:00:00Z", 0},
        {0},
};

static int parse_request(const char *text, uint64_t *ret_request)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16)
		return -EINVAL;
	*ret_request = strtoull(text, NULL, 16);
	return 0;
}

int dump_filter_cause(const char *text)
{
	for (int cause = 0; cause < TAILOR_CAUSES; cause++) {
		if (strcmp(text, tailor_cause_key((enum tailor_cause)cause)) == 0)
			return cause;
	}
	return -1;
}

static int parse_since(const char *text, uint64_t *ret_ns)
{
	uint64_t now = tailor_clock_wall_ns(), ago;

	if (tailor_parse_duration(text, &ago) != 0)
		return tailor_parse_moment(text, ret_ns);
	*ret_ns = ago < now ? now - ago : 1;
	return 0;
}

void dump_filter_refuse_cause(struct argp_state *state, const char *text)
{
	char keys[1024] = "";
	size_t used = 0;

	for (int cause = 0; cause < TAILOR_CAUSES && used < sizeof(keys); cause++)
		used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s%s", cause ? ", " : "",
		                         tailor_cause_key((enum tailor_cause)cause));
	argp_error(state, "there is no cause \"%s\"; causes are %s", text, keys);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct dump_filter *filter = state->input;

	switch (key) {
	case OPTION_SLOWEST:
		if (tailor_parse_number(argument, 1, SLOWEST_MAX, &filter->slowest) != 0)
			argp_error(state, "--slowest takes a number from 1 to %d, not \"%s\"", SLOWEST_MAX, argument);
		return 0;
	case OPTION_REQUEST:
		if (parse_request(argument, &filter->request) != 0)
			argp_error(state, "--request takes the 16 hexadecimal digits of an id, not \"%s\"", argument);
		filter->one_request = 1;
		return 0;
	case OPTION_CAUSE:
		filter->cause = dump_filter_cause(argument);
		if (filter->cause < 0)
			dump_filter_refuse_cause(state, argument);
		return 0;
	case OPTION_SINCE:
		if (parse_since(argument, &filter->since_ns) != 0)
			argp_error(state,
			           "--since takes a duration like 10m or a time like 2026-01-31T12:00:00Z, not \"%s\"",
			           argument);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp dump_filter_parser = {.options = option_table, .parser = parse_option};

int dump_filter_wants(const struct dump_filter *filter, const struct tailor_timeline *timeline)
{
	if (filter->one_request && timeline->request.id != filter->request)
		return 0;
	if (filter->cause >= 0 && (int)timeline->dominant != filter->cause)
		return 0;
	return timeline->request.wall_ns >= filter->since_ns;
}

int dump_filter_damage(const struct dump_filter *filter, const struct tailor_store_reader *reader, const char *path)
{
	uint64_t records, bytes;

	tailor_store_damage(reader, &records, &bytes);
	if (records > 0)
		fprintf(stderr, "%s: %s: skipped damaged data in %" PRIu64 " place%s\n", filter->command, path, records,
		        records == 1 ? "" : "s");
	if (bytes > 0)
		fprintf(stderr, "%s: %s: ignored %" PRIu64 " bytes at the end of a file that are no whole record\n",
		        filter->command, path, bytes);
	return records > 0 || bytes > 0;
}

static void tell_found(const struct dump_filter *filter, const char *path, const struct dump_found *found)
{
	if (found->omitted > 0)
		fprintf(stderr,
		        "%s: %s: %" PRIu64 " more request%s slow and only counted: so many at once would have cost too much to "
		        "explain, or could not be written\n",
		        filter->command, path, found->omitted, found->omitted == 1 ? " was" : "s were");
	if (found->wanted > 0)
		return;
	if (found->read == 0 && found->damaged)
		fprintf(stderr, "%s: nothing in %s can be read: it is damaged, or a newer version wrote it\n", filter->command, path);
	else if (found->read == 0)
		fprintf(stderr, "%s: %s has no timelines: no slow request has been recorded yet\n", filter->command, path);
	else if (filter->one_request)
		fprintf(stderr,
		        "%s: request %016" PRIx64 " is not among the %" PRIu64 " timelines in %s: the proxy was done with it within "
		        "slow.threshold, or its timeline has been deleted since\n",
		        filter->command, filter->request, found->read, path);
	else
		fprintf(stderr, "%s: none of the %" PRIu64 " timelines in %s matches; leave out an option to see more\n",
		        filter->command, found->read, path);
}

static int fail_to_open(const struct dump_filter *filter, const char *path, int error)
{
	if (error == -ENOENT)
		fprintf(stderr,
		        "%s: %s does not exist: no slow request has been recorded yet, or the store is elsewhere; give its "
		        "PATH (`timelines.path` in tailor.yaml)\n",
		        filter->command, path);
	else if (error == -EINVAL)
		fprintf(stderr, "%s: %s is not a store of timelines; give the directory that `tailor proxy` writes\n",
		        filter->command, path);
	else
		fprintf(stderr, "%s: cannot open %s: %s; run as the user that runs `tailor proxy`\n", filter->command, path,
		        strerror(-error));
	return error;
}

int dump_filter_open(const struct dump_filter *filter, const char *path, struct tailor_store_reader **ret_reader)
{
	int error = tailor_store_reader_open(path, ret_reader);

	return error ? fail_to_open(filter, path, error) : 0;
}

int dump_filter_read(const struct dump_filter *filter, const char *path,
                     int (*take)(void *context, struct tailor_timeline *timeline, int wanted), void *context,
                     struct dump_found *ret_found)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	int got;

	*ret_found = (struct dump_found){0};
	got = dump_filter_open(filter, path, &reader);
	if (got)
		return got;
	while ((got = tailor_store_next(reader, &timeline)) == 1) {
		int wanted = dump_filter_wants(filter, &timeline), taken;

		ret_found->read++;
		ret_found->wanted += (uint64_t)wanted;
		/* What these took and why nobody knows, but when they were. */
		if (timeline.request.wall_ns >= filter->since_ns)
			ret_found->omitted += timeline.omitted;
		taken = take(context, &timeline, wanted);
		if (taken != 1)
			tailor_timeline_free(&timeline);
		if (taken < 0) {
			got = taken;
			break;
		}
	}
	ret_found->damaged = dump_filter_damage(filter, reader, path);
	tailor_store_reader_close(reader);
	if (got < 0) {
		fprintf(stderr, "%s: cannot read %s: %s\n", filter->command, path, strerror(-got));
		return got;
	}
	tell_found(filter, path, ret_found);
	return ret_found->wanted > 0 ? 0 : -ENODATA;
}

static uint64_t latency_of(const struct tailor_timeline *timeline)
{
	return timeline->request.end_ns - timeline->request.begin_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct tailor_request *left = &((const struct tailor_timeline *)a)->request;
	const struct tailor_request *right = &((const struct tailor_timeline *)b)->request;

	if (left->wall_ns != right->wall_ns)
		return left->wall_ns < right->wall_ns ? -1 : 1;
	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

static int by_latency(const void *a, const void *b)
{
	uint64_t left = latency_of(a), right = latency_of(b);

	return left != right ? (left > right ? -1 : 1) : by_time(a, b);
}

int dump_chosen_take(void *context, struct tailor_timeline *timeline, int wanted)
{
	struct dump_chosen *chosen = context;
	uint64_t slowest = chosen->filter->slowest;

	if (!wanted)
		return 0;
	if (chosen->count == chosen->capacity) {
		size_t capacity = chosen->capacity ? chosen->capacity * 2 : 64;
		struct tailor_timeline *more = reallocarray(chosen->timelines, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		chosen->timelines = more;
		chosen->capacity = capacity;
	}
	chosen->timelines[chosen->count++] = *timeline;
	if (slowest && chosen->count >= 2 * slowest)
		dump_chosen_finish(chosen);
	return 1;
}

void dump_chosen_finish(struct dump_chosen *chosen)
{
	uint64_t slowest = chosen->filter->slowest;

	if (chosen->count > 0)
		qsort(chosen->timelines, chosen->count, sizeof(*chosen->timelines), slowest ? by_latency : by_time);
	while (slowest && chosen->count > slowest)
		tailor_timeline_free(&chosen->timelines[--chosen->count]);
}

void dump_chosen_by_time(struct dump_chosen *chosen)
{
	if (chosen->count > 0)
		qsort(chosen->timelines, chosen->count, sizeof(*chosen->timelines), by_time);
}

void dump_chosen_free(struct dump_chosen *chosen)
{
	for (size_t i = 0; i < chosen->count; i++)
		tailor_timeline_free(&chosen->timelines[i]);
	free(chosen->timelines);
	*chosen = (struct dump_chosen){.filter = chosen->filter};
}
