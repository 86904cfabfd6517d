/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the demo: a proxy in front of the two servers, and a load through it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/demo.h"
#include "cli/demo_gc_log.h"

#define SERVING_S 20
#define POLL_MS 100
#define SAY_NS (2 * TAILOR_NS_PER_S)
/* A run in which the machine itself stood still for longer tells more about its host than about failover. */
#define FROZEN_MS 5
#define REPEATS_MAX 2

/* Which server was active when: one look at the proxy's status each. */
struct look {
	uint64_t ns;
	int active; /* index in demo->server, -1 unknown */
};

struct watch {
	struct look *looks;
	size_t count;
	size_t room;
	uint64_t failed_over_at_begin; /* of the measured part */
	uint64_t failed_over;
	uint64_t requests;
	uint64_t measured_from_ns;
	uint64_t measured_to_ns;
};

static uint64_t get_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) && json_number_value(value) > 0 ? (uint64_t)json_number_value(value) : 0;
}

static int write_config(const struct demo *demo, const char *path, int failover, const char *timelines)
{
	cleanup_fclose FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	fprintf(file, "listen: 127.0.0.1:0\nservers:\n");
	for (int i = 0; i < DEMO_SERVERS; i++)
		fprintf(file, "  - {name: %s, address: \"%s\"}\n", demo->server[i].name, demo->server[i].address);
	fprintf(file,
	        "slow: {threshold: 5ms, baseline_one_in: 1000}\n"
	        "failover: {on: [%s], replay: [GET, HEAD]}\n"
	        "timelines: {path: \"%s\", max_size: 64MiB}\n"
	        "admin: {listen: \"unix:%s\"}\n"
	        "agent: {socket: \"%s\"}\n",
	        failover ? "gc" : "", timelines, demo->admin_socket, demo->agent_socket);
	return fflush(file) == 0 ? 0 : -errno;
}

/* Waits for the proxy's own word that it serves, then for both agents. */
static int wait_serving(struct demo *demo)
{
	uint64_t deadline_ns = tailor_clock_ns() + SERVING_S * TAILOR_NS_PER_S;
	int serving = 0, agents = 0;

	while (agents < DEMO_SERVERS) {
		json_t *status, *server;
		size_t i;
		int r = demo_process_wait(50);

		r = r ?: demo_servers_check(demo);
		if (r < 0)
			return r;
		if (!demo_process_running(&demo->proxy))
			return demo_fail_ended(&demo->proxy);
		if (tailor_clock_ns() >= deadline_ns)
			return serving ? demo_fail("only %d of %d agents have connected to %s; see %s", agents,
			                           DEMO_SERVERS, demo->agent_socket, demo->server[0].process.log)
			               : demo_fail("the proxy does not serve after %d s; see %s", SERVING_S,
			                           demo->proxy.log);
		serving = serving || demo_log_find(demo->proxy.log, "tailor: serving ", demo->proxy_address,
		                                   sizeof(demo->proxy_address));
		status = serving ? demo_status(demo->admin_socket) : NULL;
		agents = 0;
		json_array_foreach(json_object_get(status, "servers"), i, server) agents +=
		        json_is_true(json_object_get(server, "agent"));
		json_decref(status);
	}
	demo->proxy_address[strcspn(demo->proxy_address, " ,;\t")] = '\0';
	return 0;
}

static int start_proxy(struct demo *demo, int failover, const char *directory, const char *timelines)
{
	char config[PATH_MAX], log[PATH_MAX];
	char *argv[] = {"/proc/self/exe", "proxy", "-c", config, NULL};
	int r;

	r = demo_path(config, directory, "tailor.yaml");
	r = r ?: demo_path(log, directory, "proxy.log");
	r = r ?: write_config(demo, config, failover, timelines);
	if (r < 0)
		return demo_fail("cannot write %s: %s; choose another directory with --dir", config, strerror(-r));
	demo->proxy_address[0] = '\0';
	/* SIGTERM: it removes its sockets. */
	r = demo_process_start(&(struct demo_start){.name = "the proxy",
	                                            .argv = argv,
	                                            .log = log,
	                                            .death_signal = SIGTERM,
	                                            .nice = DEMO_NICE_PROXY},
	                       &demo->proxy);
	if (r < 0)
		return demo_fail("cannot start the proxy: %s", strerror(-r));
	return wait_serving(demo);
}

static int start_load(struct demo *demo, const char *directory, char result[PATH_MAX])
{
	char paths[PATH_MAX], log[PATH_MAX], rate[16], duration[16], warm[16], url[96];
	char *argv[] = {"/proc/self/exe", "load", "--allow-late", "--rate", rate, "--duration", duration, "--warm", warm,
	                "--paths",        paths,  "--json", url,  NULL};
	int r;

	r = demo_path(paths, demo->options.dir, "paths.txt");
	r = r ?: demo_path(log, directory, "load.log");
	r = r ?: demo_path(result, directory, "load.json");
	r = r ?: demo_terms_write(paths);
	if (r < 0)
		return demo_fail("cannot write %s: %s; choose another directory with --dir", paths, strerror(-r));
	snprintf(rate, sizeof(rate), "%u", demo->options.rate);
	snprintf(duration, sizeof(duration), "%us", demo->options.seconds);
	snprintf(warm, sizeof(warm), "%us", DEMO_WARM_S);
	snprintf(url, sizeof(url), "http://%s/", demo->proxy_address);
	r = demo_process_start(&(struct demo_start){.name = "the load",
	                                            .argv = argv,
	                                            .out = result,
	                                            .log = log,
	                                            .death_signal = SIGKILL,
	                                            .nice = DEMO_NICE_LOAD},
	                       &demo->load);
	return r < 0 ? demo_fail("cannot start the load: %s", strerror(-r)) : 0;
}

