/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Window to timeline. Proves: any events and any record, however senseless, give spans that cut the request exactly, a
 * dominant cause with the most time, the same each time, in a time bounded by the input, and a printable report.
 *
 * The input: 16 bytes of record, then 8 a piece of event; see draw_record() and draw_event(). A byte that names
 * something (thread, request, connection) chooses from few, so that events meet.
 */
#include <errno.h>
#include <tailor/store.h>

#include "fuzz.h"
#include "correlate/correlate.h"
#include "report/report.h"
#include "window.h"

#define EVENTS_MAX 2048

static int by_time(const void *a, const void *b)
{
	uint64_t left = ((const struct tailor_window_event *)a)->event.time_ns,
	         right = ((const struct tailor_window_event *)b)->event.time_ns;

	return (left > right) - (left < right);
}

static void check_timeline(const struct tailor_timeline *timeline, FILE *null)
{
	uint64_t dominant_ns = 0;

	require(tailor_timeline_check(timeline));
	for (size_t i = 0; i < timeline->span_count; i++) {
		const struct tailor_span *span = &timeline->spans[i];

		require((unsigned int)span->cause < TAILOR_CAUSES && memchr(span->detail, '\0', sizeof(span->detail)));
		dominant_ns += span->cause == timeline->dominant ? span->end_ns - span->start_ns : 0;
	}
	require(dominant_ns == timeline->dominant_ns);
	tailor_report_text(null, timeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tailor_window_event events[EVENTS_MAX];
	static FILE *null;
	struct tailor_loss loss = {"cpu1", BEGIN, BEGIN + 1000, 1};
	struct tailor_window window = {.events = events,
	                               .servers = servers,
	                               .server_count = 2,
	                               .threads = threads,
	                               .thread_count = 3,
	                               .losses = &loss};
	struct tailor_timeline timeline[2];
	int ret;

	if (size < 16)
		return 0;
	null = null ? null : fopen("/dev/null", "we");
	draw_record(data, &window.record);
	window.missing = data[4] >> 2;
	window.loss_count = data[4] >> 6 & 1;
	for (size_t at = 16; at + 8 <= size && window.event_count < EVENTS_MAX; at += 8)
		draw_event(data + at, &events[window.event_count++]);
	qsort(events, window.event_count, sizeof(events[0]), by_time);
	ret = tailor_correlate(&window, &timeline[0]);
	require(ret == 0 || ret == -EINVAL);
	require(tailor_correlate(&window, &timeline[1]) == ret);
	if (ret < 0)
		return 0;
	check_timeline(&timeline[0], null);
	require(timeline[0].span_count == timeline[1].span_count && timeline[0].join == timeline[1].join);
	for (size_t i = 0; i < timeline[0].span_count; i++)
		require(timeline[0].spans[i].end_ns == timeline[1].spans[i].end_ns &&
		        timeline[0].spans[i].cause == timeline[1].spans[i].cause);
	tailor_timeline_free(&timeline[0]);
	tailor_timeline_free(&timeline[1]);
	return 0;
}
