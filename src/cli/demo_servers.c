/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/demo.h"

/*
 * Under Serial at 200 requests a second: a collection every 1.1 s, by turns a young one of 50-70 ms and a full one of
 * 100-120 ms, and searches of 0.7 ms in between. How these sizes act is measured in examples/search-server/README.md.
 * Touched in advance, so that the first collections do not measure the kernel's zeroing of pages.
 */
#define HEAP_FLAGS "-XX:+UseSerialGC", "-Xms192m", "-Xmx192m", "-Xmn96m", "-XX:+AlwaysPreTouch"
#define HEAP_LOAD "--live-set", "48MiB", "--tenure", "160KiB", "--garbage", "128KiB"

#define READY_S 120 /* the first start builds the index */

static int start(struct demo *demo, struct demo_server *server)
{
	const struct demo_options *options = &demo->options;
	char agent[PATH_MAX + 128], log_flag[96], log[PATH_MAX], file[32], name[32];
	char *argv[] = {
	        (char *)options->java,
	        HEAP_FLAGS,
	        agent,
	        log_flag,
	        "-jar",
	        (char *)options->jar,
	        "--name",
	        server->name,
	        "--index",
	        (char *)options->index,
	        HEAP_LOAD,
	        NULL,
	};
	int r;

	snprintf(agent, sizeof(agent), "-agentpath:%s=socket=%s", options->agent, demo->agent_socket);
	/* Relative to its directory: the JVM splits this flag at colons and commas, which a path may hold. */
	snprintf(log_flag, sizeof(log_flag), "-Xlog:gc*,safepoint:file=gc-%s.log:time,uptime,tn:filecount=0",
	         server->name);
	snprintf(file, sizeof(file), "gc-%s.log", server->name);
	r = demo_path(server->gc_log, options->dir, file);
	snprintf(file, sizeof(file), "server-%s.log", server->name);
	r = r ?: demo_path(log, options->dir, file);
	if (r < 0)
		return demo_fail("the path %s is too long; choose a shorter one with --dir", options->dir);
	snprintf(name, sizeof(name), "server %s", server->name);
	r = demo_process_start(&(struct demo_start){.name = name,
	                                            .argv = argv,
	                                            .directory = options->dir,
	                                            .log = log,
	                                            .death_signal = SIGKILL,
	                                            .nice = DEMO_NICE_SERVER},
	                       &server->process);
	if (r < 0)
		return demo_fail("cannot start %s: %s; name a Java 17 or later with --java or JAVA_HOME", options->java,
		                 strerror(-r));
	return 0;
}

/* The server's word on stdout: "listening 127.0.0.1:PORT". */
static int is_ready(struct demo_server *server)
{
	return server->address[0] ||
	       demo_log_find(server->process.log, "listening ", server->address, sizeof(server->address));
}

int demo_servers_check(struct demo *demo)
{
	for (int i = 0; i < DEMO_SERVERS; i++) {
		if (!demo_process_running(&demo->server[i].process))
			return demo_fail_ended(&demo->server[i].process);
	}
	return 0;
}

int demo_servers_start(struct demo *demo)
{
	uint64_t now_ns = tailor_clock_ns(), deadline_ns = now_ns + READY_S * TAILOR_NS_PER_S,
	         next_ns = now_ns + TAILOR_NS_PER_S;
	char line[256];
	int r, ready = 0;

	demo_say(demo, "starting two Lucene servers, each with the agent, under Serial");
	for (int i = 0; i < DEMO_SERVERS; i++) {
		snprintf(demo->server[i].name, sizeof(demo->server[i].name), "%c", 'a' + i);
		r = start(demo, &demo->server[i]);
		if (r < 0)
			return r;
	}
	while (ready < DEMO_SERVERS) {
		r = demo_process_wait(100);
		r = r ?: demo_servers_check(demo);
		if (r < 0)
			return r;
		ready = 0;
		for (int i = 0; i < DEMO_SERVERS; i++)
			ready += is_ready(&demo->server[i]);
		now_ns = tailor_clock_ns();
		if (now_ns >= deadline_ns)
			return demo_fail("the servers are not ready after %d s; see %s", READY_S,
			                 demo->server[0].process.log);
		if (now_ns >= next_ns && ready < DEMO_SERVERS) {
			next_ns += 2 * TAILOR_NS_PER_S;
			demo_log_last_line(demo->server[0].process.log, line, sizeof(line));
			demo_say(demo, "servers: %s",
			         strncmp(line, "search-server: ", 15) == 0 ? line + 15 : "starting and warming up");
		}
	}
	demo_say(demo, "servers ready: a on %s, b on %s", demo->server[0].address, demo->server[1].address);
	return 0;
}
