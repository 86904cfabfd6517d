/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows built by hand for the correlator's tests. Times are in microseconds. Thread ids tell the process: 100 is the
 * proxy's worker, 200..299 are threads of server "a", 300..399 of server "b", 0 is the idle task, others are not
 * traced.
 */
#ifndef TAILOR_TESTS_SCENE_H
#define TAILOR_TESTS_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/store.h>
#include <tailor/timeline_names.h>

#include "correlate/correlate.h"
#include "report/report.h"

#define US(us) ((uint64_t)(us)*1000)
#define REQUEST UINT64_C(0xa1)
#define OTHER UINT64_C(0xb2)
#define PORT 40000
#define PROXY 100
#define SERVER 200 /* pid of "a" */
#define LOOP 201
#define WORKER 202
#define SECOND 203
#define HOLDER 204
#define VM_THREAD 210
#define STRANGER 900
#define IDLE 0

/* System calls of x86-64. */
#define CALL_READ 0
#define CALL_POLL 7
#define CALL_PREAD 17
#define CALL_NANOSLEEP 35
#define CALL_SENDTO 44
#define CALL_FUTEX 202
#define CALL_EPOLL 232

struct scene {
	struct tailor_window window;
	struct tailor_window_event events[512];
	struct tailor_loss losses[4];
	struct tailor_timeline timeline;
};

static const struct tailor_window_server scene_servers[] = {{"a", 200, 8080}, {"b", 300, 8081}};
static const struct tailor_window_thread scene_threads[] = {
        {PROXY, PROXY, "proxy-0"}, {200, LOOP, "loop"},     {200, WORKER, "worker"},
        {200, SECOND, "second"},   {200, HOLDER, "holder"}, {200, VM_THREAD, "VM Thread"},
};

static inline uint32_t scene_pid(uint32_t tid)
{
	return tid >= 200 && tid < 400 ? tid / 100 * 100 : tid;
}

static inline struct tailor_event *scene_add(struct scene *scene, uint64_t us, enum tailor_event_kind kind,
                                             uint32_t tid)
{
	size_t at = scene->window.event_count++;

	assert_true(at < sizeof(scene->events) / sizeof(scene->events[0]));
	/* Kept in order of time; equal times stay in the order in which they were added. */
	for (; at > 0 && scene->events[at - 1].event.time_ns > US(us); at--)
		scene->events[at] = scene->events[at - 1];
	memset(&scene->events[at], 0, sizeof(scene->events[at]));
	scene->events[at].event = (struct tailor_event){
	        .kind = (uint8_t)kind, .time_ns = US(us), .tid = tid, .pid = scene_pid(tid), .cpu = 1};
	return &scene->events[at].event;
}

static inline void scene_comm(struct tailor_event *event, uint32_t tid)
{
	/* No task woke it, or the CPU was idle: no name either. */
	if (tid != IDLE)
		memcpy(&event->arg[1], tid == VM_THREAD ? "VM Thread\0\0\0\0\0\0" : "some-task\0\0\0\0\0\0", 16);
	event->arg[0] = TAILOR_TASK(scene_pid(tid), tid);
}

static inline void with_text(struct tailor_event *event, const char *text)
{
	((struct tailor_window_event *)(void *)event)->text = text;
}

static inline struct tailor_event *wake(struct scene *scene, uint64_t us, uint32_t tid, uint32_t waker)
{
	struct tailor_event *event = scene_add(scene, us, TAILOR_EVENT_WAKEUP, tid);

	scene_comm(event, waker);
	return event;
}

static inline struct tailor_event *in(struct scene *scene, uint64_t us, uint32_t tid, uint32_t before)
{
	struct tailor_event *event = scene_add(scene, us, TAILOR_EVENT_SWITCH_IN, tid);

	scene_comm(event, before);
	return event;
}

