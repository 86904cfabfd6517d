/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tailor/event_names.h>
#include <tailor/timeline_names.h>
#include <time.h>

#include "base/units.h"
#include "report/report.h"

#define BAR_CELLS 16
#define STORY_COLUMN 50 /* where cause, thread and detail begin */
#define STORY_COLUMNS (TAILOR_REPORT_COLUMNS - STORY_COLUMN)
#define SHORT_NS 50000
#define SHORT_SHARE 200 /* one in this many: 0.5% */
#define CAUSES_SHOWN 4

static uint64_t latency_of(const struct tailor_timeline *timeline)
{
	return timeline->request.end_ns - timeline->request.begin_ns;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *duration(char buffer[32], uint64_t ns)
{
	return tailor_format_duration(buffer, 32, ns);
}

static void print_time(FILE *out, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / UINT64_C(1000000000));
	char text[64];
	struct tm utc;

	if (wall_ns == 0 || !gmtime_r(&seconds, &utc)) {
		fputs("at an unknown time", out);
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
	fprintf(out, "%s.%06u UTC", text, (unsigned int)(wall_ns % UINT64_C(1000000000) / 1000));
}

/* "failed over from a (gc)"; the name of the server that was left is with its span. */
static void print_failover(FILE *out, const struct tailor_timeline *timeline)
{
	char name[4 * TAILOR_SERVER_NAME_BYTES];

	if (timeline->request.failover == TAILOR_FAILOVER_NONE)
		return;
	fputs("  moved       failed over", out);
	for (size_t i = 0; i < timeline->span_count; i++) {
		if (timeline->spans[i].cause != TAILOR_CAUSE_FAILOVER_WAIT || !timeline->spans[i].thread[0])
			continue;
		tailor_report_printable(name, sizeof(name), timeline->spans[i].thread, TAILOR_SERVER_NAME_BYTES);
		fprintf(out, " from %s", name);
		break;
	}
	fprintf(out, " (%s)\n", tailor_failover_reason_name((enum tailor_failover_reason)timeline->request.failover));
}

static void print_head(FILE *out, const struct tailor_timeline *timeline)
{
	const struct tailor_request *request = &timeline->request;
	char target[TAILOR_REPORT_COLUMNS * 4], server[4 * TAILOR_SERVER_NAME_BYTES], buffer[32];

	fprintf(out, "request %016" PRIx64 "  ", request->id);
	print_time(out, request->wall_ns);
	fprintf(out, "%s\n", timeline->kept == TAILOR_KEPT_BASELINE ? "  (ordinary, kept to compare with)" : "");
	tailor_report_printable(target, sizeof(target), request->target, TAILOR_REPORT_COLUMNS - 2);
	fprintf(out, "  %s\n", target[0] ? target : "(no request line)");
	tailor_report_printable(server, sizeof(server), request->server, 24);
	fprintf(out, "  status %u", request->status);
	if (server[0])
		fprintf(out, " from %s", server);
	fprintf(out, ", %" PRIu64 " bytes", request->response_bytes);
	if (request->end != TAILOR_REQUEST_END_DONE)
		fprintf(out, ", %s", tailor_request_end_name((enum tailor_request_end)request->end));
	fprintf(out, "\n\n  client saw  %s\n", duration(buffer, latency_of(timeline)));
	fprintf(out, "  server saw  %s\n", timeline->server_ns ? duration(buffer, timeline->server_ns) : "unknown");
	fprintf(out, "  because of  %s, %s (%.1f%%)\n", tailor_cause_name(timeline->dominant),
	        duration(buffer, timeline->dominant_ns), percent(timeline->dominant_ns, latency_of(timeline)));
}

/* The other causes, largest first. */
static void print_also(FILE *out, const struct tailor_timeline *timeline)
{
	uint64_t sums[TAILOR_CAUSES] = {0};
	const char *separator = "  then        ";
	char buffer[32], item[80];
	size_t columns = 0;

	for (size_t i = 0; i < timeline->span_count; i++)
		sums[timeline->spans[i].cause] += timeline->spans[i].end_ns - timeline->spans[i].start_ns;
	sums[timeline->dominant] = 0;
	for (int shown = 0; shown < CAUSES_SHOWN - 1; shown++) {
		int best = 0;

		for (int cause = 1; cause < TAILOR_CAUSES; cause++) {
			if (sums[cause] > sums[best])
				best = cause;
		}
		if (sums[best] == 0 || percent(sums[best], latency_of(timeline)) < 0.5)
			break;
		snprintf(item, sizeof(item), "%s%s %s", separator, tailor_cause_name((enum tailor_cause)best),
		         duration(buffer, sums[best]));
		columns += strlen(item);
		if (columns > TAILOR_REPORT_COLUMNS)
			break;
		fputs(item, out);
		separator = ", ";
		sums[best] = 0;
	}
	if (separator[0] == ',')
		fputc('\n', out);
}

static void print_completeness(FILE *out, const struct tailor_timeline *timeline)
{
	char channel[4 * sizeof(timeline->losses->channel)];
	int complete = 1;

	fprintf(out, "  thread      joined to the request: %s\n", tailor_join_name(timeline->join));
	for (uint32_t bit = 1; bit < 1 << TAILOR_MISSING_BITS; bit <<= 1) {
		if (!(timeline->missing & bit))
			continue;
		fprintf(out, "  missing     %s\n", tailor_missing_name((enum tailor_missing)bit));
		complete = 0;
	}
	for (size_t i = 0; i < timeline->loss_count && i < 8; i++) {
		tailor_report_printable(channel, sizeof(channel), timeline->losses[i].channel, 24);
		fprintf(out, "  lost        %" PRIu64 " event%s of %s\n", timeline->losses[i].events,
		        timeline->losses[i].events == 1 ? "" : "s", channel);
		complete = 0;
	}
	if (timeline->loss_count > 8)
		fprintf(out, "  lost        events of %zu more channels or gaps\n", timeline->loss_count - 8);
	if (complete)
		fputs("  complete    nothing is missing, nothing was lost\n", out);
}

/* Where the span lies in the request: at least one cell. */
static void print_bar(FILE *out, uint64_t offset_ns, uint64_t length_ns, uint64_t whole_ns)
{
	unsigned int first = 0, last = 0;

	if (whole_ns) {
		first = (unsigned int)((double)offset_ns / (double)whole_ns * BAR_CELLS);
		last = (unsigned int)((double)(offset_ns + length_ns) / (double)whole_ns * BAR_CELLS);
	}
	first = first < BAR_CELLS ? first : BAR_CELLS - 1;
	last = last > first ? last : first + 1;
	for (unsigned int cell = 0; cell < BAR_CELLS; cell++)
		fputs(cell >= first && cell < last ? "█" : "·", out);
}

static void print_columns(FILE *out, const struct tailor_timeline *timeline, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t offset = start_ns - timeline->request.begin_ns;
	char first[32], second[32];

	fprintf(out, "  %9s  %9s  %5.1f%%  ", duration(first, offset), duration(second, end_ns - start_ns),
	        percent(end_ns - start_ns, latency_of(timeline)));
	print_bar(out, offset, end_ns - start_ns, latency_of(timeline));
	fputs("  ", out);
}

/* The detail on lines of its own, broken at spaces. */
static void print_detail(FILE *out, const char *printable)
{
	const char *rest = printable;

	while (*rest) {
		size_t bytes = 0, columns = 0, space = 0;

		while (rest[bytes] && columns < STORY_COLUMNS - 2) {
			if (rest[bytes] == ' ')
				space = bytes;
			do
				bytes++;
			while (((unsigned char)rest[bytes] & 0xc0) == 0x80);
			columns++;
		}
		if (rest[bytes] && rest[bytes] != ' ' && space > 0)
			bytes = space;
		fprintf(out, "%*s%.*s\n", STORY_COLUMN + 2, "", (int)bytes, rest);
		rest += bytes;
		rest += strspn(rest, " ");
	}
}

static void print_span(FILE *out, const struct tailor_timeline *timeline, const struct tailor_span *span)
{
	const char *cause = tailor_cause_name(span->cause);
	char thread[4 * TAILOR_THREAD_NAME_BYTES], detail[4 * TAILOR_DETAIL_BYTES], number[32] = "";
	size_t used = strlen(cause), width;

	print_columns(out, timeline, span->start_ns, span->end_ns);
	fputs(cause, out);
	if (span->tid)
		snprintf(number, sizeof(number), "%s%u", span->thread[0] ? " " : "thread ", span->tid);
	if (span->thread[0] || span->tid) {
		used += 2 + strlen(number);
		used += tailor_report_printable(thread, sizeof(thread), span->thread, STORY_COLUMNS - used);
		fprintf(out, ", %s%s", thread, number);
	}
	/* Beside the cause where there is room, else below it. */
	width = tailor_report_printable(detail, sizeof(detail), span->detail, sizeof(detail));
	if (width > 0 && used + 3 + width <= STORY_COLUMNS)
		fprintf(out, " (%s)", detail);
	fputc('\n', out);
	if (used + 3 + width > STORY_COLUMNS)
		print_detail(out, detail);
}

static int is_short(const struct tailor_timeline *timeline, const struct tailor_span *span)
{
	uint64_t length = span->end_ns - span->start_ns;

	return length < SHORT_NS && length < latency_of(timeline) / SHORT_SHARE;
}

void tailor_report_text(FILE *out, const struct tailor_timeline *timeline)
{
	char buffer[32];

	print_head(out, timeline);
	print_also(out, timeline);
	print_failover(out, timeline);
	print_completeness(out, timeline);
	fputs("\n     offset   duration   share\n", out);
	for (size_t i = 0, next; i < timeline->span_count; i = next) {
		for (next = i; next < timeline->span_count && is_short(timeline, &timeline->spans[next]); next++)
			;
		if (next - i < 2) {
			print_span(out, timeline, &timeline->spans[i]);
			next = i + 1;
			continue;
		}
		print_columns(out, timeline, timeline->spans[i].start_ns, timeline->spans[next - 1].end_ns);
		fprintf(out, "(%zu shorter spans)\n", next - i);
	}
	fprintf(out, "  %9s  %9s  100.0%%\n", "total", duration(buffer, latency_of(timeline)));
}
