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

#define EVENTS_MAX 2048
#define BEGIN UINT64_C(1000000)
#define REQUEST UINT64_C(0xa1)
#define PORT 40000

static const struct tailor_window_server servers[] = {{"a", 200, 8080}, {"b", 300, 8081}};
static const struct tailor_window_thread threads[] = {
        {100, 100, "proxy-0"}, {200, 201, "loop"}, {200, 210, "VM Thread"}};

/* 16 bits of time, in steps of 64 ns; the two ends mean what no clock says. */
static uint64_t time_of(const uint8_t *bytes)
{
	uint32_t steps = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;

	return steps == 0 ? 0 : steps == 0xffff ? UINT64_MAX - 3 : BEGIN - 100000 + 64 * (uint64_t)steps;
}

static uint64_t task_of(uint8_t byte)
{
	static const uint32_t tids[] = {100, 201, 202, 203, 210, 301, 900, 0};
	uint32_t tid = tids[byte % 8];

	return TAILOR_TASK(tid >= 200 && tid < 400 ? tid / 100 * 100 : tid, tid);
}

/* begin, length; parsed, reply; flags, attempts, answered; then the one attempt's points, which the others share,
 * shifted. */
static void draw_record(const uint8_t *bytes, struct tailor_record *record)
{
	*record = (struct tailor_record){.request = {.id = REQUEST, .status = 200, .target = "GET /", .server = "a"},
	                                 .worker_pid = 100,
	                                 .worker_tid = 100};
	record->request.begin_ns = bytes[4] & 1 ? 0 : BEGIN;
	record->request.end_ns = bytes[4] & 2 ? UINT64_MAX : time_of(bytes);
	record->request.response_bytes = bytes[4] & 4 ? 100000 : 100;
	record->parsed_ns = time_of(bytes + 2);
	record->attempts = bytes[5] & 7;
	record->answered = (int8_t)((bytes[5] >> 3 & 7) - 1);
	record->reply_begin_ns = time_of(bytes + 14);
	for (size_t i = 0; i < TAILOR_ATTEMPTS_MAX; i++) {
		uint64_t shift = i * 500 * (bytes[5] >> 6);

		record->attempt[i] = (struct tailor_attempt){.server = (uint8_t)((bytes[4] >> 3 & 3) + i) % 3,
		                                             .reason = (uint16_t)(i * (bytes[4] >> 5 & 3)),
		                                             .port = (uint16_t)(PORT + i * (bytes[4] >> 7)),
		                                             .begin_ns = time_of(bytes + 6) + shift,
		                                             .send_ns = time_of(bytes + 8) + shift,
		                                             .sent_ns = time_of(bytes + 8) + 2 * shift,
		                                             .response_begin_ns = time_of(bytes + 10) + shift,
		                                             .response_end_ns = time_of(bytes + 12) + shift,
		                                             .end_ns = bytes[4] >> 7 ? time_of(bytes + 12) : 0};
	}
}

/* kind, time, threads, connection and request, three of arguments. */
static void draw_event(const uint8_t *bytes, struct tailor_window_event *entry)
{
	static const char *const texts[] = {NULL, "Serial young\tAllocation Failure", "java.lang.String", "\t\n\xff"};
	uint64_t task = task_of(bytes[3]);
	struct tailor_event *event = &entry->event;

	*event = (struct tailor_event){.kind = bytes[0],
	                               .time_ns = time_of(bytes + 1),
	                               .pid = TAILOR_TASK_PID(task),
	                               .tid = TAILOR_TASK_TID(task),
	                               .cpu = 1};
	event->request = (const uint64_t[]){0, REQUEST, REQUEST, 0xb2}[bytes[4] & 3];
	event->extra = (bytes[4] & 4 ? TAILOR_PORTS(8080, PORT) : TAILOR_PORTS(PORT, 8080)) + (bytes[4] >> 3 & 1);
	event->arg[0] = bytes[5] | (uint64_t)(bytes[4] & 16 ? 0xffffff00 : 0);
	event->arg[1] = bytes[4] & 32 ? time_of(bytes + 6) : (uint64_t)bytes[6] * bytes[7];
	event->arg[2] = bytes[7];
	entry->text = texts[bytes[4] >> 6];
	if (event->kind >= TAILOR_EVENT_WAKEUP && event->kind <= TAILOR_EVENT_SWITCH_OUT) {
		event->extra = bytes[4] >> 3 & 7;
		event->arg[0] = task_of(bytes[3] >> 4);
	}
}

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
