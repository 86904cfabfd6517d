/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/config_text.h"

#include <sched.h>

#include "http1/http1.h"

#define EVERY_STOP \
	(1 << TAILOR_STOP_GC | 1 << TAILOR_STOP_SAFEPOINT | 1 << TAILOR_STOP_STALL | 1 << TAILOR_STOP_SIGNAL | 1 << TAILOR_STOP_GONE)

static void the_smallest_config_gets_the_defaults(void **state)
{
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load("listen: 127.0.0.1:0\nservers: [{name: a, address: '127.0.0.1:9201'}]\n", &config, &complaints), 0);
	assert_int_equal(complaints.count, 0);
	assert_int_equal(config.servers, 1);
	assert_int_equal(config.workers, 1);
	assert_int_equal(config.slow_threshold_ns, 5000000);
	assert_int_equal(config.mode, TAILOR_CONFIG_ACTIVE_BACKUP);
	assert_int_equal(config.failover_on, EVERY_STOP);
	assert_int_equal(config.replay_when, TAILOR_CONFIG_REPLAY_PREDICTED);
	assert_int_equal(config.routes, 1);
	assert_string_equal(config.route[0].path, "");
	assert_true(config.replay_part == 0.1);
	assert_int_equal(config.replay_floor_per_s, 10);
	assert_int_equal(config.switch_min_ns, 100000000);
	assert_false(config.predict);
	assert_int_equal(config.collect, TAILOR_CONFIG_COLLECT_OFF);
	assert_int_equal(config.route[0].methods, 1 << HTTP1_GET | 1 << HTTP1_HEAD);
	assert_false(config.has_access_log);
	assert_false(config.has_admin);
	assert_false(config.has_agent);
	assert_string_equal(config.timelines_path, "./timelines");
	assert_int_equal(config.head_timeout_ns, 60000000000);
	assert_int_equal(config.body_timeout_ns, 60000000000);
	assert_int_equal(config.keep_alive_timeout_ns, 60000000000);
	assert_int_equal(config.request_timeout_ns, 0);
	assert_int_equal(config.queue_timeout_ns, 1000000000);
	assert_int_equal(config.per_address_max, 0);
	assert_int_equal(config.in_flight_max, 0);
	assert_int_equal(config.queue_max, 0);
	assert_int_equal(config.fields_max, 100);
	assert_int_equal(config.body_bytes_max, 0);
	assert_int_equal(config.replay_bytes, 64 << 10);
	assert_int_equal(config.replay_bytes_total, 64 << 20);
	assert_string_equal(config.via, "");
	assert_false(config.x_forwarded);
	assert_false(config.forwarded);
	assert_int_equal(config.upgrades, 0);
	assert_int_equal(config.stop_timeout_ns, 30000000000);
	assert_int_equal(config.busy_poll_ns, 0);
}

static void spinning_says_nothing_about_the_scheduler(void **state)
{
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load(GOOD "priority: {busy_poll: 1ms}\n", &config, &complaints), 0);
	assert_int_equal(config.busy_poll_ns, 1000000);
	assert_false(config.priority_given);
	assert_int_equal(config.nice, -10);
}

