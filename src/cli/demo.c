/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/beside.h"
#include "cli/demo.h"

enum {
	OPTION_JAR = 256,
	OPTION_AGENT,
	OPTION_JAVA,
	OPTION_DIR,
	OPTION_INDEX,
	OPTION_RATE,
	OPTION_SECONDS,
	OPTION_JSON,
	OPTION_KEEP
};

static const struct argp_option argp_options[] = {
        {"server-jar", OPTION_JAR, "FILE", 0, "The search server (examples/search-server/target/search-server.jar)", 0},
        {"agent", OPTION_AGENT, "FILE", 0, "The JVM agent's library (libtailor-agent.so beside this program)", 0},
        {"java", OPTION_JAVA, "FILE", 0, "The JVM, 17 or later (from JAVA_HOME, else from PATH)", 0},
        {"dir", OPTION_DIR, "DIR", 0, "Where logs, configs and timelines go (./var/demo)", 0},
        {"index", OPTION_INDEX, "DIR", 0, "Where the index is, or is built at the first start (DIR/index)", 0},
        {"rate", OPTION_RATE, "N", 0, "Requests a second (200)", 0},
        {"seconds", OPTION_SECONDS, "N", 0, "Measured part of each of the two runs (15)", 0},
        {"json", OPTION_JSON, NULL, 0, "Print one JSON object instead of the table", 0},
        {"keep", OPTION_KEEP, NULL, 0, "When done, leave servers and proxy running until Ctrl-C", 0},
        {0},
};

static const char doc[] = "Runs two Lucene servers on this machine whose garbage collections stop them for 40 ms and "
                          "more, and the same load "
                          "through the proxy twice: failover off, then on. Shows what the client saw, and where the "
                          "slowest requests' time "
                          "went. Takes one to two and a half minutes; a run in which the machine itself stood still is measured again, at "
                          "most twice. Nothing outside DIR is changed.";

static void copy_option(char to[PATH_MAX], const char *text, struct argp_state *state)
{
	if (text[0] == '\0' || strlen(text) >= PATH_MAX)
		argp_error(state, "a path is empty or too long");
	snprintf(to, PATH_MAX, "%s", text);
}

static unsigned int number_option(const char *text, uint64_t min, uint64_t max, const char *name,
                                  struct argp_state *state)
{
	uint64_t value = 0;

	if (tailor_parse_number(text, min, max, &value) < 0)
		argp_error(state, "--%s %s: expected a number from %lu to %lu", name, text, (unsigned long)min,
		           (unsigned long)max);
	return (unsigned int)value;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
	struct demo_options *options = state->input;

