/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/proxy_run.h"

struct proxy_arguments {
	const char *config;
	const char *predecessor; /* NULL: takes over from nobody */
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "The configuration (required); `tailor check -c FILE` judges it without starting anything", 0},
	{"take-over", 't', "SOCKET", OPTION_ARG_OPTIONAL,
         "Serve instead of the proxy that runs with this `timelines.path`, if there is one, without refusing or losing a request; SOCKET names its "
         "socket where that path has changed",
         0},
	{0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct proxy_arguments *arguments = state->input;

	switch (key) {
	case 'c': arguments->config = cli_config_option(state, arguments->config, value); return 0;
	case 't': arguments->predecessor = value ? value : ""; return 0;
	case ARGP_KEY_ARG: argp_error(state, "unexpected \"%s\"; name the configuration with -c", value); return EINVAL;
	case ARGP_KEY_END:
		if (!arguments->config)
			argp_error(state, "name the configuration: -c tailor.yaml");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int tailor_command_proxy(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_option, "-c FILE",
		"Runs the proxy, the tracer and the observer until SIGINT or SIGTERM.\v"
		"SIGTERM, SIGINT: nothing is accepted any more, requests in flight end and their clients are told that the connection does, "
		"what has not ended after `timeouts.stop` is cut; a second one ends it at once.\n"
		"SIGHUP: reads the configuration again. An invalid one changes nothing, and what cannot change while it serves is named.\n"
		"SIGUSR1: opens the access log anew.\n"
		"--take-over: for a new binary, or what SIGHUP cannot change. The running proxy hands its listening sockets, the store and the agents to "
		"the new process; once that serves, the old one ends as after SIGTERM. If the new one fails before, the old one goes on as if "
		"nothing had happened, and both say why.\n\n"
		"A server stands still when its JVM collects or is in another safepoint, when its process is stopped or frozen, or has ended. New requests "
		"go to another server meanwhile, and those in flight that may be sent twice do, too, where the stop is expected to last: `failover` in the "
		"configuration says which (GET and HEAD unless told otherwise). `tailor dump --failovers` shows what was done. With `failover.predict: on` a "
		"server whose collection is near gets no new requests before it comes; with `failover.collect` it is also asked for it, where its agent's "
		"`collect=` allows that.\n\n"
		"It needs root (or CAP_BPF and CAP_PERFMON) for kernel events, and the agent in the servers' JVMs for collections and their causes (-agentpath, or "
		"`tailor attach PID`); it runs without either and says what the timelines lack. `tailor doctor` tells what this host allows.\n",
		NULL, NULL, NULL,
	};
	struct proxy_arguments arguments = {0};
	char address[TAILOR_ADDRESS_TEXT_BYTES], text[32];
	struct tailor_address listening;
	cleanup_close int signals = -1;
	struct proxy_run *run;
	bool replaced;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	run = calloc(1, sizeof(*run));
	if (!run) {
		proxy_say("not enough memory");
		return TAILOR_EXIT_FAILED;
	}
	if (cli_config_load(arguments.config, &run->config) != 0) {
		free(run);
		return TAILOR_EXIT_USAGE;
	}
	run->config_path = arguments.config;
	run->predecessor.path = arguments.predecessor;
	run->predecessor.fd = run->successor.fd = run->successor.listener = -1;
	takeover_descriptors_init(&run->predecessor.offered);
	pthread_mutex_init(&run->lock, NULL);
	pthread_mutex_init(&run->reloading, NULL);
	proxy_servers_init(run);
	run->started_ns = tailor_clock_ns();
	signals = proxy_signals_open();
	if (proxy_start(run) != 0) {
		proxy_stop(run);
		free(run);
		return TAILOR_EXIT_FAILED;
	}
	listening = tailor_proxy_listening(run->proxy);
	if (run->predecessor.path)
		proxy_say("serving %s, taken over from pid %d", tailor_address_format(address, &listening), (int)run->predecessor.pid);
	else
		proxy_say("serving %s", tailor_address_format(address, &listening));
	proxy_say_missing(run);
	replaced = proxy_serve(run, signals);
	tailor_format_duration(text, sizeof(text), run->config.stop_timeout_ns);
	if (replaced)
		proxy_say("pid %d serves now: requests in flight here may end within %s", (int)run->successor.pid, text);
	else
		proxy_say("stopping: requests in flight may end within %s; once more, and it ends at once", text);
	proxy_drain(run, signals, replaced);
	proxy_stop(run);
	free(run);
	return TAILOR_EXIT_DONE;
}