static void every_key_reaches_its_field(void **state)
{
	static const char text[] = GOOD "workers: 2\n"
	                                "user: daemon\n"
	                                "priority: {nice: -5, busy_poll: 50us}\n"
	                                "slow: {threshold: 7ms, baseline_one_in: 10}\n"
	                                "failover: {on: [], replay: [GET, POST]}\n"
	                                "timelines: {path: /x/y, max_size: 2MiB}\n"
	                                "access_log: {path: ./a.log, format: json}\n"
	                                "admin: {listen: \"unix:./admin.sock\"}\n"
	                                "agent: {socket: ./agent.sock, group: daemon}\n"
	                                "timeouts: {connect: 100ms, response: 2s, idle: 1m, stop: 90s}\n"
	                                "limits: {connections: 7, head_size: 8KiB}\n"
	                                "trace: {kernel: required, events_per_cpu: 4096, interrupts: true}\n";
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load(text, &config, &complaints), 0);
	assert_int_equal(config.servers, 2);
	assert_string_equal(config.server[1].name, "b");
	assert_int_equal(tailor_address_port(&config.server[1].address), 9202);
	assert_int_equal(config.workers, 2);
	assert_true(config.priority_given);
	assert_int_equal(config.nice, -5);
	assert_int_equal(config.fifo, 0);
	assert_true(config.has_user);
	assert_int_equal(config.user, 1);
	assert_int_equal(config.user_group, 1);
	assert_int_equal(config.slow_threshold_ns, 7000000);
	assert_int_equal(config.baseline_one_in, 10);
	assert_int_equal(config.failover_on, 0);
	assert_int_equal(config.route[0].methods, 1 << HTTP1_GET | 1 << HTTP1_POST);
	assert_string_equal(config.timelines_path, "/x/y");
	assert_int_equal(config.timelines_bytes_max, 2 << 20);
	assert_true(config.has_access_log);
	assert_string_equal(config.access_log_path, "./a.log");
	assert_int_equal(config.access_log_format, TAILOR_CONFIG_LOG_JSON);
	assert_true(config.has_admin);
	assert_true(config.has_agent);
	assert_string_equal(config.agent_socket, "./agent.sock");
	assert_true(config.has_agent_group);
	assert_int_equal(config.agent_group, 1); /* daemon: of every Linux Standard Base system */
	assert_int_equal(config.connect_timeout_ns, 100000000);
	assert_int_equal(config.response_timeout_ns, 2000000000);
	assert_int_equal(config.idle_timeout_ns, 60000000000);
	assert_int_equal(config.stop_timeout_ns, 90000000000);
	assert_int_equal(config.busy_poll_ns, 50000);
	assert_int_equal(config.connections_max, 7);
	assert_int_equal(config.head_bytes_max, 8192);
	assert_int_equal(config.trace, TAILOR_CONFIG_TRACE_REQUIRED);
	assert_int_equal(config.events_per_cpu, 4096);
	assert_true(config.trace_interrupts);
}

static void every_key_of_serving_reaches_its_field(void **state)
{
	static const char text[] = GOOD "timeouts: {connect: 1ms, response: 2ms, idle: 3ms, head: 4ms, body: 5ms, keep_alive: 6ms,\n"
	                                "  request: 7ms, queue: 8ms}\n"
	                                "limits: {connections: 11, per_address: 12, in_flight: 13, queue: 14, fields: 15, head_size: 16KiB,\n"
	                                "  body_size: 17KiB, replay_buffer: 18KiB, replay_total: 19MiB}\n"
	                                "forwarded: {via: edge-1, x_forwarded: true, forwarded: true}\n"
	                                "upgrade: [websocket, x/2]\n";
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load(text, &config, &complaints), 0);
	assert_int_equal(config.connect_timeout_ns, 1000000);
	assert_int_equal(config.response_timeout_ns, 2000000);
	assert_int_equal(config.idle_timeout_ns, 3000000);
	assert_int_equal(config.head_timeout_ns, 4000000);
	assert_int_equal(config.body_timeout_ns, 5000000);
	assert_int_equal(config.keep_alive_timeout_ns, 6000000);
	assert_int_equal(config.request_timeout_ns, 7000000);
	assert_int_equal(config.queue_timeout_ns, 8000000);
	assert_int_equal(config.connections_max, 11);
	assert_int_equal(config.per_address_max, 12);
	assert_int_equal(config.in_flight_max, 13);
	assert_int_equal(config.queue_max, 14);
	assert_int_equal(config.fields_max, 15);
	assert_int_equal(config.head_bytes_max, 16 << 10);
	assert_int_equal(config.body_bytes_max, 17 << 10);
	assert_int_equal(config.replay_bytes, 18 << 10);
	assert_int_equal(config.replay_bytes_total, 19 << 20);
	assert_string_equal(config.via, "edge-1");
	assert_true(config.x_forwarded);
	assert_true(config.forwarded);
	assert_int_equal(config.upgrades, 2);
	assert_string_equal(config.upgrade[0], "websocket");
	assert_string_equal(config.upgrade[1], "x/2");
}

