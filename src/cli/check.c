/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <stdio.h>

#include "cli/check_places.h"
#include "cli/commands.h"
#include "cli/config_file.h"

struct check_arguments {
	const char *config;
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "The proxy's configuration (required)", 0},
	{0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct check_arguments *arguments = state->input;

	switch (key) {
	case 'c': arguments->config = cli_config_option(state, arguments->config, value); return 0;
	case ARGP_KEY_ARG: argp_error(state, "unexpected \"%s\"; name the file with -c", value); return EINVAL;
	case ARGP_KEY_END:
		if (!arguments->config)
			argp_error(state, "name the configuration: -c tailor.yaml");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* Settings that are allowed and do nothing. */
static void warn_of_vain_settings(const char *path, const struct tailor_config *config)
{
	/* Only the agents say how full the heaps are. */
	if (config->predict && !config->has_agent)
		fprintf(stderr, "%s: warning: failover.predict: nothing is predicted without the servers' agents; add agent.socket, or leave it out\n", path);
}

int tailor_command_check(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_option, "-c FILE",
		"Says what is wrong with a configuration, a line for each problem, and starts nothing.\v"
		"A warning says what would keep the proxy from starting on this host as it is now, like a directory that is missing, or that a setting is in "
		"vain; it leaves the exit code as it is.\n"
		"Exit code 0: the file is good. 2: it is not.\n", NULL, NULL, NULL,
	};
	struct check_arguments arguments = {0};
	char address[TAILOR_ADDRESS_TEXT_BYTES];
	struct tailor_config config;

	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (cli_config_load(arguments.config, &config) != 0)
		return TAILOR_EXIT_USAGE;
	warn_of_vain_settings(arguments.config, &config);
	check_places(arguments.config, &config);
	printf("%s: good (%zu %s, clients come to %s)\n", arguments.config, config.servers,
	       config.servers == 1                      ? "server, no backup"
	       : config.mode == TAILOR_CONFIG_BALANCED ? "servers, balanced"
	                                                : "servers, the first is active",
	       tailor_address_format(address, &config.listen));
	return TAILOR_EXIT_DONE;
}
