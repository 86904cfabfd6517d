/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as a window, for the target `timeline`: 16 bytes of record, then 8 a piece of event. A byte that names
 * something (thread, request, connection) chooses from few, so that events meet.
 */
#ifndef TAILOR_TESTS_FUZZ_WINDOW_H
#define TAILOR_TESTS_FUZZ_WINDOW_H

#include <tailor/window.h>

#define BEGIN UINT64_C(1000000)
#define REQUEST UINT64_C(0xa1)
#define PORT 40000

static const struct tailor_window_server servers[] = {{"a", 200, 8080}, {"b", 300, 8081}};
static const struct tailor_window_thread threads[] = {
        {100, 100, "proxy-0"}, {200, 201, "loop"}, {200, 210, "VM Thread"}};

/* 16 bits of time, in steps of 64 ns; the two ends mean what no clock says. */
static inline uint64_t time_of(const uint8_t *bytes)
{
	uint32_t steps = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;

	return steps == 0 ? 0 : steps == 0xffff ? UINT64_MAX - 3 : BEGIN - 100000 + 64 * (uint64_t)steps;
}

static inline uint64_t task_of(uint8_t byte)
{
	static const uint32_t tids[] = {100, 201, 202, 203, 210, 301, 900, 0};
	uint32_t tid = tids[byte % 8];

	return TAILOR_TASK(tid >= 200 && tid < 400 ? tid / 100 * 100 : tid, tid);
}

/* begin, length; parsed, reply; flags, attempts, answered; then the one attempt's points, which the others share,
 * shifted. */
static inline void draw_record(const uint8_t *bytes, struct tailor_record *record)
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
	record->queued_ns = bytes[4] & 8 ? time_of(bytes + 8) : 0;
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
static inline void draw_event(const uint8_t *bytes, struct tailor_window_event *entry)
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

#endif /* TAILOR_TESTS_FUZZ_WINDOW_H */