	switch (key) {
	case OPTION_JAR: copy_option(options->jar, text, state); return 0;
	case OPTION_AGENT: copy_option(options->agent, text, state); return 0;
	case OPTION_JAVA: copy_option(options->java, text, state); return 0;
	case OPTION_DIR: copy_option(options->dir, text, state); return 0;
	case OPTION_INDEX: copy_option(options->index, text, state); return 0;
	case OPTION_RATE: options->rate = number_option(text, 1, 5000, "rate", state); return 0;
	case OPTION_SECONDS: options->seconds = number_option(text, 1, 600, "seconds", state); return 0;
	case OPTION_JSON: options->json = 1; return 0;
	case OPTION_KEEP: options->keep = 1; return 0;
	case ARGP_KEY_ARG: argp_error(state, "unexpected argument \"%s\"", text); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* Makes a path that the user gave absolute: the servers run in another directory. */
static int make_absolute(char path[PATH_MAX], const char *what, const char *remedy)
{
	char absolute[PATH_MAX];

	if (path[0] == '\0')
		return demo_fail("%s not found; %s", what, remedy);
	if (!realpath(path, absolute))
		return demo_fail("%s %s: %s; %s", what, path, strerror(errno), remedy);
	snprintf(path, PATH_MAX, "%s", absolute);
	return 0;
}

static int find_files(struct demo_options *options)
{
	static const char *const jars[] = {"../share/tailor/search-server.jar",
	                                   "../../../../examples/search-server/target/search-server.jar", NULL};
	const char *home = getenv("JAVA_HOME");
	int r;

	if (!options->agent[0])
		cli_find_agent(options->agent);
	if (!options->jar[0])
		cli_find_beside(options->jar, jars);
	if (!options->java[0])
		snprintf(options->java, PATH_MAX, "%s%s", home && home[0] ? home : "java",
		         home && home[0] ? "/bin/java" : "");
	r = make_absolute(options->agent, "the agent's library", "build it, or name it with --agent");
	r = r
	            ?: make_absolute(options->jar, "the search server's jar",
	                             "build it with `mvn -q -DskipTests package` in examples/search-server, or name it "
	                             "with --server-jar");
	if (r == 0 && strchr(options->java, '/'))
		r = make_absolute(options->java, "the JVM", "install a Java 17 or later, or name one with --java");
	if (r == 0 && strpbrk(options->agent, "=,"))
		return demo_fail("the JVM cannot load an agent from %s: '=' or ',' in its path; copy it elsewhere",
		                 options->agent);
	return r;
}

/* Creates a directory and what is above it. */
static int make_directories(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(part, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_directory(char path[PATH_MAX])
{
	int r = make_directories(path);
	char absolute[PATH_MAX];

	if (r == 0 && !realpath(path, absolute))
		r = -errno;
	if (r == 0 && access(absolute, W_OK) < 0)
		r = -errno;
	if (r < 0)
		return demo_fail("cannot create %s: %s; choose another directory with --dir or --index", path,
		                 strerror(-r));
	if (strpbrk(absolute, "\"\\\n"))
		return demo_fail(
		        "the directory %s has a quote, backslash or line break in its name; choose another one",
		        absolute);
	snprintf(path, PATH_MAX, "%s", absolute);
	return 0;
}

/* Removes the segments of an earlier demo, so that the slowest requests are those of this one. */
static int remove_timelines(const struct demo *demo, const char *run)
{
	char path[PATH_MAX], file[64];
	struct dirent *entry;
	int r = 0;
	DIR *directory;

	snprintf(file, sizeof(file), "%s/timelines", run);
	if (demo_path(path, demo->options.dir, file) < 0)
		return demo_fail("the path %s is too long; choose a shorter one with --dir", demo->options.dir);
	directory = opendir(path);
	while (directory && r == 0 && (entry = readdir(directory))) {
		const char *suffix = strrchr(entry->d_name, '.');

		if (suffix && strcmp(suffix, ".tailor") == 0 && unlinkat(dirfd(directory), entry->d_name, 0) < 0)
			r = demo_fail("cannot remove %s/%s of an earlier demo: %s", path, entry->d_name,
			              strerror(errno));
	}
	if (directory)
		closedir(directory);
	return r;
}

/* Socket paths: in the directory if they fit there (sun_path; and the agent's options end at a comma), else in /tmp. */
static int place_sockets(struct demo *demo)
{
	const char *directory = demo->options.dir;

	if (strlen(directory) + sizeof("/admin.sock") > sizeof(demo->admin_socket) || strpbrk(directory, ",= ")) {
		snprintf(demo->sockets, sizeof(demo->sockets), "/tmp/tailor-demo-XXXXXX");
		if (!mkdtemp(demo->sockets))
			return demo_fail("cannot create a directory for sockets in /tmp: %s; choose a shorter --dir",
			                 strerror(errno));
		demo->sockets_temporary = 1;
		directory = demo->sockets;
	}
	snprintf(demo->admin_socket, sizeof(demo->admin_socket), "%.90s/admin.sock", directory);
	snprintf(demo->agent_socket, sizeof(demo->agent_socket), "%.90s/agent.sock", directory);
	return 0;
}

static void stop_all(struct demo *demo)
{
	demo_process_stop(&demo->load, 1000);
	demo_process_stop(&demo->proxy, 5000);
	for (int i = 0; i < DEMO_SERVERS; i++)
		demo_process_stop(&demo->server[i].process, 5000);
	/* The proxy removes its sockets, unless it was killed. */
	if (demo->admin_socket[0]) {
		unlink(demo->admin_socket);
		unlink(demo->agent_socket);
	}
	if (demo->sockets_temporary)
		rmdir(demo->sockets);
}

/* Leaves everything running until we are asked to stop, or something ends. */
static int keep_running(struct demo *demo)
{
	int r;

	demo_say(demo,
	         "still serving on http://%s/search?q=stone with failover on; admin: curl --unix-socket %s "
	         "http://tailor/status; Ctrl-C ends it",
	         demo->proxy_address, demo->admin_socket);
	do {
		r = demo_process_wait(500);
		r = r ?: demo_servers_check(demo);
		if (r == 0 && !demo_process_running(&demo->proxy))
			r = demo_fail_ended(&demo->proxy);
	} while (r == 0);
	return r == -EINTR ? 0 : r;
}

static int run_all(struct demo *demo)
{
	static const char *const earlier[] = {"failover-off",   "failover-off-2", "failover-off-3",
	                                      "failover-on",    "failover-on-2",  "failover-on-3"};
	struct demo_run runs[2];
	int r = 0;

	for (size_t i = 0; i < sizeof(earlier) / sizeof(earlier[0]) && r == 0; i++)
		r = remove_timelines(demo, earlier[i]);
	r = r ?: place_sockets(demo);
	r = r ?: demo_servers_start(demo);
	r = r ?: demo_run(demo, 0, 0, &runs[0]);
	r = r ?: demo_run(demo, 1, demo->options.keep, &runs[1]);
	r = r ?: demo_print(demo, runs);
	if (r == 0 && demo->options.keep)
		r = keep_running(demo);
	return r;
}

/* One demo at a time in a directory. */
static int lock_directory(const struct demo *demo, int *ret_fd)
{
	char path[PATH_MAX];
	cleanup_close int fd = -1;

	if (demo_path(path, demo->options.dir, "demo.lock") < 0)
		return demo_fail("the path %s is too long; choose a shorter one with --dir", demo->options.dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return demo_fail("cannot create %s: %s; choose another directory with --dir", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return demo_fail("another demo runs in %s; wait for it, or choose another directory with --dir",
		                 demo->options.dir);
	*ret_fd = take_fd(&fd);
	return 0;
}

int tailor_command_demo(int argc, char **argv)
{
	static const struct argp argp = {.options = argp_options, .parser = parse_option, .doc = doc};
	static struct demo demo; /* paths make it large */
	struct demo_options *options = &demo.options;
	cleanup_close int lock = -1;
	int r;

	demo.started_ns = tailor_clock_ns();
	*options = (struct demo_options){.dir = "var/demo", .rate = 200, .seconds = 15};
	argp_parse(&argp, argc, argv, 0, NULL, options);
	r = find_files(options);
	r = r ?: make_directory(options->dir);
	r = r ?: lock_directory(&demo, &lock);
	if (r == 0 && !options->index[0] && demo_path(options->index, options->dir, "index") < 0)
		r = demo_fail("the path %s is too long; choose a shorter one with --dir", options->dir);
	r = r ?: make_directory(options->index);
	if (r < 0)
		return TAILOR_EXIT_FAILED;
	demo_process_setup();
	r = run_all(&demo);
	if (r == -EINTR)
		demo_say(&demo, "asked to stop; stopping the servers");
	stop_all(&demo);
	return r == 0 ? TAILOR_EXIT_DONE : TAILOR_EXIT_FAILED;
}
