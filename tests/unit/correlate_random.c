/* SPDX-License-Identifier: Apache-2.0 */
/* Any window, however senseless, gives spans that cut the request exactly, and in a bounded time. */
#include "scene.h"

#include <time.h>

#define ROUNDS 3000
#define EVENTS_MAX 400
#define EARLIER_MAX 40

static uint64_t seed;

/* xorshift64: repeatable. */
static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % below;
}

static uint32_t draw_tid(void)
{
	static const uint32_t tids[] = {PROXY, LOOP, WORKER, SECOND, HOLDER, VM_THREAD, 301, STRANGER, IDLE};

	return tids[draw(sizeof(tids) / sizeof(tids[0]))];
}

static uint64_t draw_ns(uint64_t span)
{
	return draw(8) ? US(1000) + draw((uint32_t)span) : draw((uint32_t)(2 * span));
}

static int by_time(const void *a, const void *b)
{
	uint64_t left = ((const struct tailor_window_event *)a)->event.time_ns;
	uint64_t right = ((const struct tailor_window_event *)b)->event.time_ns;

	return (left > right) - (left < right);
}

static void draw_event(struct tailor_window_event *entry, uint64_t span)
{
	static const uint8_t kinds[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12,
	                                13, 14, 15, 16, 17, 32, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 250};
	struct tailor_event *event = &entry->event;
	uint32_t tid = draw_tid(), other = draw_tid();

	*entry = (struct tailor_window_event){0};
	event->kind = kinds[draw(sizeof(kinds))];
	event->time_ns = draw_ns(span);
	event->cpu = (uint16_t)draw(3);
	event->tid = tid;
	event->pid = scene_pid(tid);
	event->request = (const uint64_t[]){0, REQUEST, REQUEST, OTHER}[draw(4)];
	event->extra = draw(2) ? TAILOR_PORTS(8080, PORT) : draw(2) ? TAILOR_PORTS(PORT, 8080) : draw(7);
	event->arg[0] = draw(2) ? draw(100000) : 4294967000u + draw(500);
	event->arg[1] = draw(3) ? draw(5000) : draw_ns(span);
	event->arg[2] = draw(3) ? draw(8) : TAILOR_UNSENT(draw(7), draw(5000));
	if (event->kind == TAILOR_EVENT_ARRIVAL)
		event->extra = TAILOR_PORTS(8000, 5555);
	if (event->kind <= TAILOR_EVENT_SWITCH_OUT) {
		scene_comm(event, other);
		event->extra = TAILOR_SWITCH(draw(8), draw(3) ? draw(460) : draw(2) ? TAILOR_CALL_NONE : 203);
	}
	/* Times of the past, and sometimes not. */
	if ((event->kind == TAILOR_EVENT_CPU_STALL || event->kind == TAILOR_EVENT_PAGE_FAULTS) && draw(8))
		event->arg[0] = event->time_ns - draw((uint32_t)span);
	if (event->kind == TAILOR_EVENT_VM_OPERATION_BEGIN && draw(2))
		entry->text = draw(2) ? "PrintThreads" : "G1CollectForAllocation";
	else if (draw(2))
		entry->text = draw(2) ? "Copy\tAllocation Failure" : "no tab";
}

static void draw_earlier(struct scene *scene, struct tailor_event earlier[EARLIER_MAX])
{
	scene->window.earlier_scheduling = earlier;
	scene->window.earlier_scheduling_count = draw(EARLIER_MAX);
	scene->window.earlier_whole_ns = draw(2) ? 0 : draw(US(1000));
	for (size_t i = 0; i < scene->window.earlier_scheduling_count; i++) {
		uint32_t tid = draw_tid();

		earlier[i] = (struct tailor_event){.kind = draw(2) ? TAILOR_EVENT_WAKEUP : TAILOR_EVENT_SWITCH_OUT, .tid = tid, .pid = scene_pid(tid)};
		earlier[i].time_ns = draw(8) ? draw(US(1000)) : draw_ns(200);
		earlier[i].extra = draw(2) ? draw(8) : draw(4);
		scene_comm(&earlier[i], draw_tid());
	}
}

