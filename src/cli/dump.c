/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor dump`: recorded slow requests, as text or JSON. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/store.h>
#include <tailor/timeline_names.h>
#include <time.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/units.h"
#include "cli/commands.h"
#include "report/report.h"

#define DEFAULT_PATH "./timelines"
#define SLOWEST_MAX 100000

struct options {
	const char *path;
	uint64_t slowest; /* 0: all */
	uint64_t request;
	int one_request;
	int cause;         /* -1: any */
	uint64_t since_ns; /* CLOCK_REALTIME, 0: any */
	int json;
};

enum {
	OPTION_SLOWEST = 256,
	OPTION_REQUEST,
	OPTION_CAUSE,
	OPTION_SINCE,
	OPTION_FORMAT,
	OPTION_JSON,
};

static const struct argp_option option_table[] = {
        {"slowest", OPTION_SLOWEST, "N", 0, "Only the N slowest, slowest first", 0},
        {"request", OPTION_REQUEST, "ID", 0, "Only the request with this id (16 hexadecimal digits)", 0},
        {"cause", OPTION_CAUSE, "CAUSE", 0, "Only those mostly caused by CAUSE (gc, response-buffered, ...)", 0},
        {"since", OPTION_SINCE, "TIME", 0, "Only those since then: 10m, 2h, or 2026-01-31T12:00:00Z", 0},
        {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 0},
        {"json", OPTION_JSON, NULL, 0, "The same as --format json", 0},
        {0},
};

static int parse_request(const char *text, uint64_t *ret_request)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16)
		return -EINVAL;
	*ret_request = strtoull(text, NULL, 16);
	return 0;
}

static int parse_cause(const char *text)
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

static void refuse_cause(struct argp_state *state, const char *text)
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
	struct options *options = state->input;

	switch (key) {
	case OPTION_SLOWEST:
		if (tailor_parse_number(argument, 1, SLOWEST_MAX, &options->slowest) != 0)
			argp_error(state, "--slowest takes a number from 1 to %d, not \"%s\"", SLOWEST_MAX, argument);
		return 0;
	case OPTION_REQUEST:
		if (parse_request(argument, &options->request) != 0)
			argp_error(state, "--request takes the 16 hexadecimal digits of an id, not \"%s\"", argument);
		options->one_request = 1;
		return 0;
	case OPTION_CAUSE:
		options->cause = parse_cause(argument);
		if (options->cause < 0)
			refuse_cause(state, argument);
		return 0;
	case OPTION_SINCE:
		if (parse_since(argument, &options->since_ns) != 0)
			argp_error(state,
			           "--since takes a duration like 10m or a time like 2026-01-31T12:00:00Z, not \"%s\"",
			           argument);
		return 0;
	case OPTION_FORMAT:
		if (strcmp(argument, "text") != 0 && strcmp(argument, "json") != 0)
			argp_error(state, "--format takes text or json, not \"%s\"", argument);
		options->json = argument[0] == 'j';
		return 0;
	case OPTION_JSON: options->json = 1; return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 0)
			return ARGP_ERR_UNKNOWN;
		options->path = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp parser = {
        .options = option_table,
        .parser = parse_option,
        .args_doc = "[PATH]",
        .doc = "Prints recorded slow requests: where the time of each went, span by span.\v"
               "PATH is a store of timelines (a directory, default " DEFAULT_PATH ") or one of its files.",
};

/* Timelines that were chosen, by time; or the slowest so far, slowest first. */
struct chosen {
	struct tailor_timeline *timelines;
	size_t count;
	size_t capacity;
};

static int is_wanted(const struct options *options, const struct tailor_timeline *timeline)
{
	if (options->one_request && timeline->request.id != options->request)
		return 0;
	if (options->cause >= 0 && (int)timeline->dominant != options->cause)
		return 0;
	return timeline->request.wall_ns >= options->since_ns;
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

/* Takes the timeline. With --slowest, at most twice as many as asked for are held at a time. */
static int choose(struct chosen *chosen, const struct options *options, const struct tailor_timeline *timeline)
{
	if (chosen->count == chosen->capacity) {
		size_t capacity = chosen->capacity ? chosen->capacity * 2 : 64;
		struct tailor_timeline *more = reallocarray(chosen->timelines, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		chosen->timelines = more;
		chosen->capacity = capacity;
	}
	chosen->timelines[chosen->count++] = *timeline;
	if (options->slowest && chosen->count >= 2 * options->slowest) {
		qsort(chosen->timelines, chosen->count, sizeof(*chosen->timelines), by_latency);
		while (chosen->count > options->slowest)
			tailor_timeline_free(&chosen->timelines[--chosen->count]);
	}
	return 0;
}

/* ret_omitted: slow requests of which the store only says that there were more. */
static int collect(struct tailor_store_reader *reader, const struct options *options, struct chosen *chosen,
                   size_t *ret_read, uint64_t *ret_omitted)
{
	struct tailor_timeline timeline;
	int got;

	while ((got = tailor_store_next(reader, &timeline)) == 1) {
		++*ret_read;
		*ret_omitted += timeline.omitted;
		got = is_wanted(options, &timeline) ? choose(chosen, options, &timeline) : 1;
		if (got != 0)
			tailor_timeline_free(&timeline);
		if (got < 0)
			return got;
	}
	if (chosen->count > 0)
		qsort(chosen->timelines, chosen->count, sizeof(*chosen->timelines),
		      options->slowest ? by_latency : by_time);
	while (options->slowest && chosen->count > options->slowest)
		tailor_timeline_free(&chosen->timelines[--chosen->count]);
	return got;
}

static int print(const struct options *options, const struct chosen *chosen)
{
	int error = 0;

	if (options->json)
		tailor_report_json_begin(stdout);
	for (size_t i = 0; i < chosen->count && !error; i++) {
		if (options->json) {
			error = tailor_report_json(stdout, &chosen->timelines[i], i);
			continue;
		}
		if (i > 0)
			putchar('\n');
		tailor_report_text(stdout, &chosen->timelines[i]);
	}
	if (options->json)
		tailor_report_json_end(stdout);
	if (fflush(stdout) != 0 || ferror(stdout))
		error = -EIO;
	return error;
}

static void tell_damage(const struct tailor_store_reader *reader, const char *path)
{
	uint64_t records, bytes;

	tailor_store_damage(reader, &records, &bytes);
	if (records > 0)
		fprintf(stderr, "tailor dump: %s: skipped damaged data in %" PRIu64 " place%s\n", path, records,
		        records == 1 ? "" : "s");
	if (bytes > 0)
		fprintf(stderr,
		        "tailor dump: %s: ignored %" PRIu64 " bytes at the end of a file that are no whole record\n",
		        path, bytes);
}

static void tell_omitted(uint64_t omitted, const char *path)
{
	if (omitted > 0)
		fprintf(stderr,
		        "tailor dump: %s: %" PRIu64 " more request%s slow and only counted: so many at once would have cost too much to "
		        "explain, or could not be written\n",
		        path, omitted, omitted == 1 ? " was" : "s were");
}

static int fail_to_open(const char *path, int error)
{
	if (error == -ENOENT)
		fprintf(stderr,
		        "tailor dump: %s does not exist: no slow request has been recorded yet, or the store is "
		        "elsewhere; "
		        "give its PATH (`timelines.path` in tailor.yaml)\n",
		        path);
	else if (error == -EINVAL)
		fprintf(stderr,
		        "tailor dump: %s is not a store of timelines; give the directory that `tailor proxy` writes\n",
		        path);
	else
		fprintf(stderr, "tailor dump: cannot open %s: %s; run as the user that runs `tailor proxy`\n", path,
		        strerror(-error));
	return TAILOR_EXIT_FAILED;
}

static int dump(const struct options *options)
{
	struct tailor_store_reader *reader;
	struct chosen chosen = {0};
	uint64_t omitted = 0;
	size_t read = 0;
	int error;

	error = tailor_store_reader_open(options->path, &reader);
	if (error)
		return fail_to_open(options->path, error);
	error = collect(reader, options, &chosen, &read, &omitted);
	tell_damage(reader, options->path);
	tell_omitted(omitted, options->path);
	tailor_store_reader_close(reader);
	if (error < 0)
		fprintf(stderr, "tailor dump: cannot read %s: %s\n", options->path, strerror(-error));
	else if (chosen.count == 0 && read == 0)
		fprintf(stderr, "tailor dump: %s is empty: no slow request has been recorded yet\n", options->path);
	else if (chosen.count == 0 && options->one_request)
		fprintf(stderr,
		        "tailor dump: request %016" PRIx64 " is not among the %zu timelines in %s: the proxy was done with it within "
		        "slow.threshold, or its timeline has been deleted since\n",
		        options->request, read, options->path);
	else if (chosen.count == 0)
		fprintf(stderr,
		        "tailor dump: none of the %zu timelines in %s matches; leave out an option to see more\n", read,
		        options->path);
	if (!error && (chosen.count > 0 || options->json)) {
		error = print(options, &chosen);
		if (error)
			fprintf(stderr, "tailor dump: cannot write the output: %s\n", strerror(-error));
	}
	for (size_t i = 0; i < chosen.count; i++)
		tailor_timeline_free(&chosen.timelines[i]);
	free(chosen.timelines);
	return error || chosen.count == 0 ? TAILOR_EXIT_FAILED : TAILOR_EXIT_DONE;
}

int tailor_command_dump(int argc, char **argv)
{
	struct options options = {.path = DEFAULT_PATH, .cause = -1};

	if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0)
		return TAILOR_EXIT_USAGE;
	return dump(&options);
}
