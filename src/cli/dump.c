/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor dump`: recorded slow requests, as text or JSON. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dump_failovers.h"
#include "cli/dump_filter.h"
#include "cli/dump_sums.h"
#include "report/report.h"

enum mode {
	MODE_TIMELINES,
	MODE_BY_CAUSE,
	MODE_COMPARE,
	MODE_WHAT_IF,
	MODE_FAILOVERS,
};

struct options {
	struct dump_filter filter;
	enum mode mode;
	enum tailor_cause without; /* of MODE_WHAT_IF */
	const char *paths[2];
	unsigned int path_count;
	int json;
};

enum {
	OPTION_FORMAT = 256,
	OPTION_JSON,
	OPTION_BY_CAUSE,
	OPTION_COMPARE,
	OPTION_WHAT_IF,
	OPTION_FAILOVERS,
};

static const struct argp_option option_table[] = {
        {"by-cause", OPTION_BY_CAUSE, NULL, 0, "Instead: what each cause took of all slow requests", 0},
        {"compare", OPTION_COMPARE, NULL, 0,
         "Instead: how the second PATH differs from the first, with 95% intervals (no other choice of requests)", 0},
        {"what-if", OPTION_WHAT_IF, "no-CAUSE", 0,
         "Instead: an estimate of the slow requests if CAUSE had taken no time (no-gc, no-page-fault-major, ...)", 0},
        {"failovers", OPTION_FAILOVERS, NULL, 0,
         "Instead: each stop of a server in which requests were in flight there, and what was done about it", 0},
        {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 0},
        {"json", OPTION_JSON, NULL, 0, "The same as --format json", 0},
        {0},
};

static void set_mode(struct argp_state *state, enum mode mode)
{
	struct options *options = state->input;

	if (options->mode != MODE_TIMELINES && options->mode != mode)
		argp_error(state, "--by-cause, --compare, --what-if and --failovers exclude each other");
	options->mode = mode;
}

static void parse_what_if(struct argp_state *state, const char *argument)
{
	struct options *options = state->input;
	int cause = dump_filter_cause(strncmp(argument, "no-", 3) == 0 ? argument + 3 : argument);

	if (cause < 0)
		dump_filter_refuse_cause(state, argument);
	options->without = (enum tailor_cause)cause;
	set_mode(state, MODE_WHAT_IF);
}

static void check(struct argp_state *state)
{
	const struct options *options = state->input;
	const struct dump_filter *filter = &options->filter;

	if (options->mode == MODE_FAILOVERS && (filter->slowest || filter->one_request || filter->cause >= 0))
		argp_error(state, "--failovers shows stops of servers, not requests; leave out --slowest, --request and --cause");
	if (options->mode != MODE_COMPARE) {
		if (options->path_count > 1)
			argp_error(state, "one PATH, not %u; two are for --compare", options->path_count);
		return;
	}
	if (options->path_count != 2)
		argp_error(state, "--compare takes two PATHs: the store from before, and the one from after");
	/* Chosen requests say nothing about how often or how long all of them are. */
	if (filter->slowest || filter->one_request || filter->cause >= 0 || filter->since_ns)
		argp_error(state, "--compare compares whole stores; leave out --slowest, --request, --cause and --since");
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &options->filter; return 0;
	case OPTION_BY_CAUSE: set_mode(state, MODE_BY_CAUSE); return 0;
	case OPTION_COMPARE: set_mode(state, MODE_COMPARE); return 0;
	case OPTION_WHAT_IF: parse_what_if(state, argument); return 0;
	case OPTION_FAILOVERS: set_mode(state, MODE_FAILOVERS); return 0;
	case OPTION_FORMAT:
		if (strcmp(argument, "text") != 0 && strcmp(argument, "json") != 0)
			argp_error(state, "--format takes text or json, not \"%s\"", argument);
		options->json = argument[0] == 'j';
		return 0;
	case OPTION_JSON: options->json = 1; return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			return ARGP_ERR_UNKNOWN;
		options->paths[options->path_count++] = argument;
		return 0;
	case ARGP_KEY_END: check(state); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&dump_filter_parser, 0, NULL, 0}, {0}};

static const struct argp parser = {
        .options = option_table,
        .parser = parse_option,
        .args_doc = "[PATH]\n--compare PATH PATH",
        .doc = "Prints recorded slow requests: where the time of each went, span by span.\v"
               "PATH is a store of timelines (a directory, default " DUMP_DEFAULT_PATH ") or one of its files.\n\n"
               "  tailor dump --since 10m --by-cause      what slowed requests lately\n"
               "  tailor dump --slowest 3 --cause gc      the worst of mostly collections\n"
               "  tailor dump --what-if no-gc             the tail without them, estimated\n"
               "  tailor dump --compare before/ after/    what a change has changed\n"
               "  tailor dump --failovers --since 1h      how stops of servers were met",
        .children = children,
};

static int print(const struct options *options, const struct dump_chosen *chosen)
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
	return error;
}

static int dump_timelines(const struct options *options)
{
	struct dump_chosen chosen = {.filter = &options->filter};
	struct dump_found found;
	int error = dump_filter_read(&options->filter, options->paths[0], dump_chosen_take, &chosen, &found);
	int status = TAILOR_EXIT_FAILED;

	if (!error) {
		dump_chosen_finish(&chosen);
		status = dump_written(&options->filter, print(options, &chosen));
	} else if (error == -ENODATA) {
		/* A program that reads JSON gets some, also when there is nothing in it. */
		if (options->json)
			dump_written(&options->filter, print(options, &chosen));
	}
	dump_chosen_free(&chosen);
	return status;
}

int tailor_command_dump(int argc, char **argv)
{
	struct options options = {.filter = {.command = "tailor dump", .cause = -1}};

	if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0)
		return TAILOR_EXIT_USAGE;
	if (options.path_count == 0)
		options.paths[0] = DUMP_DEFAULT_PATH;
	switch (options.mode) {
	case MODE_BY_CAUSE: return dump_by_cause(&options.filter, options.paths[0], options.json);
	case MODE_COMPARE:
		return dump_compare(&options.filter, options.paths[0], options.paths[1], options.json);
	case MODE_WHAT_IF:
		return dump_what_if(&options.filter, options.paths[0], options.without, options.json);
	case MODE_FAILOVERS: return dump_failovers(&options.filter, options.paths[0], options.json);
	case MODE_TIMELINES: break;
	}
	return dump_timelines(&options);
}