static void draw_record(struct tailor_record *record, uint64_t span)
{
	record->request.begin_ns = US(1000);
	record->request.end_ns = US(1000) + draw((uint32_t)span);
	record->parsed_ns = draw_ns(span);
	if (record->parsed_ns % 8 == 0)
		record->queued_ns = draw_ns(span);
	record->reply_begin_ns = draw(4) ? draw_ns(span) : 0;
	record->request.response_bytes = draw(100000);
	record->client_port = 5555;
	record->late_from_ns = draw(3) ? 0 : draw_ns(span);
	record->client_waits = (uint8_t)draw(12);
	for (size_t i = 0; i < TAILOR_CLIENT_WAITS_MAX; i++)
		record->client_wait[i] = (struct tailor_client_wait){draw_ns(span), draw_ns(span), draw(3), draw(5000), draw(5000), draw(2) ? draw(5000) : 0};
	record->attempts = (uint8_t)draw(7);
	record->answered = (int8_t)((int)draw(6) - 1);
	for (size_t i = 0; i < TAILOR_ATTEMPTS_MAX; i++)
		record->attempt[i] = (struct tailor_attempt){.server = (uint8_t)draw(4),
		                                             .reason = (uint16_t)draw(7),
		                                             .port = draw(3) ? PORT : (uint16_t)draw(65536),
		                                             .begin_ns = draw_ns(span),
		                                             .send_ns = draw(4) ? draw_ns(span) : 0,
		                                             .response_begin_ns = draw(4) ? draw_ns(span) : 0,
		                                             .response_end_ns = draw(4) ? draw_ns(span) : 0,
		                                             .end_ns = draw(2) ? draw_ns(span) : 0};
}

static void any_soup_of_events_gives_exact_spans(void **state)
{
	static const struct tailor_window_mapping mappings[] = {{200, 0, 2000, "libx.so"}, {200, 2000, 4000, ""}};
	static struct tailor_window_event events[EVENTS_MAX];
	static struct tailor_event earlier[EARLIER_MAX];
	struct scene scene;

	(void)state;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		/* Few distinct times make many ties. */
		uint64_t span = draw(2) ? 200 : 5000000;

		seed = round * UINT64_C(0x9e3779b97f4a7c15);
		scene_open(&scene, 2000);
		draw_record(&scene.window.record, span);
		draw_earlier(&scene, earlier);
		scene.window.events = events;
		scene.window.event_count = draw(EVENTS_MAX);
		scene.window.loss_count = draw(4);
		scene.window.missing = draw(1024);
		scene.window.mappings = mappings;
		scene.window.mapping_count = 2;
		for (size_t i = 0; i < scene.window.event_count; i++)
			draw_event(&events[i], span);
		qsort(events, scene.window.event_count, sizeof(events[0]), by_time);
		for (size_t i = 0; i < scene.window.loss_count; i++)
			scene.losses[i] =
			        (struct tailor_loss){"cpu1", draw_ns(span), draw(2) ? UINT64_MAX : draw_ns(span), 1};
		if (draw(4) == 0 && scene.window.loss_count)
			snprintf(scene.losses[0].channel, sizeof(scene.losses[0].channel), "%s", draw(2) ? "jvm:a" : "worker0");
		if (tailor_correlate(&scene.window, &scene.timeline) != 0 || !tailor_timeline_check(&scene.timeline))
			fail_msg("round %llu", (unsigned long long)round);
		scene_close(&scene);
	}
}

static void a_window_of_50000_events_takes_no_quadratic_time(void **state)
{
	static struct tailor_window_event events[50000];
	struct timespec from, to;
	struct scene scene;

	(void)state;
	seed = 4711;
	scene_open(&scene, 2000);
	scene.window.record.request.end_ns = US(6000000);
	scene.window.record.attempt[0].response_end_ns = US(5999990);
	scene.window.events = events;
	for (size_t i = 0; i < 50000; i++) {
		struct tailor_window_event *entry = &events[i];

		draw_event(entry, 1);
		/* One thread that is blocked again and again, by one that stays on the CPU: the worst case for a
		 * rescan. */
		entry->event.kind = (const uint8_t[]){3, 1, 2}[i % 3];
		entry->event.tid = LOOP;
		entry->event.pid = SERVER;
		entry->event.request = 0;
		entry->event.extra = TAILOR_TASK_SLEEPING;
		scene_comm(&entry->event, WORKER);
		entry->event.time_ns = US(2000) + i * 100000;
	}
	scene.window.event_count = 49999;
	events[0].event = (struct tailor_event){.kind = TAILOR_EVENT_RECEIVE,
	                                        .tid = LOOP,
	                                        .pid = SERVER,
	                                        .request = REQUEST,
	                                        .extra = TAILOR_PORTS(8080, PORT),
	                                        .arg = {1, 1},
	                                        .time_ns = US(1500)};
	events[49998].event = (struct tailor_event){.kind = TAILOR_EVENT_SYSCALL_WRITE,
	                                            .tid = LOOP,
	                                            .pid = SERVER,
	                                            .request = REQUEST,
	                                            .extra = TAILOR_PORTS(8080, PORT),
	                                            .arg = {1, 1},
	                                            .time_ns = US(5990000)};
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	explain(&scene);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_true(scene.timeline.span_count > 1000);
	assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 2000);
	scene_close(&scene);
}