static int look(struct demo *demo, struct watch *watch)
{
	json_t *status = demo_status(demo->admin_socket);
	/* After the answer: a collection that begins later than this is not in it. */
	uint64_t now_ns = tailor_clock_ns();
	const char *active = json_string_value(json_object_get(status, "active"));
	int index = -1;

	if (!status)
		return 0;
	for (int i = 0; active && i < DEMO_SERVERS; i++) {
		if (strcmp(active, demo->server[i].name) == 0)
			index = i;
	}
	watch->requests = get_number(status, "requests");
	watch->failed_over = get_number(status, "failed_over");
	if (now_ns < watch->measured_from_ns)
		watch->failed_over_at_begin = watch->failed_over;
	json_decref(status);
	if (watch->count == watch->room) {
		size_t more = watch->room ? watch->room * 2 : 256;
		struct look *larger = reallocarray(watch->looks, more, sizeof(*larger));

		if (!larger)
			return demo_fail("out of memory");
		watch->looks = larger;
		watch->room = more;
	}
	watch->looks[watch->count++] = (struct look){.ns = now_ns, .active = index};
	return 0;
}

/*
 * Whether `server` was active at `ns`: by the last look before it. Between that look and `ns` nothing but the start of
 * the other server's collection could have changed it, which is 1 s away at this load.
 */
static int was_active(const struct watch *watch, int server, uint64_t ns)
{
	int active = -1;

	for (size_t i = 0; i < watch->count && watch->looks[i].ns < ns; i++)
		active = watch->looks[i].active;
	return active == server;
}

static int count_collections(struct demo *demo, const struct watch *watch, uint64_t from_ns, uint64_t to_ns,
                             struct demo_run *run)
{
	run->collections = 0;
	run->longest_collection_ms = 0;
	for (int i = 0; i < DEMO_SERVERS; i++) {
		cleanup_free struct demo_collection *collections = NULL;
		size_t count = 0;
		int r = demo_gc_log_read(demo->server[i].gc_log, from_ns, to_ns, &collections, &count);

		if (r < 0)
			return demo_fail("cannot read %s: %s", demo->server[i].gc_log, strerror(-r));
		for (size_t j = 0; j < count; j++) {
			double ms = (double)(collections[j].end_ns - collections[j].begin_ns) / 1e6;

			if (!was_active(watch, i, collections[j].begin_ns))
				continue;
			run->collections++;
			if (ms > run->longest_collection_ms)
				run->longest_collection_ms = ms;
		}
	}
	return 0;
}

static void say_load(struct demo *demo, const struct watch *watch, uint64_t load_from_ns, struct demo_run *run)
{
	uint64_t now_ns = tailor_clock_ns();
	uint64_t elapsed_s = (now_ns - load_from_ns) / TAILOR_NS_PER_S;
	unsigned int all_s = DEMO_WARM_S + demo->options.seconds;

	if (count_collections(demo, watch, load_from_ns, now_ns, run) < 0)
		return;
	demo_say(demo,
	         "failover %s: %s, %lu of %u s, %lu requests, %lu collections on the active server (longest %.0f ms), "
	         "%lu moved",
	         run->failover ? "on" : "off", elapsed_s < DEMO_WARM_S ? "warming up" : "measuring",
	         (unsigned long)(elapsed_s < all_s ? elapsed_s : all_s), all_s, (unsigned long)watch->requests,
	         (unsigned long)run->collections, run->longest_collection_ms, (unsigned long)watch->failed_over);
}

/* Watches until the load has ended. */
static int watch_load(struct demo *demo, struct watch *watch, struct demo_run *run)
{
	uint64_t from_ns = tailor_clock_ns(), next_ns = from_ns + SAY_NS;
	uint64_t deadline_ns = from_ns + (DEMO_WARM_S + demo->options.seconds + 30) * TAILOR_NS_PER_S;
	int r;

	watch->measured_from_ns = from_ns + DEMO_WARM_S * TAILOR_NS_PER_S;
	while (demo_process_running(&demo->load)) {
		r = look(demo, watch);
		r = r ?: demo_process_wait(POLL_MS);
		r = r ?: demo_servers_check(demo);
		if (r < 0)
			return r;
		if (!demo_process_running(&demo->proxy))
			return demo_fail_ended(&demo->proxy);
		if (tailor_clock_ns() >= next_ns) {
			next_ns += SAY_NS;
			say_load(demo, watch, from_ns, run);
		}
		if (tailor_clock_ns() >= deadline_ns)
			return demo_fail("the load does not end; see %s", demo->load.log);
	}
	watch->measured_to_ns = tailor_clock_ns();
	/* A load that was stopped by a signal is reported by its result, which is then absent. */
	if (demo->load.status != 0 && !WIFEXITED(demo->load.status))
		return demo_fail_ended(&demo->load);
	return look(demo, watch);
}

