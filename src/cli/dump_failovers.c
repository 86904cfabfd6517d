/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dump_failovers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dump_sums.h"
#include "report/report.h"

struct list {
	struct tailor_failover *failovers;
	size_t count;
	size_t capacity;
	uint64_t read; /* others are before --since */
};

static int keep(struct list *list, const struct tailor_failover *failover)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 64;
		struct tailor_failover *more = reallocarray(list->failovers, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->failovers = more;
		list->capacity = capacity;
	}
	list->failovers[list->count++] = *failover;
	return 0;
}

static int read_failovers(const struct dump_filter *filter, const char *path, struct list *list)
{
	struct tailor_store_reader *reader;
	struct tailor_failover failover;
	int got = dump_filter_open(filter, path, &reader);

	if (got)
		return got;
	while ((got = tailor_store_next_failover(reader, &failover)) == 1) {
		list->read++;
		got = failover.wall_ns >= filter->since_ns ? keep(list, &failover) : 0;
		if (got)
			break;
	}
	dump_filter_damage(filter, reader, path);
	tailor_store_reader_close(reader);
	if (got < 0)
		fprintf(stderr, "%s: cannot read %s: %s\n", filter->command, path, strerror(-got));
	return got;
}

static int by_time(const void *a, const void *b)
{
	const struct tailor_failover *left = a, *right = b;

	if (left->wall_ns != right->wall_ns)
		return left->wall_ns < right->wall_ns ? -1 : 1;
	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

static void tell_none(const struct dump_filter *filter, const char *path, const struct list *list)
{
	if (list->read > 0)
		fprintf(stderr, "%s: none of the %" PRIu64 " failovers in %s is since then; leave out --since to see more\n", filter->command,
		        list->read, path);
	else
		fprintf(stderr, "%s: there is no failover in %s: no server stood still with requests in flight there, as far as the proxy noticed\n",
		        filter->command, path);
}

int dump_failovers(const struct dump_filter *filter, const char *path, int json)
{
	struct list list = {0};
	int status = TAILOR_EXIT_FAILED;

	if (read_failovers(filter, path, &list) == 0) {
		if (list.count > 0)
			qsort(list.failovers, list.count, sizeof(*list.failovers), by_time);
		else
			tell_none(filter, path, &list);
		/* As `dump --json`: a program that reads JSON gets some, also when there is nothing in it. */
		if (list.count > 0)
			status = dump_written(filter, tailor_report_failovers(stdout, list.failovers, list.count, json));
		else if (json)
			dump_written(filter, tailor_report_failovers(stdout, NULL, 0, json));
	}
	free(list.failovers);
	return status;
}
