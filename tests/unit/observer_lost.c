/* SPDX-License-Identifier: Apache-2.0 */
/* What the observer could not read, or could not be sure of. */
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
#include "observer/observer.h"

#define MS TAILOR_NS_PER_MS
#define SLOTS 16384
#define FEW 256
/* As many as the observer lets wait, and some more. */
#define TOO_MANY (4096 + 10)

struct scene {
	struct tailor_channel_head head;
	struct tailor_event slots[SLOTS];
	struct tailor_channel channel;
	struct tailor_observer_options options;
	struct tailor_observer *observer;
	char path[40];
};

static void scene_open(struct scene *scene, size_t slots)
{
	memset(scene, 0, sizeof(*scene));
	scene->channel = (struct tailor_channel){&scene->head, scene->slots, slots - 1};
	scene->options = (struct tailor_observer_options){.request_channels = &scene->channel,
	                                                  .workers = 1,
	                                                  .connections_max = 64,
	                                                  .server = {{.name = "a"}},
	                                                  .servers = 1,
	                                                  .slow = {.threshold_ns = 5 * MS}};
	strcpy(scene->path, "/tmp/tailor-observer-XXXXXX");
	assert_non_null(mkdtemp(scene->path));
	assert_int_equal(tailor_store_writer_open(scene->path, 1 << 20, &scene->options.store), 0);
}

static void scene_close(struct scene *scene)
{
	char command[64];

	tailor_observer_stop(scene->observer);
	tailor_store_writer_close(scene->options.store);
	snprintf(command, sizeof(command), "rm -r '%s'", scene->path);
	assert_int_equal(system(command), 0);
}

static void put(const struct scene *scene, uint8_t kind, uint64_t request, uint64_t time_ns, uint64_t arg0)
{
	struct tailor_event event = {.kind = kind, .request = request, .time_ns = time_ns, .pid = 1, .tid = 1, .arg = {arg0}};

	tailor_channel_write_alone(&scene->channel, &event, NULL, 0);
}

static struct tailor_observer_status wait_for(const struct scene *scene, uint64_t requests, uint64_t stored)
{
	struct tailor_observer_status status;

	for (int i = 0; i < 500; i++) {
		tailor_observer_status(scene->observer, &status);
		if (status.requests >= requests && status.stored >= stored)
			break;
		usleep(10000);
	}
	return status;
}

/* It may have come 50 ms before it was read, but nothing says that it did: what took 2 ms, as far as is known, is not called slow. */
static void a_late_request_of_which_nothing_says_that_it_was_slow_is_dropped(void **state)
{
	struct scene scene;
	struct tailor_observer_status status;
	uint64_t now_ns = tailor_clock_ns();

	(void)state;
	scene_open(&scene, SLOTS);
	put(&scene, TAILOR_EVENT_REQUEST_BEGIN, 1, now_ns - 2 * MS, 0);
	put(&scene, TAILOR_EVENT_REQUEST_LATE, 1, now_ns - 2 * MS, now_ns - 50 * MS);
	put(&scene, TAILOR_EVENT_REQUEST_END, 1, now_ns, 0);
	put(&scene, TAILOR_EVENT_REQUEST_BEGIN, 2, now_ns - 6 * MS, 0);
	put(&scene, TAILOR_EVENT_REQUEST_END, 2, now_ns, 0);
	assert_int_equal(tailor_observer_start(&scene.options, &scene.observer), 0);
	/* The certainly slow one is explained with it. */
	status = wait_for(&scene, 2, 1);
	assert_int_equal(status.requests, 2);
	assert_int_equal(status.stored, 1);
	assert_int_equal(status.slow, 1);
	assert_int_equal(status.unjudged + status.not_stored + status.over_budget, 0);
	scene_close(&scene);
}

static void late_requests_that_there_is_no_time_or_place_for_are_counted(void **state)
{
	struct scene scene;
	struct tailor_observer_status status;
	uint64_t now_ns = tailor_clock_ns();

	(void)state;
	scene_open(&scene, SLOTS);
	for (uint64_t id = 1; id <= TOO_MANY; id++) {
		put(&scene, TAILOR_EVENT_REQUEST_BEGIN, id, now_ns - 2 * MS, 0);
		put(&scene, TAILOR_EVENT_REQUEST_LATE, id, now_ns - 2 * MS, now_ns - 50 * MS);
		put(&scene, TAILOR_EVENT_REQUEST_END, id, now_ns, 0);
	}
	assert_int_equal(tailor_observer_start(&scene.options, &scene.observer), 0);
	status = wait_for(&scene, TOO_MANY, 0);
	assert_int_equal(status.requests, TOO_MANY);
	assert_true(status.unjudged >= 10);
	assert_int_equal(status.slow + status.stored + status.not_stored + status.over_budget, 0);
	scene_close(&scene);
}

static void what_a_workers_channel_overwrote_before_it_was_read_is_counted_as_its_own(void **state)
{
	struct tailor_observer_losses losses;
	struct scene scene;
	uint64_t now_ns = tailor_clock_ns(), lost;

	(void)state;
	scene_open(&scene, FEW);
	put(&scene, TAILOR_EVENT_REQUEST_BEGIN, 1, now_ns - 6 * MS, 0);
	put(&scene, TAILOR_EVENT_REQUEST_BEGIN, 2, now_ns - MS, 0);
	put(&scene, TAILOR_EVENT_REQUEST_END, 2, now_ns, 0);
	assert_int_equal(tailor_observer_start(&scene.options, &scene.observer), 0);
	assert_int_equal(wait_for(&scene, 1, 0).requests, 1); /* so it has read what is before that, too */
	for (uint64_t i = 0; i < FEW + 100; i++)
		put(&scene, TAILOR_EVENT_REPLY_BEGIN, 1, now_ns, 0);
	put(&scene, TAILOR_EVENT_REQUEST_END, 1, now_ns, 0);
	assert_int_equal(wait_for(&scene, 2, 1).stored, 1);
	assert_int_equal(tailor_observer_channels(scene.observer), 2);
	tailor_observer_losses(scene.observer, 0, &losses);
	assert_string_equal(losses.channel, "worker0");
	assert_string_equal(losses.kind, "worker");
	/* Or, if it came in between, less. */
	lost = losses.lost[TAILOR_LOST_OVERWRITTEN] + losses.lost[TAILOR_LOST_TORN];
	assert_true(lost > 0 && lost <= 101);
	assert_int_equal(losses.lost[TAILOR_LOST_DROPPED], 0);
	tailor_observer_losses(scene.observer, 1, &losses);
	assert_string_equal(losses.channel, "jvm:a");
	assert_string_equal(losses.kind, "jvm");
	assert_int_equal(losses.lost[TAILOR_LOST_OVERWRITTEN], 0);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_request_of_which_nothing_says_that_it_was_slow_is_dropped),
		cmocka_unit_test(late_requests_that_there_is_no_time_or_place_for_are_counted),
		cmocka_unit_test(what_a_workers_channel_overwrote_before_it_was_read_is_counted_as_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
