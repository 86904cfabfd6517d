/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/channel.h>
#include <tailor/store.h>
#include <unistd.h>

#include "base/clock.h"
#include "observer/budget.h"
#include "observer/observer.h"
#include "observer/queue.h"

#define US TAILOR_NS_PER_US
#define MS TAILOR_NS_PER_MS

static void a_budget_is_earned_saved_up_to_its_limit_and_paid_back(void **state)
{
	struct tailor_budget budget;

	(void)state;
	tailor_budget_open(&budget, 20 * MS, 100 * MS, TAILOR_NS_PER_S);
	assert_int_equal(tailor_budget_allows(&budget, MS, 32), 32);
	assert_int_equal(tailor_budget_allows(&budget, 10 * MS, 32), 10);
	assert_int_equal(tailor_budget_allows(&budget, 500 * MS, 32), 1); /* else the dear ones would never be explained */
	tailor_budget_spend(&budget, 140 * MS);
	assert_int_equal(tailor_budget_allows(&budget, 1, 32), 0);
	tailor_budget_fill(&budget, 2 * TAILOR_NS_PER_S); /* 40 were overdrawn, 20 earned */
	assert_int_equal(tailor_budget_allows(&budget, 1, 32), 0);
	tailor_budget_fill(&budget, 4 * TAILOR_NS_PER_S);
	assert_int_equal(tailor_budget_allows(&budget, MS, 32), 20);
	tailor_budget_fill(&budget, 3 * TAILOR_NS_PER_S); /* time that was earned for already */
	assert_int_equal(tailor_budget_allows(&budget, MS, 32), 20);
	tailor_budget_fill(&budget, 1000 * TAILOR_NS_PER_S);
	assert_int_equal(tailor_budget_allows(&budget, MS, 200), 100);
}

static struct tailor_queued queued(uint64_t begin_ns, uint64_t end_ns, enum tailor_why_kept kept)
{
	return (struct tailor_queued){.record.request = {.id = 1, .begin_ns = begin_ns, .end_ns = end_ns}, .kept = kept};
}

static void the_slowest_of_those_that_settled_come_first_and_baseline_ones_last(void **state)
{
	struct tailor_queued queue[] = {
		queued(100, 900, TAILOR_KEPT_SLOW),      queued(0, 150, TAILOR_KEPT_SLOW), queued(0, 400, TAILOR_KEPT_BASELINE),
		queued(100, 300, TAILOR_KEPT_BASELINE), queued(10, 500, TAILOR_KEPT_SLOW), queued(0, 501, TAILOR_KEPT_SLOW),
	};

	(void)state;
	assert_int_equal(tailor_queue_settle(queue, 6, 500), 4);
	assert_int_equal(queue[0].record.request.end_ns, 500);
	assert_int_equal(queue[1].record.request.end_ns, 150);
	assert_int_equal(queue[2].record.request.end_ns, 400);
	assert_int_equal(queue[3].record.request.end_ns, 300);
	assert_int_equal(queue[4].record.request.end_ns + queue[5].record.request.end_ns, 900 + 501);
	assert_int_equal(tailor_queue_settle(queue, 0, 500), 0);
}

static void requests_whose_windows_touch_are_read_together(void **state)
{
	struct tailor_queued queue[] = {
		queued(1000, 5000, TAILOR_KEPT_SLOW), queued(1500, 1600, TAILOR_KEPT_SLOW), queued(5300, 5400, TAILOR_KEPT_SLOW),
		queued(5701, 5800, TAILOR_KEPT_SLOW),
	};
	uint64_t end_ns;

	(void)state;
	tailor_queue_by_begin(queue, 4);
	assert_int_equal(tailor_queue_overlap(queue, 4, 200, 100, &end_ns), 3);
	assert_int_equal(end_ns, 5500);
	assert_int_equal(tailor_queue_overlap(queue, 4, 200, 101, &end_ns), 4);
	assert_int_equal(tailor_queue_overlap(queue + 3, 1, 200, 100, &end_ns), 1);
	assert_int_equal(end_ns, 5900);
}

#define REQUESTS 2000
#define KERNEL_SLOTS 32768
#define REQUEST_SLOTS 8192

static struct tailor_channel channel_of(size_t slots)
{
	struct tailor_channel channel = {calloc(1, sizeof(struct tailor_channel_head)), calloc(slots, sizeof(struct tailor_event)), slots - 1};

	assert_non_null(channel.head);
	assert_non_null(channel.slots);
	return channel;
}

