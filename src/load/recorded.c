/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/moment.h"
#include "load/load.h"
#include "load/text_file.h"

/* Since 1970, in 2286. No log is as late; and nanoseconds would not hold much more. */
#define SECONDS_MAX 10000000000

/* One line of the log; points into it. */
struct log_line {
	uint64_t time_ns;
	const char *method, *path, *body; /* body may be NULL */
	bool whole_second;
};

/* A request that the plan holds already; its text is the key. */
struct known {
	char *text;
	uint32_t request;
};

struct reader {
	struct tailor_load_plan *plan;
	const struct tailor_load_common *common;
	void *known; /* tree of struct known */
	size_t room;
	bool whole_seconds; /* so far, all times are */
};

static int compare_known(const void *one, const void *other)
{
	return strcmp(((const struct known *)one)->text, ((const struct known *)other)->text);
}

static void free_known(void *pointer)
{
	struct known *known = pointer;

	free(known->text);
	free(known);
}

/* `... [10/Oct/2000:13:55:36 -0700] "GET /path HTTP/1.1" ...`. Returns 0, -EINVAL (another format), or -ENOMSG (no request). */
static int parse_common(char *line, struct log_line *entry)
{
	char *time = strchr(line, '['), *request, *end, *space;
	struct tm local = {0};
	int64_t seconds, offset;

	if (!time)
		return -EINVAL;
	request = strptime(time + 1, "%d/%b/%Y:%H:%M:%S %z", &local);
	if (!request || strncmp(request, "] \"", 3) != 0)
		return -EINVAL;
	offset = local.tm_gmtoff; /* timegm() sets it to 0 */
	seconds = (int64_t)timegm(&local) - offset;
	request += 3;
	end = strchr(request, '"');
	if (seconds < 0 || seconds > SECONDS_MAX || !end)
		return -EINVAL;
	*end = '\0';
	entry->time_ns = (uint64_t)seconds * TAILOR_NS_PER_S;
	entry->whole_second = true;
	entry->method = request;
	space = strchr(request, ' ');
	if (!space || space[1] != '/')
		return -ENOMSG;
	*space = '\0';
	entry->path = space + 1;
	space = strchr(space + 1, ' ');
	if (!space)
		return -ENOMSG;
	*space = '\0';
	return 0;
}

static int parse_time(const char *text, struct log_line *entry)
{
	double seconds, whole;
	char *end;

	if (strchr(text, 'T'))
		return tailor_parse_moment(text, &entry->time_ns) < 0 || entry->time_ns / TAILOR_NS_PER_S > SECONDS_MAX ? -EINVAL : 0;
	if (text[0] < '0' || text[0] > '9' || strspn(text, "0123456789.") != strlen(text))
		return -EINVAL;
	seconds = strtod(text, &end);
	if (*end || seconds > (double)SECONDS_MAX)
		return -EINVAL;
	/* Apart: a double can't hold the nanoseconds of a time since 1970. */
	modf(seconds, &whole);
	entry->time_ns = (uint64_t)whole * TAILOR_NS_PER_S;
	end = strchr(text, '.');
	if (end)
		entry->time_ns += (uint64_t)llround(strtod(end, NULL) * 1e9);
	return 0;
}

/* `TIME METHOD /path [body]` */
static int parse_plain(char *line, struct log_line *entry)
{
	char *method = strchr(line, ' '), *path, *body;

	path = method ? strchr(method + 1, ' ') : NULL;
	if (!path || path[1] != '/')
		return -EINVAL;
	*method++ = '\0';
	*path++ = '\0';
	body = strchr(path, ' ');
	if (body)
		*body++ = '\0';
	entry->method = method;
	entry->path = path;
	entry->body = body;
	if (parse_time(line, entry) < 0)
		return -EINVAL;
	entry->whole_second = entry->time_ns % TAILOR_NS_PER_S == 0;
	return 0;
}