static void every_key_of_failover_reaches_its_field(void **state)
{
	static const char text[] = GOOD "mode: balanced\n"
	                                "failover:\n"
	                                "  on: [safepoint, crash]\n"
	                                "  replay: [\"POST /*/_search\", HEAD, \"PUT   /a/**\", GET, \"GET /*/_search\"]\n"
	                                "  when: always\n"
	                                "  budget: {fraction: 2.5%, floor: 0}\n"
	                                "  switch_after: 0\n"
	                                "  predict: on\n"
	                                "  collect: young\n";
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load(text, &config, &complaints), 0);
	assert_int_equal(config.mode, TAILOR_CONFIG_BALANCED);
	assert_int_equal(config.failover_on, 1 << TAILOR_STOP_SAFEPOINT | 1 << TAILOR_STOP_GONE);
	assert_int_equal(config.routes, 3);
	assert_string_equal(config.route[0].path, "/*/_search");
	assert_int_equal(config.route[0].methods, 1 << HTTP1_POST | 1 << HTTP1_GET);
	assert_string_equal(config.route[1].path, "");
	assert_int_equal(config.route[1].methods, 1 << HTTP1_GET | 1 << HTTP1_HEAD);
	assert_string_equal(config.route[2].path, "/a/**");
	assert_int_equal(config.route[2].methods, 1 << HTTP1_PUT);
	assert_int_equal(config.replay_when, TAILOR_CONFIG_REPLAY_ALWAYS);
	assert_true(config.replay_part == 0.025);
	assert_int_equal(config.replay_floor_per_s, 0);
	assert_int_equal(config.switch_min_ns, 0);
	assert_true(config.predict);
	assert_int_equal(config.collect, TAILOR_CONFIG_COLLECT_YOUNG);
	assert_int_equal(load(GOOD "failover: {collect: full, predict: on}\n", &config, &complaints), 0);
	assert_int_equal(config.collect, TAILOR_CONFIG_COLLECT_FULL);
	assert_int_equal(load(GOOD "failover: {predict: off, collect: off}\n", &config, &complaints), 0);
	assert_false(config.predict);
}

static void what_was_written_before_there_was_more_means_the_same(void **state)
{
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load(GOOD "failover: {on: [gc], replay: [GET, HEAD, POST]}\n", &config, &complaints), 0);
	assert_int_equal(config.failover_on, 1 << TAILOR_STOP_GC);
	assert_int_equal(config.routes, 1);
	assert_int_equal(config.route[0].methods, 1 << HTTP1_GET | 1 << HTTP1_HEAD | 1 << HTTP1_POST);
	assert_int_equal(load(GOOD "failover: {replay: []}\n", &config, &complaints), 0);
	assert_int_equal(config.routes, 0);
	assert_int_equal(load(GOOD "failover: {on: [stall], budget: {fraction: 100%}}\n", &config, &complaints), 0);
	assert_int_equal(config.failover_on, 1 << TAILOR_STOP_STALL | 1 << TAILOR_STOP_SIGNAL);
	assert_true(config.replay_part == 1);
	assert_int_equal(config.replay_floor_per_s, 10);
}

static void the_idle_timeout_is_that_of_the_client_unless_said(void **state)
{
	struct complaints complaints;
	struct tailor_config config;

	(void)state;
	assert_int_equal(load(GOOD "timeouts: {body: 9s, idle: 3s, request: 0s}\nlimits: {body_size: 0}\nupgrade: []\n", &config, &complaints), 0);
	assert_int_equal(config.head_timeout_ns, 3000000000);
	assert_int_equal(config.body_timeout_ns, 9000000000);
	assert_int_equal(config.keep_alive_timeout_ns, 3000000000);
	assert_int_equal(config.request_timeout_ns, 0);
	assert_int_equal(config.upgrades, 0);
}

static void workers_can_be_as_many_as_cpus(void **state)
{
	struct complaints complaints;
	struct tailor_config config;
	cpu_set_t before, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(load(GOOD "workers: auto\n", &config, &complaints), 0);
	assert_int_equal(config.workers, CPU_COUNT(&before) < 16 ? CPU_COUNT(&before) : 16);
	CPU_ZERO(&one);
	for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(load(GOOD "workers: auto\n", &config, &complaints), 0);
	assert_int_equal(config.workers, 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_config_gets_the_defaults),
		cmocka_unit_test(spinning_says_nothing_about_the_scheduler),
		cmocka_unit_test(every_key_reaches_its_field),
		cmocka_unit_test(every_key_of_serving_reaches_its_field),
		cmocka_unit_test(every_key_of_failover_reaches_its_field),
		cmocka_unit_test(what_was_written_before_there_was_more_means_the_same),
		cmocka_unit_test(the_idle_timeout_is_that_of_the_client_unless_said),
		cmocka_unit_test(workers_can_be_as_many_as_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