static inline struct tailor_event *out(struct scene *scene, uint64_t us, uint32_t tid, enum tailor_task_state state,
                                       uint32_t after)
{
	struct tailor_event *event = scene_add(scene, us, TAILOR_EVENT_SWITCH_OUT, tid);

	scene_comm(event, after);
	event->extra = state;
	return event;
}

static inline void sleeps(struct scene *scene, uint64_t us, uint32_t tid)
{
	out(scene, us, tid, TAILOR_TASK_SLEEPING, IDLE);
}

/* call: the number of the system call and one, or TAILOR_CALL_NONE. */
static inline void sleeps_in(struct scene *scene, uint64_t us, uint32_t tid, enum tailor_task_state state, unsigned int call)
{
	out(scene, us, tid, state, IDLE)->extra = TAILOR_SWITCH(state, call);
}

/* Woken, and at once on a CPU that had been idle. */
static inline void wakes(struct scene *scene, uint64_t us, uint32_t tid, uint32_t waker, uint64_t in_us)
{
	wake(scene, us, tid, waker);
	in(scene, in_us, tid, IDLE);
}

static inline struct tailor_event *socket_event(struct scene *scene, uint64_t us, enum tailor_event_kind kind,
                                                uint32_t tid, int by_proxy, uint32_t sequence, uint32_t bytes,
                                                uint64_t request)
{
	struct tailor_event *event = scene_add(scene, us, kind, tid);

	event->extra = by_proxy ? TAILOR_PORTS(PORT, 8080) : TAILOR_PORTS(8080, PORT);
	event->arg[0] = sequence;
	event->arg[1] = bytes;
	event->request = request;
	return event;
}

static inline void receives(struct scene *scene, uint64_t us, uint32_t tid, uint64_t request)
{
	socket_event(scene, us, TAILOR_EVENT_RECEIVE, tid, 0, 5000, 300, request);
}

/* The write returns at us; its bytes [sequence, +bytes). */
static inline void writes(struct scene *scene, uint64_t us, uint32_t tid, uint64_t request, uint32_t sequence,
                          uint32_t bytes)
{
	socket_event(scene, us, TAILOR_EVENT_SYSCALL_WRITE, tid, 0, sequence, bytes, request);
}

static inline void transmits(struct scene *scene, uint64_t us, uint32_t sequence, uint32_t bytes)
{
	socket_event(scene, us, TAILOR_EVENT_TCP_TRANSMIT, STRANGER, 0, sequence, bytes, REQUEST);
}

static inline void request_leaves(struct scene *scene, uint64_t us)
{
	socket_event(scene, us, TAILOR_EVENT_TCP_TRANSMIT, PROXY, 1, 5000, 300, REQUEST);
}

static inline void collects(struct scene *scene, uint32_t pid, uint64_t from_us, uint64_t to_us, const char *text)
{
	struct tailor_event *event = scene_add(scene, from_us, TAILOR_EVENT_GC_START, pid + 10);

	event->arg[0] = 7;
	if (to_us == 0)
		return;
	event = scene_add(scene, to_us, TAILOR_EVENT_GC_FINISH, pid + 10);
	event->arg[0] = 7;
	event->arg[1] = US(from_us);
	with_text(event, text);
}

/* A request of server a: from 1000 to the given end, sent at 1010, answered at the proxy 10 us before the end. */
static inline void scene_open(struct scene *scene, uint64_t end_us)
{
	struct tailor_record *record = &scene->window.record;

	memset(scene, 0, sizeof(*scene));
	record->request = (struct tailor_request){.id = REQUEST,
	                                          .begin_ns = US(1000),
	                                          .end_ns = US(end_us),
	                                          .status = 200,
	                                          .attempts = 1,
	                                          .target = "GET /",
	                                          .server = "a"};
	record->worker_pid = record->worker_tid = PROXY;
	record->parsed_ns = US(1004);
	record->reply_begin_ns = US(end_us - 5);
	record->attempts = 1;
	record->attempt[0] = (struct tailor_attempt){.server = 0,
	                                             .port = PORT,
	                                             .begin_ns = US(1005),
	                                             .send_ns = US(1006),
	                                             .sent_ns = US(1012),
	                                             .response_begin_ns = US(end_us - 12),
	                                             .response_end_ns = US(end_us - 10)};
	scene->window.events = scene->events;
	scene->window.losses = scene->losses;
	scene->window.servers = scene_servers;
	scene->window.server_count = 2;
	scene->window.threads = scene_threads;
	scene->window.thread_count = sizeof(scene_threads) / sizeof(scene_threads[0]);
}