/* Mounted, it receives; then it is parked and mounted again and again, and writes at last. */
static void a_virtual_thread_that_parks_50000_times_takes_no_quadratic_time(void **state)
{
	static struct tailor_window_event events[100003];
	const size_t last = sizeof(events) / sizeof(events[0]) - 1;
	struct timespec from, to;
	struct scene scene;

	(void)state;
	scene_open(&scene, 2000);
	scene.window.record.request.end_ns = US(6000000);
	scene.window.record.attempt[0].response_end_ns = US(5999990);
	scene.window.events = events;
	scene.window.event_count = last + 1;
	for (size_t i = 0; i <= last; i++) {
		struct tailor_event *event = &events[i].event;

		*event = (struct tailor_event){.kind = TAILOR_EVENT_VTHREAD_MOUNT, .tid = LOOP, .pid = SERVER, .time_ns = US(1500) + i * 50000};
		event->arg[0] = 7;
		if (i > 1 && i % 2 == 0)
			event->kind = TAILOR_EVENT_VTHREAD_UNMOUNT;
		if (i != 1 && i != last)
			continue;
		event->kind = i == last ? TAILOR_EVENT_SYSCALL_WRITE : TAILOR_EVENT_RECEIVE;
		event->request = REQUEST;
		event->extra = TAILOR_PORTS(8080, PORT);
		event->arg[1] = 1;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	explain(&scene);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_int_equal(scene.timeline.join, TAILOR_JOIN_CERTAIN);
	assert_true(scene.timeline.span_count > 90000);
	assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 2000);
	scene_close(&scene);
}

/* While a worker is on its CPU for 100 s, others come and go all the time. */
static void a_long_request_among_50000_short_ones_takes_no_quadratic_time(void **state)
{
	static struct tailor_window_event events[100000 + 64];
	struct timespec from, to;
	struct scene scene;

	(void)state;
	scene_open_at_loop(&scene, 2000);
	sleeps(&scene, 600, WORKER);
	wake(&scene, 1030, WORKER, LOOP)->request = REQUEST;
	sleeps(&scene, 1035, LOOP);
	in(&scene, 1040, WORKER, IDLE);
	memcpy(events, scene.events, scene.window.event_count * sizeof(*events));
	scene.window.events = events;
	/* The proxy wakes up at the end only. */
	scene.window.event_count -= 2;
	for (size_t i = 0; i < 100000; i++) {
		struct tailor_event *event = &events[scene.window.event_count++].event;

		*event = (struct tailor_event){.kind = i % 2 ? TAILOR_EVENT_SYSCALL_WRITE : TAILOR_EVENT_RECEIVE, .tid = SECOND, .pid = SERVER};
		event->request = OTHER + i / 2;
		event->extra = TAILOR_PORTS(8080, PORT + 1);
		event->arg[1] = 1;
		event->time_ns = US(2000) + i / 2 * 2000000 + i % 2 * 500000;
	}
	events[scene.window.event_count].event = events[scene.window.event_count - 1].event;
	events[scene.window.event_count].event.tid = WORKER;
	events[scene.window.event_count].event.request = REQUEST;
	events[scene.window.event_count].event.extra = TAILOR_PORTS(8080, PORT);
	events[scene.window.event_count++].event.time_ns = US(102000000);
	scene.window.record.request.end_ns = US(102001000);
	scene.window.record.attempt[0].response_end_ns = US(102000990);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	explain(&scene);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_true(scene.timeline.span_count > 90000);
	assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 2000);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(any_soup_of_events_gives_exact_spans),
	        cmocka_unit_test(a_window_of_50000_events_takes_no_quadratic_time),
	        cmocka_unit_test(a_long_request_among_50000_short_ones_takes_no_quadratic_time),
	        cmocka_unit_test(a_virtual_thread_that_parks_50000_times_takes_no_quadratic_time),
	};

	seed = 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