static int read_result(const struct demo *demo, const char *path, struct demo_run *run)
{
	json_t *result = json_load_file(path, 0, NULL), *response = json_object_get(result, "response");
	static const char *const names[] = {"p50_ms", "p99_ms", "p999_ms", "max_ms"};
	double *const values[] = {&run->p50_ms, &run->p99_ms, &run->p999_ms, &run->max_ms};
	const json_t *stall;
	char line[256];
	int whole =
	        json_is_number(json_object_get(result, "requests")) && json_is_number(json_object_get(result, "good"));

	for (int i = 0; i < 4; i++) {
		const json_t *value = json_object_get(response, names[i]);

		whole = whole && json_is_number(value);
		*values[i] = json_number_value(value);
	}
	stall = json_object_get(json_object_get(result, "host_stall"), "longest_ms");
	run->host_stall_ms = json_is_number(stall) ? json_number_value(stall) : -1;
	run->requests = get_number(result, "requests");
	run->bad = run->requests - get_number(result, "good");
	json_decref(result);
	if (!whole || run->requests == 0)
		return demo_fail("the load measured nothing: %s; see %s",
		                 demo_log_last_line(demo->load.log, line, sizeof(line)), demo->load.log);
	return 0;
}

/* As `tailor dump --since` takes it: what was slow while everything warmed up is none of the run's. */
static void write_moment(uint64_t clock_ns, char *text, size_t size)
{
	uint64_t now_ns = tailor_clock_ns(), wall_ns = 0;
	struct timespec wall;
	struct tm parts;
	char seconds[32];

	clock_gettime(CLOCK_REALTIME, &wall);
	wall_ns = (uint64_t)wall.tv_sec * TAILOR_NS_PER_S + (uint64_t)wall.tv_nsec - (now_ns - clock_ns);
	wall.tv_sec = (time_t)(wall_ns / TAILOR_NS_PER_S);
	strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", gmtime_r(&wall.tv_sec, &parts));
	snprintf(text, size, "%s.%03uZ", seconds, (unsigned int)(wall_ns % TAILOR_NS_PER_S / TAILOR_NS_PER_MS));
}

static int run_in(struct demo *demo, const char *directory, struct watch *watch, struct demo_run *run)
{
	char result[PATH_MAX];
	int r;

	r = start_proxy(demo, run->failover, directory, run->timelines);
	r = r ?: start_load(demo, directory, result);
	r = r ?: watch_load(demo, watch, run);
	r = r ?: read_result(demo, result, run);
	r = r ?: count_collections(demo, watch, watch->measured_from_ns, watch->measured_to_ns, run);
	if (r < 0)
		return r;
	write_moment(watch->measured_from_ns, run->measured_from, sizeof(run->measured_from));
	run->failed_over = watch->failed_over - watch->failed_over_at_begin;
	return 0;
}

static int run_once(struct demo *demo, int failover, unsigned int repeats, struct demo_run *ret_run)
{
	struct watch watch = {0};
	char directory[PATH_MAX], name[32];
	int r;

	*ret_run = (struct demo_run){.failover = failover, .repeats = repeats};
	demo_say(demo, "failover %s: %u requests/s for %u s, after %d s to warm up", failover ? "on" : "off",
	         demo->options.rate, demo->options.seconds, DEMO_WARM_S);
	if (repeats)
		snprintf(name, sizeof(name), "failover-%s-%u", failover ? "on" : "off", repeats + 1);
	else
		snprintf(name, sizeof(name), "failover-%s", failover ? "on" : "off");
	r = demo_path(directory, demo->options.dir, name);
	r = r ?: demo_path(ret_run->timelines, directory, "timelines");
	if (r < 0)
		return demo_fail("the path %s is too long; choose a shorter one with --dir", demo->options.dir);
	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return demo_fail("cannot create %s: %s; choose another directory with --dir", directory,
		                 strerror(errno));
	r = run_in(demo, directory, &watch, ret_run);
	free(watch.looks);
	return r;
}

int demo_run(struct demo *demo, int failover, int leave_proxy, struct demo_run *ret_run)
{
	for (unsigned int repeats = 0;; repeats++) {
		int r = run_once(demo, failover, repeats, ret_run);
		int again = r == 0 && ret_run->host_stall_ms > FROZEN_MS && repeats < REPEATS_MAX;

		if (r == 0 && (again || !leave_proxy))
			demo_process_stop(&demo->proxy, 8000);
		if (!again)
			return r;
		demo_say(demo, "failover %s: the machine itself stood still for %.0f ms meanwhile: measuring again",
		         failover ? "on" : "off", ret_run->host_stall_ms);
	}
}
