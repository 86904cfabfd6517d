/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{"proxy", tailor_command_proxy, "run the proxy, the tracer and the observer"},
	{"check", tailor_command_check, "say what is wrong with a configuration, with line numbers"},
	{"dump", tailor_command_dump, "print recorded slow requests: where the time of each went"},
	{"export", tailor_command_export, "write recorded slow requests as a trace for ui.perfetto.dev"},
	{"load", tailor_command_load, "load a server at a fixed rate and tell the latency that its clients see"},
	{"attach", tailor_command_attach, "put the agent into a JVM that runs already"},
	{"doctor", tailor_command_doctor, "say what this host allows and what is missing, with the remedy"},
	{"demo", tailor_command_demo, "all of it on two Lucene servers, on this machine"},
	{NULL, NULL, NULL},
};

static void print_usage(FILE *out)
{
	fputs("Usage: tailor COMMAND [OPTION...]\n"
	      "Finds out why requests to a JVM search server were slow, and keeps its pauses from the clients.\n\n",
	      out);
	for (const struct command *command = commands; command->name; command++)
		fprintf(out, "  %-8s %s\n", command->name, command->summary);
	fputs("\n`tailor COMMAND --help` explains a command. Start with `tailor doctor`, then `tailor proxy -c tailor.yaml`.\n", out);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return TAILOR_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		print_usage(stdout);
		return TAILOR_EXIT_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("tailor " TAILOR_VERSION);
		return TAILOR_EXIT_DONE;
	}
	argp_err_exit_status = TAILOR_EXIT_USAGE;
	for (const struct command *command = commands; command->name; command++) {
		char name[32];

		if (strcmp(argv[1], command->name) != 0)
			continue;
		snprintf(name, sizeof(name), "tailor %s", command->name);
		argv[1] = name;
		return command->run(argc - 1, argv + 1);
	}
	fprintf(stderr, "tailor: there is no command \"%s\"; `tailor --help` lists them\n", argv[1]);
	return TAILOR_EXIT_USAGE;
}