/* The request leaves the proxy at 1010, which sleeps from 1015 until it is woken 20 us and runs 15 us before the end.
 */
static inline void proxy_story(struct scene *scene, uint64_t end_us, uint32_t waker)
{
	request_leaves(scene, 1010);
	in(scene, 995, PROXY, IDLE);
	sleeps(scene, 1015, PROXY);
	wakes(scene, end_us - 20, PROXY, waker, end_us - 15);
}

/* The thread is woken by the proxy at 1012, runs at 1016, receives at 1020. */
static inline void arrival(struct scene *scene, uint32_t tid)
{
	sleeps(scene, 500, tid);
	wakes(scene, 1012, tid, PROXY, 1016);
	receives(scene, 1020, tid, REQUEST);
}

/* What most requests have in common: the proxy's story, whom LOOP wakes at the end, and the arrival at LOOP. */
static inline void scene_open_at_loop(struct scene *scene, uint64_t end_us)
{
	scene_open(scene, end_us);
	proxy_story(scene, end_us, LOOP);
	arrival(scene, LOOP);
}

/* So many of the channel's events were lost in that time. */
static inline void loses(struct scene *scene, const char *channel, uint64_t from_us, uint64_t to_us, uint64_t events)
{
	struct tailor_loss *loss = &scene->losses[scene->window.loss_count++];

	*loss = (struct tailor_loss){.from_ns = US(from_us), .to_ns = US(to_us), .events = events};
	snprintf(loss->channel, sizeof(loss->channel), "%s", channel);
}

/* The response leaves 25 us before the end; the write returns 2 us later. */
static inline void departure(struct scene *scene, uint64_t end_us, uint32_t tid)
{
	transmits(scene, end_us - 25, 9000, 400);
	writes(scene, end_us - 23, tid, REQUEST, 9000, 400);
}

static inline uint64_t took_us(const struct scene *scene, enum tailor_cause cause)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < scene->timeline.span_count; i++) {
		if (scene->timeline.spans[i].cause == cause)
			sum += scene->timeline.spans[i].end_ns - scene->timeline.spans[i].start_ns;
	}
	return sum / 1000;
}

/* The first span of the cause, "" details when there is none. */
static inline const struct tailor_span *span_of(const struct scene *scene, enum tailor_cause cause)
{
	static const struct tailor_span none;

	for (size_t i = 0; i < scene->timeline.span_count; i++) {
		if (scene->timeline.spans[i].cause == cause)
			return &scene->timeline.spans[i];
	}
	return &none;
}

/* 1 when a span of the cause has this in its detail. */
static inline int says(const struct scene *scene, enum tailor_cause cause, const char *part)
{
	for (size_t i = 0; i < scene->timeline.span_count; i++) {
		if (scene->timeline.spans[i].cause == cause && strstr(scene->timeline.spans[i].detail, part))
			return 1;
	}
	return 0;
}

static inline void explain(struct scene *scene)
{
	assert_int_equal(tailor_correlate(&scene->window, &scene->timeline), 0);
	if (getenv("TAILOR_SHOW"))
		tailor_report_text(stderr, &scene->timeline);
	assert_true(tailor_timeline_check(&scene->timeline));
}

static inline void scene_close(struct scene *scene)
{
	tailor_timeline_free(&scene->timeline);
}

#define assert_took(scene, cause, us) assert_int_equal(took_us(scene, cause), us)
#define assert_detail(scene, cause, part) assert_true(says(scene, cause, part))

#endif /* TAILOR_TESTS_SCENE_H */
