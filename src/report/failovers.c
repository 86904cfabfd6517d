/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/stop_names.h>
#include <time.h>

#include "base/units.h"
#include "report/report.h"

#define SERVER_COLUMNS_MAX 16
#define STOP_COLUMNS_MAX 32
#define NOT_MOVED_COLUMNS_MAX 20

/* A cell of a table: what is in it may be of more bytes than columns. */
struct cell {
	char text[160];
	size_t columns;
};

static const char *duration(char buffer[32], uint64_t ns)
{
	return tailor_format_duration(buffer, 32, ns);
}

static void fill(struct cell *cell, const char *text, size_t columns_max)
{
	cell->columns = tailor_report_printable(cell->text, sizeof(cell->text), text, columns_max);
}

/* "gc: Allocation Failure"; without a cause "stall". */
static void fill_stop(struct cell *cell, const struct tailor_failover *failover)
{
	char text[sizeof(failover->cause) + 32];

	snprintf(text, sizeof(text), "%s%s%s", tailor_stop_kind_name(failover->kind), failover->cause[0] ? ": " : "", failover->cause);
	fill(cell, text, STOP_COLUMNS_MAX);
}

/* "3 begun": as many, for the most part for that reason. */
static void fill_not_moved(struct cell *cell, const struct tailor_failover *failover)
{
	char text[sizeof(failover->why_not) + 16];

	snprintf(text, sizeof(text), "%" PRIu32 "%s%s", failover->not_moved, failover->why_not[0] ? " " : "", failover->why_not);
	fill(cell, failover->not_moved ? text : "-", NOT_MOVED_COLUMNS_MAX);
}

struct widths {
	size_t server, stop, not_moved;
};

static size_t wider(size_t width, const struct cell *cell)
{
	return cell->columns > width ? cell->columns : width;
}

static struct widths widths_of(const struct tailor_failover *failovers, size_t count)
{
	struct widths widths = {.server = strlen("server"), .stop = strlen("stop"), .not_moved = strlen("not moved")};
	struct cell cell;

	for (size_t i = 0; i < count; i++) {
		fill(&cell, failovers[i].server, SERVER_COLUMNS_MAX);
		widths.server = wider(widths.server, &cell);
		fill_stop(&cell, &failovers[i]);
		widths.stop = wider(widths.stop, &cell);
		fill_not_moved(&cell, &failovers[i]);
		widths.not_moved = wider(widths.not_moved, &cell);
	}
	return widths;
}

static void print_cell(FILE *out, const struct cell *cell, size_t columns)
{
	fprintf(out, "  %s%*s", cell->text, (int)(columns - cell->columns), "");
}

static void print_when(FILE *out, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / UINT64_C(1000000000));
	char text[64];
	struct tm utc;

	if (wall_ns == 0 || !gmtime_r(&seconds, &utc)) {
		fprintf(out, "%-23s", "at an unknown time");
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
	fprintf(out, "%s.%03u", text, (unsigned int)(wall_ns % UINT64_C(1000000000) / 1000000));
}

/* "~1.20 s", "~0" where something was moved and nothing saved; "-" where there was nothing to save. */
static const char *saved(char buffer[40], const struct tailor_failover *failover)
{
	char text[32];

	if (failover->moved == 0 || failover->kind == TAILOR_STOP_GONE)
		return "-";
	snprintf(buffer, 40, "~%s", failover->saved_ns ? duration(text, failover->saved_ns) : "0");
	return buffer;
}

/* Those that came while it stood still may be more than were there when it was noticed. */
static uint64_t met(const struct tailor_failover *failover)
{
	uint64_t judged = (uint64_t)failover->moved + failover->not_moved;

	return judged > failover->in_flight ? judged : failover->in_flight;
}

/* A stop is over when the first worker knows it: one that did not know yet may have moved a request after that. */
static int is_late(const struct tailor_failover *failover)
{
	return failover->reacted_ns > failover->end_ns - failover->begin_ns;
}

