/* SPDX-License-Identifier: Apache-2.0 */
/* `tailor attach`: the agent for a JVM that runs already. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/attach.h"
#include "cli/beside.h"
#include "cli/commands.h"

#define DEFAULT_SOCKET "/run/tailor/agent.sock"
#define SOCKET_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)
#define DEFAULT_TIMEOUT_NS (10 * TAILOR_NS_PER_S)

struct attach_arguments {
	pid_t pid;
	const char *socket, *agent, *options; /* NULL: not given */
	uint64_t timeout_ns;
};

enum {
	OPTION_TIMEOUT = 256,
};

static const struct argp_option options[] = {
        {"socket", 's', "PATH", 0,
         "The proxy's socket for agents, `agent.socket` of its configuration (default: " DEFAULT_SOCKET ")", 0},
        {"agent", 'a', "FILE", 0,
         "The agent's library, as the JVM sees it (default: libtailor-agent.so beside this program)", 0},
        {"options", 'o', "LIST", 0,
         "More of the agent's options, with commas between them: slots=N, vthreads=on|off, collect=off|young|full", 0},
        {"timeout", OPTION_TIMEOUT, "TIME", 0, "How long to wait for the JVM, 100ms to 10m (default: 10s)", 0},
        {0},
};

static pid_t parse_pid(const char *text, struct argp_state *state)
{
	char *end = NULL;
	long pid;

	errno = 0;
	pid = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : 0;
	if (errno || pid <= 0 || pid > INT_MAX || *end)
		argp_error(state, "\"%s\" is no process id", text);
	return (pid_t)pid;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct attach_arguments *arguments = state->input;

	switch (key) {
	case 's': arguments->socket = value; return 0;
	case 'a': arguments->agent = value; return 0;
	case 'o': arguments->options = value; return 0;
	case OPTION_TIMEOUT:
		if (tailor_parse_duration(value, &arguments->timeout_ns) < 0 ||
		    arguments->timeout_ns < 100 * TAILOR_NS_PER_MS || arguments->timeout_ns > 600 * TAILOR_NS_PER_S)
			argp_error(state, "--timeout takes a time from 100ms to 10m, not \"%s\"", value);
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->pid)
			argp_error(state, "one JVM at a time: \"%s\" is one too many", value);
		arguments->pid = parse_pid(value, state);
		return 0;
	case ARGP_KEY_END:
		if (!arguments->pid)
			argp_error(state, "name the JVM by its process id (`tailor doctor` lists those that run)");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static int fail(const char *error)
{
	fprintf(stderr, "tailor attach: %s\n", error);
	return TAILOR_EXIT_FAILED;
}

/* The JVM has another working directory. Where it does not exist here, it may in the JVM's container: then it is left
 * as it is. */
static int make_absolute(const char *what, const char *path, char absolute[PATH_MAX])
{
	char resolved[PATH_MAX], here[PATH_MAX];
	int length;

	if (path[0] == '/')
		length = snprintf(absolute, PATH_MAX, "%s", path);
	else if (getcwd(here, sizeof(here)))
		length = snprintf(absolute, PATH_MAX, "%s/%s", here, path);
	else
		length = PATH_MAX;
	if (length >= PATH_MAX || strpbrk(path, ",\n") || !path[0]) {
		fprintf(stderr, "tailor attach: %s \"%s\" must be a path without commas, and not too long\n", what,
		        path);
		return -EINVAL;
	}
	if (realpath(absolute, resolved))
		snprintf(absolute, PATH_MAX, "%s", resolved);
	return 0;
}

/* Everything that can be said without touching the JVM. */
static int prepare(const struct attach_arguments *arguments, char agent[PATH_MAX], char options_text[ATTACH_WORD_MAX])
{
	char socket[PATH_MAX], found[PATH_MAX];

	if (!arguments->agent) {
		cli_find_agent(found);
		if (!found[0]) {
			fputs("tailor attach: libtailor-agent.so is not beside this program; name it with --agent\n",
			      stderr);
			return -ENOENT;
		}
	}
	if (make_absolute("--agent", arguments->agent ? arguments->agent : found, agent) < 0 ||
	    make_absolute("--socket", arguments->socket ? arguments->socket : DEFAULT_SOCKET, socket) < 0)
		return -EINVAL;
	if (strlen(socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		fprintf(stderr, "tailor attach: --socket %s is longer than %zu bytes\n", socket,
		        sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		return -EINVAL;
	}
	if (snprintf(options_text, ATTACH_WORD_MAX, "socket=%s%s%s", socket, arguments->options ? "," : "",
	             arguments->options ? arguments->options : "") >= ATTACH_WORD_MAX) {
		fputs("tailor attach: --options are too long\n", stderr);
		return -EINVAL;
	}
	return 0;
}

static void socket_of(const char *agent_options, char path[SOCKET_BYTES])
{
	const char *socket = agent_options + strlen("socket=");

	snprintf(path, SOCKET_BYTES, "%.*s", (int)strcspn(socket, ","), socket);
}

/* The JVM has the agent: all that is left is to tell whether it is the one that was asked for. */
static int tell_present(struct attach_jvm *jvm, const struct attach_arguments *arguments, const char *agent_options)
{
	int is_for_another;
	char path[SOCKET_BYTES];

	socket_of(agent_options, path);
	is_for_another = arguments->socket && attach_jvm_is_for_another(jvm, path);
	tailor_printable_line(jvm->socket);
	if (is_for_another) {
		fprintf(stderr,
		        "tailor attach: JVM %d has the agent already, which connects to %s, not to %s, until the JVM ends; nothing was changed: "
		        "let the proxy's agent.socket be that one, or restart the JVM\n",
		        (int)jvm->pid, jvm->socket, path);
		return TAILOR_EXIT_FAILED;
	}
	printf("JVM %d has the agent already; nothing was changed: it keeps its socket%s%s and options until it ends\n", (int)jvm->pid,
	       jvm->socket[0] ? " " : "", jvm->socket);
	return TAILOR_EXIT_DONE;
}

static int attach(struct attach_jvm *jvm, const struct attach_arguments *arguments, const char *agent,
                  const char *agent_options)
{
	uint64_t deadline_ns = tailor_clock_ns() + arguments->timeout_ns;
	char error[ATTACH_ERROR_BYTES];
	struct stat status;
	char path[SOCKET_BYTES];

	if (attach_become_user(jvm, error, sizeof(error)) < 0 ||
	    attach_check_library(jvm, agent, error, sizeof(error)) < 0 ||
	    attach_load(jvm, agent, agent_options, deadline_ns, error, sizeof(error)) < 0)
		return fail(error);
	socket_of(agent_options, path);
	printf("JVM %d has the agent now; it connects to %s%s\n", (int)jvm->pid, path,
	       stat(path, &status) == 0 ? "" : " as soon as the proxy is there");
	return TAILOR_EXIT_DONE;
}

int tailor_command_attach(int argc, char **argv)
{
	static const struct argp argp = {
	        options,
	        parse_option,
	        "PID",
	        "Puts the agent into a JVM that runs already: HotSpot of JDK 17 to 25, also in a container. Run it as "
	        "root or as the JVM's user. The "
	        "JVM runs on meanwhile, for some 30 ms. One that has the agent is left as it is.\v"
	        "JDK 21 and later print a warning to the JVM's stderr unless the JVM was started with "
	        "-XX:+EnableDynamicAgentLoading.\n"
	        "Exit code 0: the JVM has the agent, now or already. 1: it does not, or has one that connects to another "
	        "socket than --socket, and why is said. 2: wrong usage.\n",
	        NULL,
	        NULL,
	        NULL,
	};
	struct attach_arguments arguments = {.timeout_ns = DEFAULT_TIMEOUT_NS};
	char agent[PATH_MAX], agent_options[ATTACH_WORD_MAX], error[ATTACH_ERROR_BYTES];
	struct attach_jvm jvm;
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (prepare(&arguments, agent, agent_options) < 0)
		return TAILOR_EXIT_USAGE;
	if (attach_jvm_open(arguments.pid, &jvm, error, sizeof(error)) < 0)
		return fail(error);
	ret = jvm.has_agent ? tell_present(&jvm, &arguments, agent_options) : attach(&jvm, &arguments, agent, agent_options);
	attach_jvm_close(&jvm);
	return ret;
}
