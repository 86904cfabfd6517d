/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration may not say, and how that is told. */
#include "tests/unit/config_text.h"

#include <errno.h>
#include <time.h>

#define SERVER(i, j) "{name: s" #i #j ", address: '127.0.0.1:" #i #j "'}"
#define FOUR(i) SERVER(i, 1) ", " SERVER(i, 2) ", " SERVER(i, 3) ", " SERVER(i, 4)
#define FOUR_ROUTES(i) "GET /" #i "/1, GET /" #i "/2, GET /" #i "/3, GET /" #i "/4"

static void each_mistake_is_named_with_its_line(void **state)
{
	static const struct {
		const char *text;
		unsigned int line;
		const char *says; /* must be part of the complaint */
	} cases[] = {
		{"", 1, "no settings"},
		{"just text", 1, "no settings"},
		{"listen: [1", 2, "did not find"},
		{SERVERS, 1, "\"listen\" is missing"},
		{"listen: 127.0.0.1:8080\n", 1, "\"servers\" is missing"},
		{GOOD "slwo: {threshold: 5ms}\n", 5, "unknown key \"slwo\""},
		{GOOD "\"\": 1\n", 5, "unknown key \"\""},
		{GOOD "slow:\n  threshold: 5ms\n  basline: 3\n", 7, "unknown key \"slow.basline\""},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a}\n", 3, "\"servers.address\" is missing"},
		{GOOD "slow:\n  threshold: 5\n", 6, "\"5\" is not a duration"},
		{GOOD "slow:\n  threshold: 5MB\n", 6, "\"5MB\" is not a duration"},
		{GOOD "timelines:\n  path: x\n  max_size: 5ms\n", 7, "\"5ms\" is not a size"},
		{GOOD "timelines: {max_size: 1KiB}\n", 5, "out of range"},
		{GOOD "priority: {nice: -21}\n", 5, "priority.nice: \"-21\" is not a whole number from -20 to 19"},
		{GOOD "priority: {nice: 5, fifo: 3}\n", 5, "has both"},
		{GOOD "priority: {fifo: 100}\n", 5, "priority.fifo: 100 is out of range"},
		{GOOD "user: nobody-of-that-name\n", 5, "user: this host has no user \"nobody-of-that-name\""},
		{GOOD "workers: 0\n", 5, "workers: 0 is out of range"},
		{GOOD "workers: -1\n", 5, "workers"},
		{GOOD "workers: many\n", 5, "workers"},
		{GOOD "workers: -1\n", 5, "workers: \"-1\" is not a whole number"},
		{GOOD "workers: 2.5\n", 5, "workers: \"2.5\" is not a whole number"},
		{GOOD "limits: {connections: 99999999999}\n", 5, "limits.connections: 99999999999 is out of range; from 1 to 1000000"},
		{GOOD "limits: {connections: 1000001}\n", 5, "limits.connections: 1000001 is out of range; from 1 to 1000000"},
		{GOOD "limits: {connections: -1}\n", 5, "limits.connections: \"-1\" is not a whole number from 1 to 1000000"},
		{GOOD "slow: {baseline_one_in: many}\n", 5, "slow.baseline_one_in: \"many\" is not a whole number from 0 to 4294967295"},
		{GOOD "limits: {fields: 0x10}\n", 5, "limits.fields: \"0x10\" is not a whole number from 1 to 128"},
		{GOOD "limits: {fields: [1]}\n", 5, "limits.fields: is not a single value"},
		{GOOD "failover: {on: [gcc]}\n", 5, "failover.on: \"gcc\" is not one of: gc, safepoint, stall, crash"},
		{GOOD "failover: {on: gc}\n", 5, "failover.on: is not a list; write it in brackets"},
		{GOOD "mode: both\n", 5, "mode: \"both\" is not one of: active-backup, balanced"},
		{GOOD "failover: {when: sometimes}\n", 5, "failover.when: \"sometimes\" is not one of: predicted, always, never"},
		{GOOD "failover: {replay: GET}\n", 5, "failover.replay: is not a list"},
		{GOOD "failover:\n  replay:\n    - GET\n    - POST _search\n", 8, "failover.replay: the path \"_search\" does not begin with /"},
		{GOOD "failover:\n  replay:\n    - get /\n", 7, "failover.replay: \"get\" is not one of: GET, HEAD, POST"},
		{GOOD "failover:\n  replay:\n    - POST /**/x\n", 7, "has ** before its end"},
		{GOOD "failover:\n  replay:\n    - POST /a?b\n", 7, "has a ? or #"},
		{GOOD "failover:\n  replay:\n    - \"POST /a\\\\b\"\n", 7, "which no route matches"},
		{GOOD "failover:\n  replay:\n    - POST /a b\n", 7, "has characters that no path has"},
		{GOOD "failover: {replay: [\"\"]}\n", 5, "failover.replay: \"\" is not one of"},
		{GOOD "failover:\n  replay: [" FOUR_ROUTES(1) ", " FOUR_ROUTES(2) ", " FOUR_ROUTES(3) ",\n " FOUR_ROUTES(4) ",\n GET]\n", 8, "more than 16 different paths"},
		{GOOD "failover:\n  budget:\n    fraction: 10\n", 7, "failover.budget.fraction: \"10\" is not a percentage"},
		{GOOD "failover: {budget: {fraction: .5%}}\n", 5, "failover.budget.fraction: \".5%\" is not a percentage"},
		{GOOD "failover: {budget: {fraction: 1.%}}\n", 5, "failover.budget.fraction: \"1.%\" is not a percentage"},
		{GOOD "failover: {budget: {fraction: 101%}}\n", 5, "failover.budget.fraction: \"101%\" is too much"},
		{GOOD "failover: {budget: {floor: -1}}\n", 5, "failover.budget.floor: \"-1\" is not a whole number"},
		{GOOD "failover: {budget: 10%}\n", 5, "failover.budget: is not a section"},
		{GOOD "failover: {budget: {flor: 1}}\n", 5, "unknown key \"failover.budget.flor\""},
		{GOOD "failover: {switch_after: 2h}\n", 5, "failover.switch_after: \"2h\" is too long"},
		{GOOD "failover: {predict: yes}\n", 5, "failover.predict: \"yes\" is not one of: off, on"},
		{GOOD "failover:\n  predict: on\n  collect: all\n", 7, "failover.collect: \"all\" is not one of: off, young, full"},
		{"listen: 127.0.0.1:8080\nservers: [{name: a, address: \"127.0.0.1:9001\"}]\nfailover:\n  predict: on\n", 4,
	         "failover.predict: there is no other server that requests could go to"},
		{GOOD "failover:\n  collect: full\n", 6, "failover.collect: collections are brought about only with `predict: on`"},
		{GOOD "failover: {replay: [BREW]}\n", 5, "failover.replay: \"BREW\" is not one of: GET, HEAD, POST"},
		{GOOD "trace: {kernel: maybe}\n", 5, "trace.kernel: \"maybe\" is not one of: auto, off, required"},
		{GOOD "slow: 5ms\n", 5, "slow: is not a section"},
		{GOOD "timelines: {path: [a]}\n", 5, "timelines.path: is not a single value"},
		{GOOD "---\nslow: {threshold: 1ms}\n", 5, "second document"},
		{GOOD "admin: {listen: 127.0.0.1:8080}\n", 5, "admin.listen: \"127.0.0.1:8080\" is where the clients are served"},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a, address: 127.0.0.1:8080}\n", 3, "is the proxy itself"},
		{"listen: 0.0.0.0:8080\nservers:\n  - {name: a, address: 127.0.0.1:8080}\n", 3, "is the proxy itself"},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a, address: 0.0.0.0:8080}\n", 3, "is the proxy itself"},
		{"listen: 0.0.0.0:8080\nservers:\n  - {name: a, address: 0.0.0.0:8080}\n", 3, "is the proxy itself"},
		{"listen: '[::1]:8080'\nservers:\n  - {name: a, address: '[::]:8080'}\n", 3, "is the proxy itself"},
		{"listen: '[::]:8080'\nservers:\n  - {name: a, address: 127.0.0.1:8080}\n", 3, "is the proxy itself"},
		{GOOD "admin: {listen: 127.0.0.1:9202}\n", 5, "admin.listen: \"127.0.0.1:9202\" is the address of server \"b\""},
		{GOOD "admin:\n  listen: unix:./a.sock\nagent: {socket: ./a.sock}\n", 7, "agent.socket: \"./a.sock\" is the socket of admin.listen"},
		{GOOD "trace: {events_per_cpu: 5000}\n", 5, "power of two"},
		{GOOD "trace: {interrupts: 1}\n", 5, "trace.interrupts"},
		{GOOD "admin: {listen: 0.0.0.0:9000}\n", 5, "reachable from outside"},
		{GOOD "listen: 127.0.0.1:1\n", 5, "\"listen\" stands twice"},
		{"listen: localhost:8080\n" SERVERS, 1, "is not an address"},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a, address: 127.0.0.1:1}\n  - {name: a, address: 127.0.0.1:2}\n", 4,
		 "two named \"a\""},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a, address: 127.0.0.1:1}\n  - {name: b, address: 127.0.0.1:1}\n", 4,
		 "same address"},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a, address: 127.0.0.1:0}\n", 3, "port 0"},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: 'a b', address: 127.0.0.1:2}\n", 3, "is no name"},
		{"listen: 127.0.0.1:8080\nservers: []\n", 2, "servers"},
		{"listen: 127.0.0.1:8080\nservers: [" FOUR(1) ", " FOUR(2) ", " FOUR(3) ", " FOUR(4) ", " SERVER(5, 1) "]\n", 2, "at most 16"},
		{"listen: &a 127.0.0.1:8080\nservers: [{name: x, address: *a}]\n", 2, "servers.address: is an alias"},
		{"? [a]\n: b\n" GOOD, 1, "a key is not a plain word"},
		{GOOD "timeouts: {head: 0s}\n", 5, "timeouts.head: \"0s\" is too short; at least 1ms"},
		{GOOD "timeouts: {request: 1ns}\n", 5, "timeouts.request: \"1ns\" is too short; at least 1ms, or 0 for none"},
		{GOOD "timeouts:\n  connect: 1us\n", 6, "timeouts.connect: \"1us\" is too short"},
		{GOOD "timeouts: {stop: 25h}\n", 5, "timeouts.stop: \"25h\" is too long; at most 24h"},
		{GOOD "slow: {threshold: 2h}\n", 5, "slow.threshold: \"2h\" is too long; at most 1h"},
		{GOOD "priority: {busy_poll: 1s}\n", 5, "priority.busy_poll: \"1s\" is too long; at most 100ms"},
		{GOOD "limits:\n  body_size: 1024GiB\n", 6, "limits.body_size: \"1024GiB\" is out of range; from 0 to 64GiB"},
		{GOOD "limits: {replay_total: 1024GiB}\n", 5, "limits.replay_total: \"1024GiB\" is out of range"},
		{GOOD "timelines: {max_size: 1024GiB}\n", 5, "timelines.max_size: \"1024GiB\" is out of range; from 1MiB to 256GiB"},
		{GOOD "limits: {body_size: 2000000GiB}\n", 5, "limits.body_size: \"2000000GiB\" is out of range; from 0 to 64GiB"},
		{GOOD "timeouts: {idle: 2000h}\n", 5, "timeouts.idle: \"2000h\" is too long; at most 24h"},
		{GOOD "limits: {head_size: 100}\n", 5, "limits.head_size: \"100\" is out of range; from 1KiB to 64KiB"},
		{GOOD "agent: {group: root}\n", 5, "\"agent.socket\" is missing"},
		{"listen: 127.0.0.1:8080\nservers:\n  - {name: a, address: 127.0.0.1:1, adress: x}\n", 3, "unknown key \"servers[0].adress\""},
		{GOOD "upgrade:\n  - websocket\n  - x/2\n  - WebSocket\n", 8, "upgrade: \"WebSocket\" stands twice"},
		{GOOD "timeouts: {request: soon}\n", 5, "timeouts.request: \"soon\" is not a duration"},
		{GOOD "limits: {per_address: 1048577}\n", 5, "limits.per_address: 1048577 is out of range"},
		{GOOD "limits: {fields: 0}\n", 5, "limits.fields: 0 is out of range; from 1 to 128"},
		{GOOD "limits:\n  queue: 5\n", 6, "limits.queue: nothing waits as long as limits.in_flight is 0"},
		{GOOD "limits: {body_size: 5ms}\n", 5, "limits.body_size: \"5ms\" is not a size"},
		{GOOD "limits: {replay_buffer: 17MiB}\n", 5, "limits.replay_buffer: \"17MiB\" is out of range"},
		{GOOD "limits: {replay_total: 63KiB}\n", 5, "less than one request's replay_buffer of 64KiB; raise it"},
		{GOOD "forwarded: {via: \"a b\"}\n", 5, "forwarded.via: \"a b\" is no name"},
		{GOOD "forwarded: {via: \"\"}\n", 5, "forwarded.via: \"\" is no name"},
		{GOOD "forwarded: {forwarded: maybe}\n", 5, "forwarded.forwarded: \"maybe\" is not true or false"},
		{GOOD "upgrade: [websocket, H2C]\n", 5, "upgrade: \"H2C\" is HTTP, which this proxy would not understand"},
		{GOOD "upgrade: [\"a,b\"]\n", 5, "upgrade: \"a,b\" is no protocol"},
		{GOOD "upgrade: websocket\n", 5, "upgrade: is not a list; write it in brackets"},
		{GOOD "upgrade: [a, b, c, d, e]\n", 5, "upgrade: has too many items; at most 4"},
		{GOOD "agent: {socket: ./a.sock, group: no-such-group}\n", 5, "has no group \"no-such-group\""},
		{GOOD "agent:\n  socket: ./a.sock\n  group: 12x\n", 7, "has no group \"12x\""},
		{GOOD "agent: {socket: /a/path/that/is/much/too/long/for/a/unix/socket/because/it/goes/on/and/on/until/the/limit/of/sun_path/is/passed.sock}\n", 5,
		 "the system allows 107"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct complaints complaints;
		struct tailor_config config;

		assert_int_equal(load(cases[i].text, &config, &complaints), -EINVAL);
		if (complaints.line != cases[i].line || !strstr(complaints.text, cases[i].says))
			fail_msg("%s\ngave line %u: %s", cases[i].text, complaints.line, complaints.text);
	}
}