static void put(const struct tailor_channel *channel, uint8_t kind, uint64_t request, uint64_t time_ns)
{
	struct tailor_event event = {.kind = kind, .request = request, .time_ns = time_ns, .pid = 1, .tid = (uint32_t)(time_ns % 7 + 1)};

	tailor_channel_write_alone(channel, &event, NULL, 0);
}

/* Every request's latency says which it is: number i took 10 ms and i us. All ended at once, as after a stall. */
static uint64_t latency_of(uint64_t number)
{
	return 10 * MS + number * US;
}

static void put_requests(const struct tailor_channel *channel, uint64_t end_ns)
{
	for (uint64_t i = REQUESTS; i-- > 0;)
		put(channel, TAILOR_EVENT_REQUEST_BEGIN, i + 1, end_ns - latency_of(i));
	for (uint64_t i = 0; i < REQUESTS; i++)
		put(channel, TAILOR_EVENT_REQUEST_END, i + 1, end_ns);
}

/* Reads the store: how many timelines, that they are those of the slowest requests, and how many slow ones they say were omitted. */
static uint64_t read_store(const char *path, uint64_t *ret_omitted)
{
	struct tailor_store_reader *reader;
	struct tailor_timeline timeline;
	uint64_t count = 0, least_ns = UINT64_MAX;

	*ret_omitted = 0;
	assert_int_equal(tailor_store_reader_open(path, &reader), 0);
	while (tailor_store_next(reader, &timeline) == 1) {
		uint64_t latency_ns = timeline.request.end_ns - timeline.request.begin_ns;

		assert_int_equal(latency_ns, latency_of(timeline.request.id - 1));
		if (timeline.request.id <= REQUESTS) {
			count++;
			least_ns = latency_ns < least_ns ? latency_ns : least_ns;
		}
		*ret_omitted += timeline.omitted;
		tailor_timeline_free(&timeline);
	}
	tailor_store_reader_close(reader);
	/* As many as stand between the least and the slowest of all: none of these is missing. */
	assert_int_equal(count, (latency_of(REQUESTS - 1) - least_ns) / US + 1);
	return count;
}

static void remove_store(const char *path)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -r '%s'", path);
	assert_int_equal(system(command), 0);
}

static struct tailor_observer_status wait_for(struct tailor_observer *observer, uint64_t requests)
{
	struct tailor_observer_status status;

	for (int i = 0; i < 1000; i++) {
		tailor_observer_status(observer, &status);
		if (status.stored + status.not_stored + status.over_budget == requests)
			break;
		usleep(10000);
	}
	return status;
}

/* An observer that keeps everything in a store, with requests and one CPU's events as they are put. */
struct scene {
	struct tailor_channel requests, kernel;
	struct tailor_observer_options options;
	struct tailor_observer *observer;
	char path[32];
};

static void scene_open(struct scene *scene, uint64_t threshold_ns)
{
	*scene = (struct scene){.requests = channel_of(REQUEST_SLOTS), .kernel = channel_of(KERNEL_SLOTS), .path = "/tmp/tailor-observer-XXXXXX"};
	scene->options = (struct tailor_observer_options){.request_channels = &scene->requests,
	                                                  .workers = 1,
	                                                  .connections_max = REQUESTS,
	                                                  .kernel_channels = &scene->kernel,
	                                                  .cpus = 1,
	                                                  .slow = {.threshold_ns = threshold_ns, .baseline_one_in = 1}};
	assert_non_null(mkdtemp(scene->path));
	assert_int_equal(tailor_store_writer_open(scene->path, 64 << 20, &scene->options.store), 0);
}

static void scene_start(struct scene *scene)
{
	assert_int_equal(tailor_observer_start(&scene->options, &scene->observer), 0);
}

/* What was stored can be read from then on. */
static void scene_stop(struct scene *scene)
{
	tailor_observer_stop(scene->observer);
	tailor_store_writer_close(scene->options.store);
}

static void scene_close(struct scene *scene)
{
	remove_store(scene->path);
	free(scene->requests.head);
	free(scene->requests.slots);
	free(scene->kernel.head);
	free(scene->kernel.slots);
}

/* So many of the kernel's events, evenly, from one time on. */
static void put_switches(struct scene *scene, uint64_t count, uint64_t from_ns, uint64_t apart_ns)
{
	for (uint64_t i = 0; i < count; i++)
		put(&scene->kernel, i % 2 ? TAILOR_EVENT_SWITCH_IN : TAILOR_EVENT_SWITCH_OUT, 0, from_ns + i * apart_ns);
}