static void print_line(FILE *out, const struct tailor_failover *failover, const struct widths *widths)
{
	char moved[32], react[32], length[32], buffer[40];
	struct cell cell;

	print_when(out, failover->wall_ns);
	fill(&cell, failover->server, SERVER_COLUMNS_MAX);
	print_cell(out, &cell, widths->server);
	fill_stop(&cell, failover);
	print_cell(out, &cell, widths->stop);
	snprintf(moved, sizeof(moved), "%" PRIu32 " of %" PRIu64, failover->moved, met(failover));
	fprintf(out, "  %10s", moved);
	fill_not_moved(&cell, failover);
	print_cell(out, &cell, widths->not_moved);
	fprintf(out, "  %7s%c %7s  %8s%s\n", failover->reacted_ns ? duration(react, failover->reacted_ns) : "-", is_late(failover) ? '*' : ' ',
	        duration(length, failover->end_ns - failover->begin_ns), saved(buffer, failover), failover->incomplete ? "+" : "");
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* The value at or below which so many of 1000 lie. */
static uint64_t part_of(const uint64_t *sorted, size_t count, size_t part)
{
	size_t rank = (count * part + 999) / 1000;

	return sorted[rank > 0 ? rank - 1 : 0];
}

static void print_reactions(FILE *out, uint64_t *reacted_ns, size_t count)
{
	char half[32], most[32], max[32];

	if (count == 0)
		return;
	qsort(reacted_ns, count, sizeof(*reacted_ns), by_value);
	fprintf(out, "time to react: half of them within %s, 99%% within %s, all within %s\n", duration(half, part_of(reacted_ns, count, 500)),
	        duration(most, part_of(reacted_ns, count, 990)), duration(max, reacted_ns[count - 1]));
}

static int print_sums(FILE *out, const struct tailor_failover *failovers, size_t count)
{
	uint64_t *reacted_ns = calloc(count + 1, sizeof(*reacted_ns)), moved = 0, not_moved = 0, saved_ns = 0, incomplete = 0, omitted = 0, late = 0;
	size_t reacted = 0;
	char text[32];

	if (!reacted_ns)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		moved += failovers[i].moved;
		not_moved += failovers[i].not_moved;
		saved_ns += failovers[i].saved_ns;
		incomplete += failovers[i].incomplete;
		late += (uint64_t)is_late(&failovers[i]);
		omitted += failovers[i].omitted;
		if (failovers[i].reacted_ns)
			reacted_ns[reacted++] = failovers[i].reacted_ns;
	}
	fprintf(out, "\n%zu failover%s, %" PRIu64 " request%s moved, %" PRIu64 " not; about %s of waiting saved\n", count,
	        count == 1 ? "" : "s", moved, moved == 1 ? "" : "s", not_moved, duration(text, saved_ns));
	if (omitted)
		fprintf(out, "%" PRIu64 " more were only counted: too many came, or they could not be written\n", omitted);
	print_reactions(out, reacted_ns, reacted);
	free(reacted_ns);
	fputs("\nreact: from the stop's begin until the last moved request's bytes were handed to the kernel; saved: an estimate,\n"
	      "from below: by how much the moved requests were answered before the stop's end, in sum\n",
	      out);
	if (late)
		fputs("*: the last of them left after the stop's end: its worker did not know of that yet, or the server had stopped again, and it\n"
		      "counts for the first of these stops\n",
		      out);
	if (incomplete)
		fputs("+: the proxy's own events were lost meanwhile; there may have been more\n", out);
	return 0;
}

static int print_text(FILE *out, const struct tailor_failover *failovers, size_t count)
{
	struct widths widths = widths_of(failovers, count);

	fprintf(out, "%-23s  %-*s  %-*s  %10s  %-*s  %7s  %7s  %8s\n", "when (UTC)", (int)widths.server, "server", (int)widths.stop, "stop",
	        "moved", (int)widths.not_moved, "not moved", "react", "length", "saved");
	for (size_t i = 0; i < count; i++)
		print_line(out, &failovers[i], &widths);
	return print_sums(out, failovers, count);
}

/* JSON integers are signed here; a time beyond that is damage and is shown as the largest. */
static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)(value < INT64_MAX ? value : INT64_MAX));
}

static json_t *text_json(const char *value)
{
	char buffer[256];

	return json_string(tailor_report_utf8(buffer, sizeof(buffer), value));
}

static json_t *failover_json(const struct tailor_failover *failover)
{
	int nothing = failover->moved == 0 || failover->kind == TAILOR_STOP_GONE;

	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:b, s:o}", "wall_ns",
	                 number(failover->wall_ns), "begin_ns", number(failover->begin_ns), "length_ns",
	                 number(failover->end_ns - failover->begin_ns), "server", text_json(failover->server), "kind",
	                 tailor_stop_kind_name(failover->kind), "noticed_as", tailor_stop_kind_name(failover->noticed), "cause",
	                 failover->cause[0] ? text_json(failover->cause) : json_null(), "workers", (json_int_t)failover->workers, "in_flight",
	                 (json_int_t)failover->in_flight, "moved", (json_int_t)failover->moved, "not_moved", (json_int_t)failover->not_moved,
	                 "why_not", failover->why_not[0] ? text_json(failover->why_not) : json_null(), "noticed_ns",
	                 number(failover->noticed_ns), "reacted_ns", failover->reacted_ns ? number(failover->reacted_ns) : json_null(),
	                 "saved_estimate_ns", nothing ? json_null() : number(failover->saved_ns), "saved_requests",
	                 (json_int_t)failover->saved_requests, "incomplete", failover->incomplete, "omitted", number(failover->omitted));
}

static int print_json(FILE *out, const struct tailor_failover *failovers, size_t count)
{
	json_t *list = json_array(), *root = json_object();
	char *dump = NULL;

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(list, failover_json(&failovers[i])) != 0) {
			json_decref(list);
			list = NULL;
			break;
		}
	}
	if (list && json_object_set_new(root, "failovers", list) == 0)
		dump = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (!dump)
		return -ENOMEM;
	fprintf(out, "%s\n", dump);
	free(dump);
	return 0;
}

int tailor_report_failovers(FILE *out, const struct tailor_failover *failovers, size_t count, int json)
{
	return json ? print_json(out, failovers, count) : print_text(out, failovers, count);
}