static void a_server_at_the_proxys_port_of_another_address_is_no_loop(void **state)
{
	static const char *const cases[] = {
		"listen: 0.0.0.0:8080\nservers: [{name: a, address: '[::1]:8080'}]\n",
		"listen: 0.0.0.0:8080\nservers: [{name: a, address: '[::]:8080'}]\n",
		"listen: 127.0.0.1:8080\nservers: [{name: a, address: 127.0.0.2:8080}]\n",
		"listen: '[::]:8080'\nservers: [{name: a, address: 192.0.2.1:8080}]\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct complaints complaints;
		struct tailor_config config;

		if (load(cases[i], &config, &complaints) != 0)
			fail_msg("%s\ngave: %s", cases[i], complaints.text);
	}
}

/* All complaints, one after the other. */
struct all {
	unsigned int count;
	struct {
		unsigned int line;
		char text[256];
	} complaint[16];
};

static void keep_all(void *context, unsigned int line, const char *text)
{
	struct all *all = context;

	assert_true(all->count < sizeof(all->complaint) / sizeof(all->complaint[0]));
	all->complaint[all->count].line = line;
	snprintf(all->complaint[all->count++].text, sizeof(all->complaint[0].text), "%s", text);
}

static void mistakes_of_every_kind_are_all_named_in_the_order_of_lines(void **state)
{
	static const struct {
		const char *text;
		struct {
			unsigned int line;
			const char *says;
		} complaint[8];
	} cases[] = {
		{GOOD "timeouts: {idle: 3}\nslow: {threshold: soon}\nworkers: 99\n",
	         {{5, "timeouts.idle: \"3\" is not a duration"}, {6, "slow.threshold: \"soon\""}, {7, "workers: 99 is out of range"}}},
		{GOOD "slwo: {threshold: 5ms}\nlimits: {queue: 5}\nworkers: 99\ntimeouts:\n  foo: 1s\n",
	         {{5, "unknown key \"slwo\""}, {6, "limits.queue: nothing waits"}, {7, "workers: 99"}, {9, "unknown key \"timeouts.foo\""}}},
		{GOOD "failover: {when: sometimes, predict: yes}\nmode: both\nupgrade: websocket\nworkers: [1]\n",
	         {{5, "failover.when"}, {5, "failover.predict"}, {6, "mode: \"both\""}, {7, "upgrade: is not a list"}, {8, "workers: is not a single value"}}},
		{GOOD "workers: 99\nworkers: 2\nlisten: 127.0.0.1:1\nmode: both\n",
	         {{5, "workers: 99"}, {6, "key \"workers\" stands twice"}, {7, "key \"listen\" stands twice"}, {8, "mode"}}},
		{"workers: 99\nfailover: {predict: on}\n",
	         {{1, "\"listen\" is missing"}, {1, "\"servers\" is missing"}, {1, "workers: 99"}}},
		{"servers:\n  - {name: a}\nlisten: nowhere\nworkers: 99\n",
	         {{2, "\"servers.address\" is missing"}, {3, "listen: \"nowhere\" is not an address"}, {4, "workers: 99"}}},
		{"# \xc3\xbc\r\n" GOOD "\"mode\": both\r\nworkers: 99\n", {{6, "mode: \"both\""}, {7, "workers: 99"}}},
		{GOOD "agent: {socket: [a], group: no-such-group}\nworkers: 99\n", {{5, "agent.socket: is not a single value"}, {6, "workers: 99"}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tailor_config config;
		struct all all = {0};
		unsigned int wanted = 0;

		assert_int_equal(load_with(cases[i].text, &config, keep_all, &all), -EINVAL);
		for (; wanted < 8 && cases[i].complaint[wanted].says; wanted++) {
			if (all.complaint[wanted].line != cases[i].complaint[wanted].line ||
			    !strstr(all.complaint[wanted].text, cases[i].complaint[wanted].says))
				fail_msg("%s\ngave line %u: %s", cases[i].text, all.complaint[wanted].line, all.complaint[wanted].text);
		}
		if (all.count != wanted)
			fail_msg("%s\ngave %u complaints, also: %s", cases[i].text, all.count, all.complaint[wanted].text);
	}
}

static void what_was_not_read_is_no_ground_to_judge_another_value(void **state)
{
	static const char *const cases[] = {
		GOOD "limits: {in_flight: x, queue: 5}\n",
		GOOD "limits: {in_flight: [1], queue: 5}\n",
		GOOD "limits: {replay_buffer: 1XB, replay_total: 1KiB}\n",
		GOOD "failover: {predict: yes, collect: full}\n",
		"listen: 127.0.0.1:8080\nservers: 3\nfailover: {predict: on}\n",
		GOOD "agent: {socket: [1], group: root}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct complaints complaints;
		struct tailor_config config;

		assert_int_equal(load(cases[i], &config, &complaints), -EINVAL);
		if (complaints.count != 1)
			fail_msg("%s\ngave %u complaints", cases[i], complaints.count);
	}
}

static void a_complaint_is_one_line_whatever_the_file_holds(void **state)
{
	static const char *const cases[] = {
		GOOD "slow: {threshold: \"5\\nms\"}\n",
		GOOD "timeouts:\n  idle: |\n    5s\n",
		GOOD "\"\\e[2J\": 1\n",
		GOOD "\"a\\nb\": 1\n\"a\\nb\": 1\n",
		GOOD "failover: {on: [\"\\x9b2J\"]}\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct complaints complaints;
		struct tailor_config config;

		assert_int_equal(load(cases[i], &config, &complaints), -EINVAL);
		for (const char *at = complaints.text; *at; at++) {
			if ((uint8_t)*at < ' ' || *at == 0x7f || ((uint8_t)*at == 0xc2 && (uint8_t)at[1] < 0xa0))
				fail_msg("%s\ngave: %s", cases[i], complaints.text);
		}
	}
}

/* `times` times the text, between the others; to be freed. */
static char *repeated(const char *before, const char *text, size_t times, const char *behind)
{
	size_t length = strlen(text);
	char *whole = malloc(strlen(before) + times * length + strlen(behind) + 1), *to;

	assert_non_null(whole);
	to = stpcpy(whole, before);
	for (size_t i = 0; i < times; i++)
		to = stpcpy(to, text);
	strcpy(to, behind);
	return whole;
}

static void a_file_that_no_person_wrote_is_refused_at_once(void **state)
{
	static const struct {
		const char *before, *text;
		size_t times;
		const char *behind;
		unsigned int line;
		const char *says;
	} cases[] = {
		{"a: ", "[", 1000000, "", 1, "nested more than 32"},
		{GOOD "---\na: ", "{a: ", 200000, "", 6, "nested more than 32"},
		{"", "- ", 500000, "", 1, "nested more than 32"},
		{GOOD "x: [", "&a b, ", 150000, "]", 5, "more than 5000"},
		{GOOD, "a:\n", 300000, "", 1660, "more than 5000"},
		{"", "%TAG !a! b\n", 90000, "---\n" GOOD, 5001, "more than 5000"},
		{GOOD, "# so much to say\n", 65536, "", 0, "larger than 1 MiB"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = repeated(cases[i].before, cases[i].text, cases[i].times, cases[i].behind);
		struct timespec from, to;
		struct complaints complaints;
		struct tailor_config config;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		assert_true(load(text, &config, &complaints) < 0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		free(text);
		assert_int_equal(complaints.count, 1);
		if (complaints.line != cases[i].line || !strstr(complaints.text, cases[i].says))
			fail_msg("case %zu gave line %u: %s", i, complaints.line, complaints.text);
		assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 1000);
	}
}

static void nesting_and_size_within_the_bounds_are_read(void **state)
{
	struct complaints complaints;
	struct tailor_config config;
	char *text = repeated(GOOD "x: ", "[", 31, "1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n");

	(void)state;
	assert_int_equal(load(text, &config, &complaints), -EINVAL);
	assert_non_null(strstr(complaints.text, "unknown key \"x\""));
	free(text);
	text = repeated(GOOD, "# so much to say\n", 60000, "workers: 2\n");
	assert_int_equal(load(text, &config, &complaints), 0);
	assert_int_equal(config.workers, 2);
	free(text);
}

static void a_file_that_is_not_there_says_why(void **state)
{
	struct complaints complaints = {0};
	struct tailor_config config;

	(void)state;
	assert_int_equal(tailor_config_load("/nonexistent/tailor.yaml", &config, keep_first, &complaints), -ENOENT);
	assert_int_equal(complaints.line, 0);
	assert_non_null(strstr(complaints.text, "No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mistake_is_named_with_its_line),
		cmocka_unit_test(a_server_at_the_proxys_port_of_another_address_is_no_loop),
		cmocka_unit_test(mistakes_of_every_kind_are_all_named_in_the_order_of_lines),
		cmocka_unit_test(what_was_not_read_is_no_ground_to_judge_another_value),
		cmocka_unit_test(a_complaint_is_one_line_whatever_the_file_holds),
		cmocka_unit_test(a_file_that_no_person_wrote_is_refused_at_once),
		cmocka_unit_test(nesting_and_size_within_the_bounds_are_read),
		cmocka_unit_test(a_file_that_is_not_there_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
