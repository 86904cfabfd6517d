/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor export`: recorded slow requests for other programs to show. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/dump_filter.h"
#include "report/report.h"

#define DEFAULT_OUTPUT "tailor.pftrace"
#define MINUTE_NS UINT64_C(60000000000)

struct options {
	struct dump_filter filter;
	const char *path;
	const char *output; /* "-": stdout; NULL: as fits the format */
	int json;
};

static const struct argp_option option_table[] = {
        {"format", 'f', "FORMAT", 0, "perfetto (default) or json (as `tailor dump --json`)", 0},
        {"output", 'o', "FILE", 0,
         "Where to write, - for stdout (default: " DEFAULT_OUTPUT ", and stdout for json); readable by its owner only", 0},
        {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &options->filter; return 0;
	case 'f':
		if (strcmp(argument, "perfetto") != 0 && strcmp(argument, "json") != 0)
			argp_error(state, "--format takes perfetto or json, not \"%s\"", argument);
		options->json = argument[0] == 'j';
		return 0;
	case 'o': options->output = argument; return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 0)
			return ARGP_ERR_UNKNOWN;
		options->path = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&dump_filter_parser, 0, NULL, 0}, {0}};

static const struct argp parser = {
        .options = option_table,
        .parser = parse_option,
        .args_doc = "[PATH]",
        .doc = "Writes recorded slow requests as a trace for Perfetto, a viewer of traces.\v"
               "PATH is a store of timelines (a directory, default " DUMP_DEFAULT_PATH ") or one of its files.\n\n"
               "  tailor export --slowest 50 -o slow.pftrace\n\n"
               "Open https://ui.perfetto.dev in a browser, \"Open trace file\", slow.pftrace. The page reads the file in the "
               "browser; it is not sent anywhere. There is a track for the client, the proxy, each thread of the servers, what "
               "the kernel and the JVM kept them waiting for; a click on a slice shows its cause, and arrows from where to "
               "where the request went.",
        .children = children,
};

/*
 * How many timelines at the start are from before the machine was last started: CLOCK_MONOTONIC began anew since, and not long before the
 * one before. Where only the wall clock was set back, it began long before that.
 */
static size_t count_earlier_boots(const struct dump_chosen *chosen)
{
	size_t earlier = 0;

	for (size_t i = 1; i < chosen->count; i++) {
		const struct tailor_request *before = &chosen->timelines[i - 1].request, *request = &chosen->timelines[i].request;

		if (request->begin_ns < before->begin_ns && before->begin_ns - request->begin_ns > MINUTE_NS &&
		    request->wall_ns + MINUTE_NS > before->wall_ns + request->begin_ns)
			earlier = i;
	}
	return earlier;
}

static int write_timelines(const struct options *options, const struct dump_chosen *chosen, FILE *out, size_t *ret_count)
{
	size_t earlier;
	int error = 0;

	*ret_count = chosen->count;
	if (options->json) {
		tailor_report_json_begin(out);
		for (size_t i = 0; i < chosen->count && !error; i++)
			error = tailor_report_json(out, &chosen->timelines[i], i);
		tailor_report_json_end(out);
		return error;
	}
	earlier = count_earlier_boots(chosen);
	*ret_count -= earlier;
	if (earlier > 0)
		fprintf(stderr,
		        "%s: left out %zu timeline%s from before the machine's last start: the clock began anew, and a trace has "
		        "one\n",
		        options->filter.command, earlier, earlier == 1 ? "" : "s");
	return tailor_report_perfetto(out, chosen->timelines + earlier, chosen->count - earlier);
}

/* A slip in -o must not cost what was recorded. */
static int is_recorded(const char *path)
{
	struct tailor_store_reader *reader;
	struct stat there;

	if (stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0)
		return 0;
	if (tailor_store_reader_open(path, &reader) != 0)
		return 0;
	tailor_store_reader_close(reader);
	return 1;
}

/*
 * Requests are nobody else's business: the file is its owner's, as the store, whoever could read the one that it replaces. It
 * takes its name only when it is whole, so that a full disk leaves what was there, and a symbolic link that somebody laid out
 * under the default name leads nowhere. A device or a pipe is written as it is: then *ret_temporary is empty.
 */
static FILE *open_output(const char *path, char *ret_temporary, size_t size)
{
	struct stat there;
	int fd;
	FILE *out;

	ret_temporary[0] = '\0';
	if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
	} else if ((size_t)snprintf(ret_temporary, size, "%s.XXXXXX", path) >= size) {
		errno = ENAMETOOLONG;
		return NULL;
	} else {
		fd = mkostemp(ret_temporary, O_CLOEXEC);
	}
	out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (fd >= 0 && !out)
		close(fd);
	return out;
}

/* Ends the writing of `out`; of a file with a temporary name, gives it its own or removes it. */
static int finish_output(FILE *out, const char *path, const char *temporary, int error)
{
	if ((fflush(out) != 0 || ferror(out)) && !error)
		error = errno ? -errno : -EIO;
	if (out != stdout && fclose(out) != 0 && !error)
		error = -errno;
	if (!temporary[0])
		return error;
	if (!error && rename(temporary, path) != 0)
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}

static int write_output(const struct options *options, const struct dump_chosen *chosen)
{
	const char *path = options->output ? options->output : options->json ? "-" : DEFAULT_OUTPUT;
	int to_stdout = strcmp(path, "-") == 0, error;
	char temporary[PATH_MAX] = "";
	size_t count = 0;
	FILE *out;

	if (!to_stdout && is_recorded(path)) {
		fprintf(stderr, "%s: %s is part of a store of timelines; choose another file with -o\n", options->filter.command, path);
		return TAILOR_EXIT_FAILED;
	}
	out = to_stdout ? stdout : open_output(path, temporary, sizeof(temporary));
	if (!out) {
		fprintf(stderr, "%s: cannot write %s: %s; choose another file with -o\n", options->filter.command, path,
		        strerror(errno));
		return TAILOR_EXIT_FAILED;
	}
	/* The stream only keeps that a write failed; what it failed with, here. */
	errno = 0;
	error = finish_output(out, path, temporary, write_timelines(options, chosen, out, &count));
	if (error) {
		fprintf(stderr, "%s: cannot write %s: %s\n", options->filter.command, to_stdout ? "the output" : path,
		        strerror(-error));
		return TAILOR_EXIT_FAILED;
	}
	if (!to_stdout && !options->json)
		fprintf(stderr, "%s: wrote %zu timeline%s to %s; open it at https://ui.perfetto.dev (it stays on this machine)\n",
		        options->filter.command, count, count == 1 ? "" : "s", path);
	return TAILOR_EXIT_DONE;
}

int tailor_command_export(int argc, char **argv)
{
	struct options options = {.filter = {.command = "tailor export", .cause = -1}, .path = DUMP_DEFAULT_PATH};
	struct dump_chosen chosen = {.filter = &options.filter};
	struct dump_found found;
	int status = TAILOR_EXIT_FAILED, error;

	if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0)
		return TAILOR_EXIT_USAGE;
	error = dump_filter_read(&options.filter, options.path, dump_chosen_take, &chosen, &found);
	if (!error) {
		dump_chosen_finish(&chosen);
		dump_chosen_by_time(&chosen);
		status = write_output(&options, &chosen);
	} else if (error == -ENODATA && options.json) {
		/* As `dump --json`: a program that reads JSON gets some, also when there is nothing in it. */
		write_output(&options, &chosen);
	}
	dump_chosen_free(&chosen);
	return status;
}