/* More slow requests at once than there is CPU time to explain: every one of them is told of, the slowest are explained. */
static void of_too_many_slow_requests_the_slowest_are_explained_and_the_others_counted(void **state)
{
	struct tailor_observer_status status;
	uint64_t now_ns = tailor_clock_ns(), stored, omitted;
	struct scene scene;

	(void)state;
	scene_open(&scene, 5 * MS);
	put_switches(&scene, KERNEL_SLOTS, now_ns - 30 * MS, 800); /* what makes each of them dear */
	put_requests(&scene.requests, now_ns);
	scene_start(&scene);
	status = wait_for(scene.observer, REQUESTS);
	assert_int_equal(status.requests, REQUESTS);
	assert_int_equal(status.slow, REQUESTS);
	assert_int_equal(status.stored + status.over_budget, REQUESTS);
	assert_int_equal(status.not_stored, 0);
	assert_true(status.stored > 0 && status.over_budget > REQUESTS / 2);
	print_message("             %llu explained, %llu counted\n", (unsigned long long)status.stored, (unsigned long long)status.over_budget);
	/* The next slow one that is explained, when there is time again, says what was left out before it. */
	stored = status.stored;
	for (uint64_t more = 1; more <= 40 && status.stored == stored; more++) {
		usleep(500000);
		put(&scene.requests, TAILOR_EVENT_REQUEST_BEGIN, REQUESTS + more, now_ns);
		put(&scene.requests, TAILOR_EVENT_REQUEST_END, REQUESTS + more, now_ns + latency_of(REQUESTS + more - 1));
		status = wait_for(scene.observer, REQUESTS + more);
	}
	assert_int_equal(status.stored, stored + 1);
	scene_stop(&scene);
	assert_int_equal(read_store(scene.path, &omitted), stored);
	assert_int_equal(omitted, status.over_budget);
	scene_close(&scene);
}

/* However many there are, ten a second of the ordinary ones are enough to compare with. */
static void ordinary_requests_are_explained_ten_at_once_at_most(void **state)
{
	struct tailor_observer_status status;
	struct scene scene;

	(void)state;
	scene_open(&scene, TAILOR_NS_PER_S);
	put_requests(&scene.requests, tailor_clock_ns());
	scene_start(&scene);
	for (int i = 0; i < 1000; i++) {
		tailor_observer_status(scene.observer, &status);
		if (status.baseline >= 10)
			break;
		usleep(10000);
	}
	assert_int_equal(status.requests, REQUESTS);
	assert_int_equal(status.slow, 0);
	assert_int_equal(status.baseline, 10);
	assert_int_equal(status.stored + status.not_stored + status.over_budget, 0);
	scene_stop(&scene);
	scene_close(&scene);
}

/* Where much happens, a timeline takes ms, and ten a second would be some percent of a CPU for what nobody waits for. */
static void dear_ordinary_requests_are_explained_less_often(void **state)
{
	enum { ROUNDS = 200, EVENTS = KERNEL_SLOTS * 2 / 3 };
	struct tailor_observer_status status;
	struct scene scene;

	(void)state;
	scene_open(&scene, TAILOR_NS_PER_S);
	scene_start(&scene);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		uint64_t now_ns = tailor_clock_ns();

		put_switches(&scene, EVENTS, now_ns - 20 * MS, 20 * MS / EVENTS);
		put(&scene.requests, TAILOR_EVENT_REQUEST_BEGIN, i, now_ns - latency_of(i - 1));
		put(&scene.requests, TAILOR_EVENT_REQUEST_END, i, now_ns);
		usleep(20000);
	}
	tailor_observer_status(scene.observer, &status);
	scene_stop(&scene);
	print_message("             %llu of %d explained\n", (unsigned long long)status.baseline, ROUNDS);
	assert_in_range(status.baseline, 1, 44); /* else 50 */
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_budget_is_earned_saved_up_to_its_limit_and_paid_back),
		cmocka_unit_test(the_slowest_of_those_that_settled_come_first_and_baseline_ones_last),
		cmocka_unit_test(requests_whose_windows_touch_are_read_together),
		cmocka_unit_test(of_too_many_slow_requests_the_slowest_are_explained_and_the_others_counted),
		cmocka_unit_test(ordinary_requests_are_explained_ten_at_once_at_most),
		cmocka_unit_test(dear_ordinary_requests_are_explained_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
