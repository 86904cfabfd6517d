/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor load`: runs a load and tells what its clients saw. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/load_options.h"
#include "cli/load_timelines.h"
#include "load/load.h"
#include "load/print.h"

/* Standard streams, outputs, the store of timelines and what libraries open for a moment. */
#define OTHER_FILES 24
/* A ring and an event descriptor. */
#define FILES_A_THREAD 2
/* A device, not a body, is larger. */
#define BODY_BYTES_MAX ((size_t)256 << 20)
/* How often a terminal sees the line grow. */
#define TICK_NS TAILOR_NS_PER_S

/* Where results go while the load runs. */
struct outputs {
	struct tailor_load_printer printer;
	FILE *csv, *hdr;
	uint64_t start_wall_ns; /* of the HdrHistogram log */
	int csv_error, hdr_error;
};

/* One line, as for wrong options. */
static int usage_error(const char *message)
{
	fprintf(stderr, "tailor load: %s\n", message);
	return -EINVAL;
}

static int read_body(const char *file_name, char **ret_body, size_t *ret_bytes)
{
	cleanup_fclose FILE *file = fopen(file_name, "re");
	char message[TAILOR_LOAD_ERROR_BYTES], part[65536];
	size_t count, all = 0;
	FILE *memory;

	if (!file) {
		snprintf(message, sizeof(message), "cannot open %.300s: %m; give a readable file to --body-file", file_name);
		return usage_error(message);
	}
	memory = open_memstream(ret_body, ret_bytes);
	if (!memory)
		return usage_error("no memory for the body; give a smaller file to --body-file");
	while (all <= BODY_BYTES_MAX && (count = fread(part, 1, sizeof(part), file)) > 0)
		all += fwrite(part, 1, count, memory);
	if (fclose(memory) != 0)
		return usage_error("no memory for the body; give a smaller file to --body-file");
	if (all > BODY_BYTES_MAX) {
		snprintf(message, sizeof(message), "%.300s is no body of at most 256 MiB; give a smaller file to --body-file", file_name);
		return usage_error(message);
	}
	if (ferror(file)) {
		snprintf(message, sizeof(message), "cannot read %.300s; give a readable file to --body-file", file_name);
		return usage_error(message);
	}
	return 0;
}

/* A connection is an open file: takes as many as are allowed, and says when that is not enough. */
static int raise_file_limit(const struct tailor_load_options *load)
{
	/* On each CPU is a watch for a machine that stands still. */
	rlim_t needed = load->connections + FILES_A_THREAD * load->threads + (rlim_t)get_nprocs() + OTHER_FILES;
	struct rlimit limit;
	char message[TAILOR_LOAD_ERROR_BYTES];

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= needed)
		return 0;
	snprintf(message, sizeof(message),
	         "--connections %u needs %llu open files, and %llu are allowed here; raise `ulimit -n` or ask for fewer",
	         load->connections, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
	return usage_error(message);
}

static int make_plan(struct load_arguments *arguments, struct tailor_load_plan *plan)
{
	char error[TAILOR_LOAD_ERROR_BYTES] = "no memory for the requests";
	int ret;

	if (!arguments->common.method)
		arguments->common.method = arguments->common.body_bytes > 0 ? "POST" : "GET";
	if (arguments->paths)
		ret = tailor_load_plan_read(plan, &arguments->common, arguments->paths, error);
	else if (arguments->replay)
		ret = tailor_load_plan_record(plan, &arguments->common, arguments->replay, error);
	else
		ret = tailor_load_plan_add(plan, &arguments->common, NULL, arguments->url_path, NULL, error);
	if (ret < 0)
		return usage_error(error);
	if (plan->recorded_skipped > 0)
		fprintf(stderr, "tailor load: %zu lines of %s hold no request that can be sent, and are left out\n",
		        plan->recorded_skipped, arguments->replay);
	return 0;
}

static int open_output(const char *name, const char *option, FILE **ret_file)
{
	char message[TAILOR_LOAD_ERROR_BYTES];

	if (!name)
		return 0;
	*ret_file = fopen(name, "we");
	if (*ret_file)
		return 0;
	snprintf(message, sizeof(message), "cannot write %.300s: %m; give a file that can be written to --%s", name, option);
	return usage_error(message);
}

static int open_outputs(const struct load_arguments *arguments, struct outputs *outputs)
{
	FILE *lines = arguments->json ? stderr : stdout;
	const struct tailor_load_result nothing_yet = {0};
	struct tailor_load_causes causes;
	char error[TAILOR_LOAD_ERROR_BYTES];
	size_t found;

	*outputs = (struct outputs){
		.printer = {
			.out = lines,
			.format = arguments->format,
			.options = &arguments->options,
			.refresh = arguments->format == TAILOR_LOAD_FORMAT_TABLE && isatty(fileno(lines)),
		},
		.start_wall_ns = tailor_clock_wall_ns(),
	};
	/* Rather now than after an hour's load. */
	if (arguments->timelines &&
	    tailor_load_timelines_find(arguments->timelines, &nothing_yet, &causes, &found, error) < 0)
		return usage_error(error);
	if (open_output(arguments->csv, "csv", &outputs->csv) < 0 || open_output(arguments->hdr, "hdr", &outputs->hdr) < 0)
		return -EINVAL;
	if (outputs->csv)
		outputs->csv_error = tailor_load_csv_begin(outputs->csv);
	if (outputs->hdr)
		outputs->hdr_error = tailor_load_hdr_begin(outputs->hdr, outputs->start_wall_ns);
	return 0;
}

static void on_interval(void *context, uint64_t wall_ns, const struct tailor_load_result *interval)
{
	struct outputs *outputs = context;

	tailor_load_print_interval(&outputs->printer, wall_ns, interval);
	if (outputs->csv && outputs->csv_error == 0)
		outputs->csv_error = tailor_load_csv_add(outputs->csv, wall_ns, interval);
	if (outputs->hdr && outputs->hdr_error == 0)
		outputs->hdr_error = tailor_load_hdr_add(outputs->hdr, outputs->start_wall_ns, wall_ns, interval);
}

static void on_tick(void *context, uint64_t wall_ns, const struct tailor_load_result *so_far)
{
	struct outputs *outputs = context;

	tailor_load_print_progress(&outputs->printer, wall_ns, so_far);
}

/* Returns 0, or -EIO after a line that says which file is not whole. */
static int close_output(const char *name, FILE *file, int error)
{
	if (!file || (fclose(file) == 0 && error == 0))
		return 0;
	fprintf(stderr, "tailor load: cannot write %s; it is not whole; is the disk full?\n", name);
	return -EIO;
}

static int close_outputs(const struct load_arguments *arguments, struct outputs *outputs)
{
	int csv = close_output(arguments->csv, outputs->csv, outputs->csv_error);
	int hdr = close_output(arguments->hdr, outputs->hdr, outputs->hdr_error);

	return csv < 0 || hdr < 0 ? -EIO : 0;
}

static int print_report(const struct load_arguments *arguments, const struct tailor_load_result *total)
{
	const struct tailor_load_options *load = &arguments->options;
	struct tailor_load_causes causes = {0};
	char error[TAILOR_LOAD_ERROR_BYTES];
	int ret = 0, written = 0;
	size_t found;

	if (arguments->timelines &&
	    tailor_load_timelines_find(arguments->timelines, total, &causes, &found, error) < 0) {
		fprintf(stderr, "tailor load: %s\n", error);
		ret = -EIO;
	}
	if (arguments->json)
		written = tailor_load_print_json(stdout, arguments->url, load, total, &causes);
	else
		tailor_load_print_total(stdout, arguments->url, load, total, &causes);
	/* The interval lines of a table are told of here, too. */
	if (written < 0 || fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "tailor load: cannot write the report to standard output; it is not whole; is the disk full?\n");
		ret = -EIO;
	}
	return ret;
}

static void tell_nothing_succeeded(const struct load_arguments *arguments, const struct tailor_load_result *total)
{
	const char *own = tailor_load_own_remedy(total->connect_error);
	char unconnected[TAILOR_LOAD_ERROR_BYTES];

	fputs("tailor load: no request succeeded", stderr);
	if (total->failed[TAILOR_LOAD_NO_CONNECTION] > 0) {
		tailor_load_say_unconnected(unconnected, sizeof(unconnected), &arguments->options, total);
		fprintf(stderr, "; %s", unconnected);
	} else if (total->connect_error) {
		fprintf(stderr, ", last answer: %s", strerror(total->connect_error));
	}
	if (own)
		fprintf(stderr, "; %s\n", own);
	else
		fprintf(stderr, "; is the right server there? try: curl -v '%s'\n", arguments->url);
}

/* Says each reason for which the load is a failure. */
static bool is_failure(const struct load_arguments *arguments, const struct tailor_load_result *total)
{
	char reason[TAILOR_LOAD_ERROR_BYTES];
	bool failure = false;

	if (total->good == 0) {
		tell_nothing_succeeded(arguments, total);
		failure = true;
	}
	for (size_t i = 0; i < arguments->condition_count; i++) {
		if (!tailor_load_condition_holds(&arguments->conditions[i], total, reason))
			continue;
		fprintf(stderr, "tailor load: %s\n", reason);
		failure = true;
	}
	if (!arguments->allow_late && !tailor_load_schedule_kept(&arguments->options, total, reason)) {
		fprintf(stderr, "tailor load: %s\n", reason);
		failure = true;
	}
	return failure;
}

static int run_load(struct load_arguments *arguments)
{
	struct tailor_load_options *load = &arguments->options;
	char error[TAILOR_LOAD_ERROR_BYTES] = "no memory for the results";
	struct tailor_load_result total;
	struct outputs outputs;
	int result = TAILOR_EXIT_FAILED;
	int ret;

	if (open_outputs(arguments, &outputs) < 0)
		return TAILOR_EXIT_USAGE;
	load->on_interval = on_interval;
	load->context = &outputs;
	if (outputs.printer.refresh) {
		load->on_tick = on_tick;
		load->tick_ns = TICK_NS;
	}
	ret = tailor_load_result_init(&total);
	if (ret == 0) {
		tailor_load_print_header(&outputs.printer, arguments->url);
		ret = tailor_load_run(load, &total, error);
	}
	if (ret < 0)
		fprintf(stderr, "tailor load: %s\n", error);
	if (close_outputs(arguments, &outputs) < 0 || ret < 0)
		goto end;
	if (print_report(arguments, &total) == 0 && !is_failure(arguments, &total))
		result = TAILOR_EXIT_DONE;
end:
	tailor_load_result_free(&total);
	return result;
}

int tailor_command_load(int argc, char **argv)
{
	struct load_arguments arguments;
	cleanup_free char *body = NULL;
	struct tailor_load_plan plan = {0};
	int result = TAILOR_EXIT_USAGE;

	load_parse_arguments(argc, argv, &arguments);
	if (arguments.body_file && read_body(arguments.body_file, &body, &arguments.common.body_bytes) < 0)
		return TAILOR_EXIT_USAGE;
	if (body)
		arguments.common.body = body;
	arguments.options.plan = &plan;
	if (raise_file_limit(&arguments.options) == 0 && make_plan(&arguments, &plan) == 0)
		result = run_load(&arguments);
	tailor_load_plan_free(&plan);
	return result;
}