/* Finds the request in the plan, or appends it. */
static int find_request(struct reader *reader, const struct log_line *entry, uint32_t *ret_request,
                        char error[TAILOR_LOAD_ERROR_BYTES])
{
	struct known *known = calloc(1, sizeof(*known)), **found;
	int ret;

	if (!known)
		return -ENOMEM;
	if (asprintf(&known->text, "%s %s %s", entry->method, entry->path, entry->body ? entry->body : "") < 0) {
		free(known);
		return -ENOMEM;
	}
	known->request = (uint32_t)reader->plan->count;
	found = tsearch(known, &reader->known, compare_known);
	if (!found) {
		free_known(known);
		return -ENOMEM;
	}
	if (*found != known) {
		*ret_request = (*found)->request;
		free_known(known);
		return 0;
	}
	ret = tailor_load_plan_add(reader->plan, reader->common, entry->method, entry->path, entry->body, error);
	if (ret < 0) {
		tdelete(known, &reader->known, compare_known);
		free_known(known);
		return ret;
	}
	*ret_request = known->request;
	return 0;
}

/* offset_ns is the time itself until all are known. */
static int append(struct reader *reader, uint64_t time_ns, uint32_t request)
{
	struct tailor_load_plan *plan = reader->plan;
	struct tailor_load_recorded *recorded;

	recorded = load_array_grow(plan->recorded, plan->recorded_count, &reader->room, sizeof(*plan->recorded));
	if (!recorded)
		return -ENOMEM;
	plan->recorded = recorded;
	plan->recorded[plan->recorded_count] =
	        (struct tailor_load_recorded){time_ns, request, (uint32_t)plan->recorded_count};
	plan->recorded_count++;
	return 0;
}

static int take_line(void *context, char *line, char error[TAILOR_LOAD_ERROR_BYTES])
{
	struct reader *reader = context;
	struct log_line entry = {0};
	uint32_t request;
	bool common;
	int ret = parse_common(line, &entry);

	common = ret != -EINVAL;
	if (!common && parse_plain(line, &entry) < 0) {
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "a line is of an access log in common log format, or \"TIME METHOD /path [body]\", not \"%.100s\"", line);
		return -EINVAL;
	}
	if (ret == 0 || !common)
		ret = find_request(reader, &entry, &request, error);
	if (common && (ret == -ENOMSG || ret == -EINVAL)) {
		reader->plan->recorded_skipped++;
		return 0;
	}
	if (ret == 0)
		ret = append(reader, entry.time_ns, request);
	if (!entry.whole_second)
		reader->whole_seconds = false;
	return ret;
}

static int compare_times(const void *one, const void *other)
{
	const struct tailor_load_recorded *a = one, *b = other;

	if (a->offset_ns != b->offset_ns)
		return a->offset_ns < b->offset_ns ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Logs are written when requests end: they come nearly, not quite, in order. */
static void order(struct reader *reader)
{
	struct tailor_load_recorded *recorded = reader->plan->recorded;
	size_t count = reader->plan->recorded_count;
	uint64_t first_ns;

	qsort(recorded, count, sizeof(*recorded), compare_times);
	for (size_t begin = 0, end; reader->whole_seconds && begin < count; begin = end) {
		for (end = begin + 1; end < count && recorded[end].offset_ns == recorded[begin].offset_ns; end++)
			;
		for (size_t i = end; i-- > begin;)
			recorded[i].offset_ns += (i - begin) * TAILOR_NS_PER_S / (end - begin);
	}
	first_ns = recorded[0].offset_ns;
	for (size_t i = 0; i < count; i++)
		recorded[i].offset_ns -= first_ns;
}

int tailor_load_plan_record(struct tailor_load_plan *plan, const struct tailor_load_common *common,
                            const char *file_name, char error[TAILOR_LOAD_ERROR_BYTES])
{
	struct reader reader = {.plan = plan, .common = common, .whole_seconds = true};
	int ret = load_read_lines(file_name, "give a readable log to --replay", take_line, &reader, error);

	tdestroy(reader.known, free_known);
	if (ret == 0 && plan->recorded_count == 0) {
		ret = -EINVAL;
		snprintf(error, TAILOR_LOAD_ERROR_BYTES,
		         "%.200s holds no request; give an access log in common log format, or \"TIME METHOD /path [body]\" a line",
		         file_name);
	}
	if (ret == 0)
		order(&reader);
	return ret;
}
