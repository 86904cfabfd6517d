/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `tailor`, one file each. */
#ifndef TAILOR_CLI_COMMANDS_H
#define TAILOR_CLI_COMMANDS_H

/* Exit codes of every command. */
enum tailor_exit {
	TAILOR_EXIT_DONE = 0,
	TAILOR_EXIT_FAILED = 1, /* the work failed */
	TAILOR_EXIT_USAGE = 2,  /* wrong usage or config */
};

/* Each gets the words from its own name on (argv[0] is "tailor NAME", for argp) and returns enum tailor_exit. */
int tailor_command_proxy(int argc, char **argv);
int tailor_command_check(int argc, char **argv);
int tailor_command_dump(int argc, char **argv);
int tailor_command_export(int argc, char **argv);
int tailor_command_load(int argc, char **argv);
int tailor_command_attach(int argc, char **argv);
int tailor_command_doctor(int argc, char **argv);
int tailor_command_demo(int argc, char **argv);

#endif /* TAILOR_CLI_COMMANDS_H */
