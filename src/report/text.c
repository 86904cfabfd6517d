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
#define SMALL_SHARE 40 /* many of less than 2.5% share a line, too */
#define SMALL_RUN 12
#define CAUSES_SHOWN 4
#define INDENT 2

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

/* "failed over from a (gc)"; the name of the server that was left is with its span: of several, the last, as the reason is. */
static void print_failover(FILE *out, const struct tailor_timeline *timeline)
{
	char name[4 * TAILOR_SERVER_NAME_BYTES];

	if (timeline->request.failover == TAILOR_FAILOVER_NONE)
		return;
	fputs("  moved       failed over", out);
	for (size_t i = timeline->span_count; i-- > 0;) {
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

/* The window of a request is longer than the request. */
static const char *beside(const struct tailor_timeline *timeline, const struct tailor_loss *loss)
{
	if (loss->to_ns <= timeline->request.begin_ns)
		return ", before the request";
	return loss->from_ns >= timeline->request.end_ns ? ", after the request" : "";
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
		fprintf(out, "  lost        %" PRIu64 " event%s of %s%s\n", timeline->losses[i].events,
		        timeline->losses[i].events == 1 ? "" : "s", channel, beside(timeline, &timeline->losses[i]));
		complete = 0;
	}
	if (timeline->loss_count > 8)
		fprintf(out, "  lost        events of %zu more channels or gaps\n", timeline->loss_count - 8);
	/* Where no event was lost, none is missing from any part. */
	if (timeline->complete < 1000 && (timeline->missing & TAILOR_MISSING_EVENTS || timeline->loss_count > 0))
		fprintf(out, "  complete    %u of 1000 parts; in the rest a channel that it needs had losses\n",
		        timeline->complete);
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

static void print_columns(FILE *out, const struct tailor_timeline *timeline, uint64_t start_ns, uint64_t end_ns,
                          unsigned int indent)
{
	uint64_t offset = start_ns - timeline->request.begin_ns;
	char first[32], second[32];

	fprintf(out, "  %9s  %9s  %5.1f%%  ", duration(first, offset), duration(second, end_ns - start_ns),
	        percent(end_ns - start_ns, latency_of(timeline)));
	print_bar(out, offset, end_ns - start_ns, latency_of(timeline));
	fprintf(out, "%*s", 2 + (int)indent, "");
}

/* The detail on lines of its own, broken at spaces. */
static void print_detail(FILE *out, const char *printable, unsigned int indent)
{
	const char *rest = printable;

	while (*rest) {
		size_t bytes = 0, columns = 0, space = 0;

		while (rest[bytes]) {
			size_t takes, length = tailor_report_character(rest + bytes, &takes);

			if (columns + takes > STORY_COLUMNS - 2 - indent)
				break;
			if (rest[bytes] == ' ')
				space = bytes;
			bytes += length;
			columns += takes;
		}
		if (rest[bytes] && rest[bytes] != ' ' && space > 0)
			bytes = space;
		fprintf(out, "%*s%.*s\n", STORY_COLUMN + 2 + (int)indent, "", (int)bytes, rest);
		rest += bytes;
		rest += strspn(rest, " ");
	}
}

/* Prints one; `known` is the thread that the line above named, 0 none. */
static void print_span(FILE *out, const struct tailor_timeline *timeline, const struct tailor_span *span, uint32_t known,
                       unsigned int indent)
{
	const char *cause = tailor_cause_name(span->cause);
	char thread[4 * TAILOR_THREAD_NAME_BYTES], detail[4 * TAILOR_DETAIL_BYTES], number[32] = "";
	size_t used = strlen(cause), width, columns = STORY_COLUMNS - indent;

	print_columns(out, timeline, span->start_ns, span->end_ns, indent);
	fputs(cause, out);
	if (span->tid)
		snprintf(number, sizeof(number), "%s%u", span->thread[0] ? " " : "thread ", span->tid);
	/* No kernel gives such numbers, but a damaged store may. */
	if (used + 2 + strlen(number) > columns)
		number[0] = '\0';
	if ((span->thread[0] || number[0]) && (span->tid == 0 || span->tid != known)) {
		used += 2 + strlen(number);
		used += tailor_report_printable(thread, sizeof(thread), span->thread, columns - used);
		fprintf(out, ", %s%s", thread, number);
	}
	/* Beside the cause where there is room, else below it. */
	width = tailor_report_printable(detail, sizeof(detail), span->detail, sizeof(detail));
	if (width > 0 && used + 3 + width <= columns)
		fprintf(out, " (%s)", detail);
	fputc('\n', out);
	if (used + 3 + width > columns)
		print_detail(out, detail, indent);
}

/* The proxy's process, by the spans that only it can have; 0: not known. */
static uint32_t proxy_of(const struct tailor_timeline *timeline)
{
	for (size_t i = 0; i < timeline->span_count; i++) {
		enum tailor_cause cause = timeline->spans[i].cause;

		if (timeline->spans[i].pid &&
		    (cause == TAILOR_CAUSE_PROXY || cause == TAILOR_CAUSE_PROXY_RUN_QUEUE || cause == TAILOR_CAUSE_PROXY_STOPPED))
			return timeline->spans[i].pid;
	}
	return 0;
}

static int is_proxys(const struct tailor_span *span, uint32_t proxy)
{
	return span->pid != 0 && span->pid == proxy;
}

/* Whether the span's time passed at the server. */
static int is_at_server(const struct tailor_span *span, uint32_t proxy)
{
	if (is_proxys(span, proxy))
		return 0;
	switch (span->cause) {
	case TAILOR_CAUSE_PROXY:
	case TAILOR_CAUSE_PROXY_RUN_QUEUE:
	case TAILOR_CAUSE_PROXY_STOPPED:
	case TAILOR_CAUSE_CONNECTION_WAIT:
	case TAILOR_CAUSE_LIMIT_WAIT:
	case TAILOR_CAUSE_REQUEST_TRANSIT:
	case TAILOR_CAUSE_RESPONSE_TRANSIT:
	case TAILOR_CAUSE_RESPONSE_BUFFERED:
	case TAILOR_CAUSE_RETRANSMISSION:
	case TAILOR_CAUSE_FAILOVER_WAIT:
	case TAILOR_CAUSE_SLOW_CLIENT: return 0;
	case TAILOR_CAUSE_UNEXPLAINED:
	case TAILOR_CAUSE_MACHINE_STOPPED: return span->tid != 0;
	default: return 1;
	}
}

static int is_below(const struct tailor_timeline *timeline, const struct tailor_span *span, uint64_t ns, uint64_t part)
{
	uint64_t length = span->end_ns - span->start_ns;

	return (ns == 0 || length < ns) && length < latency_of(timeline) / part;
}

/* Where the spans end that share a line, from the one at `i` on: two that are short, or many that are small. */
static size_t end_of_fold(const struct tailor_timeline *timeline, size_t i, size_t end)
{
	size_t brief = i, small = i;

	while (brief < end && is_below(timeline, &timeline->spans[brief], SHORT_NS, SHORT_SHARE))
		brief++;
	while (small < end && is_below(timeline, &timeline->spans[small], 0, SMALL_SHARE))
		small++;
	if (small - i >= SMALL_RUN)
		return small;
	return brief - i >= 2 ? brief : i + 1;
}

/* "(40 spans: on CPU 3.20 ms, preempted 1.10 ms)": the causes with the most time, as many as there is room for. */
static void print_fold(FILE *out, const struct tailor_timeline *timeline, size_t from, size_t to, unsigned int indent)
{
	uint64_t sums[TAILOR_CAUSES] = {0};
	char item[80], buffer[32];
	size_t used;
	int briefly = 1, shown = 0;

	for (size_t i = from; i < to; i++) {
		sums[timeline->spans[i].cause] += timeline->spans[i].end_ns - timeline->spans[i].start_ns;
		briefly &= is_below(timeline, &timeline->spans[i], SHORT_NS, SHORT_SHARE);
	}
	print_columns(out, timeline, timeline->spans[from].start_ns, timeline->spans[to - 1].end_ns, indent);
	used = (size_t)fprintf(out, "(%zu %sspans", to - from, briefly ? "shorter " : "");
	for (; shown < 3; shown++) {
		int best = 0;

		for (int cause = 1; cause < TAILOR_CAUSES; cause++)
			best = sums[cause] > sums[best] ? cause : best;
		snprintf(item, sizeof(item), "%s %s %s", shown ? "," : ":", tailor_cause_name((enum tailor_cause)best),
		         duration(buffer, sums[best]));
		if (briefly || sums[best] == 0 || used + strlen(item) + 1 > STORY_COLUMNS - indent)
			break;
		used += (size_t)fprintf(out, "%s", item);
		sums[best] = 0;
	}
	fputs(")\n", out);
}

/* The spans from `from` up to `to`; a thread is named once, where it begins. */
static void print_spans(FILE *out, const struct tailor_timeline *timeline, size_t from, size_t to, unsigned int indent)
{
	uint32_t known = 0;

	for (size_t i = from, next; i < to; i = next) {
		next = end_of_fold(timeline, i, to);
		if (next - i > 1) {
			print_fold(out, timeline, i, next, indent);
			continue;
		}
		print_span(out, timeline, &timeline->spans[i], known, indent);
		known = timeline->spans[i].tid;
	}
}

/* What happened at the server, below a line that sums it up: the spans from `from` up to `to`. */
static void print_server(FILE *out, const struct tailor_timeline *timeline, size_t from, size_t to)
{
	char server[4 * TAILOR_SERVER_NAME_BYTES];

	tailor_report_printable(server, sizeof(server), tailor_report_server(timeline, &timeline->spans[from]), 24);
	print_columns(out, timeline, timeline->spans[from].start_ns, timeline->spans[to - 1].end_ns, 0);
	fprintf(out, "at %s%s:\n", server[0] ? "server " : "the server", server);
	print_spans(out, timeline, from, to, INDENT);
}

/* Where the part ends that begins with span `i`: at the server or not. What nobody knows in the midst of the server's is in it. */
static size_t end_of_part(const struct tailor_timeline *timeline, size_t i, uint32_t proxy)
{
	int there = is_at_server(&timeline->spans[i], proxy);
	size_t end = i + 1;

	for (size_t next = end; next < timeline->span_count; next++) {
		enum tailor_cause cause = timeline->spans[next].cause;

		if (is_at_server(&timeline->spans[next], proxy) == there)
			end = next + 1;
		else if (!there || is_proxys(&timeline->spans[next], proxy) ||
		         (cause != TAILOR_CAUSE_UNEXPLAINED && cause != TAILOR_CAUSE_MACHINE_STOPPED))
			break;
	}
	return end;
}

void tailor_report_text(FILE *out, const struct tailor_timeline *timeline)
{
	uint32_t proxy = proxy_of(timeline);
	char buffer[32];

	print_head(out, timeline);
	print_also(out, timeline);
	print_failover(out, timeline);
	print_completeness(out, timeline);
	fputs("\n     offset   duration   share\n", out);
	for (size_t i = 0, next; i < timeline->span_count; i = next) {
		next = end_of_part(timeline, i, proxy);
		/* A part with one line needs none above it. */
		if (is_at_server(&timeline->spans[i], proxy) && end_of_fold(timeline, i, next) < next)
			print_server(out, timeline, i, next);
		else
			print_spans(out, timeline, i, next, 0);
	}
	fprintf(out, "  %9s  %9s  100.0%%\n", "total", duration(buffer, latency_of(timeline)));
}
