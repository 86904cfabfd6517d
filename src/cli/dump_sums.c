/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dump_sums.h"
#include "report/summary.h"

int dump_written(const struct dump_filter *filter, int error)
{
	/* The stream keeps that a write failed, not with what: errno of the last one that did is the best there is. */
	if (!error && (fflush(stdout) != 0 || ferror(stdout)))
		error = errno ? -errno : -EIO;
	if (!error)
		return TAILOR_EXIT_DONE;
	fprintf(stderr, "%s: cannot write the output: %s\n", filter->command, strerror(-error));
	return TAILOR_EXIT_FAILED;
}

static int take_summary(void *context, struct tailor_timeline *timeline, int wanted)
{
	return wanted ? tailor_summary_add(context, timeline) : 0;
}

static int read_summary(const struct dump_filter *filter, const char *path, struct tailor_summary *summary)
{
	struct dump_found found;
	int error = dump_filter_read(filter, path, take_summary, summary, &found);

	summary->left_out = found.read - found.wanted;
	summary->omitted = found.omitted;
	if (error)
		return error;
	if (filter->slowest)
		tailor_summary_cut(summary, filter->slowest);
	return 0;
}

int dump_by_cause(const struct dump_filter *filter, const char *path, int json)
{
	struct tailor_summary summary = {0};
	int error = read_summary(filter, path, &summary), status = TAILOR_EXIT_FAILED;

	if (!error)
		status = dump_written(filter, tailor_report_by_cause(stdout, &summary, json));
	else if (error == -ENODATA && json)
		/* As `dump --json`: a program that reads JSON gets some, also when there is nothing in it. */
		dump_written(filter, tailor_report_by_cause(stdout, &summary, json));
	tailor_summary_free(&summary);
	return status;
}

int dump_compare(const struct dump_filter *filter, const char *path_a, const char *path_b, int json)
{
	struct tailor_summary a = {0}, b = {0};
	int status = TAILOR_EXIT_FAILED, error = read_summary(filter, path_a, &a);
	/* A program that reads JSON gets some, also of a store with nothing in it. */
	int empty_too = json ? -ENODATA : 0;

	if (!error || error == empty_too)
		error = read_summary(filter, path_b, &b) ?: error;
	if (!error || error == empty_too) {
		int written = dump_written(filter, tailor_report_compare(stdout, path_a, &a, path_b, &b, json));

		status = error ? TAILOR_EXIT_FAILED : written;
	}
	tailor_summary_free(&a);
	tailor_summary_free(&b);
	return status;
}

static int take_what_if(void *context, struct tailor_timeline *timeline, int wanted)
{
	return tailor_what_if_add(context, timeline, wanted);
}

int dump_what_if(const struct dump_filter *filter, const char *path, enum tailor_cause cause, int json)
{
	struct tailor_what_if what_if = {.cause = cause};
	struct dump_found found;
	int error = dump_filter_read(filter, path, take_what_if, &what_if, &found), status = TAILOR_EXIT_FAILED;

	what_if.left_out = found.read - found.wanted;
	what_if.omitted = found.omitted;
	if (!error)
		status = dump_written(filter, tailor_report_what_if(stdout, &what_if, filter->slowest, json));
	else if (error == -ENODATA && json)
		dump_written(filter, tailor_report_what_if(stdout, &what_if, filter->slowest, json));
	tailor_what_if_free(&what_if);
	return status;
}
