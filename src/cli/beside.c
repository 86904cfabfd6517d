/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_find_beside(char path[PATH_MAX], const char *const *candidates)
{
	char program[PATH_MAX], *slash;
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	path[0] = '\0';
	if (length < 0)
		return;
	program[length] = '\0';
	slash = strrchr(program, '/');
	*slash = '\0';
	for (; *candidates; candidates++) {
		char candidate[PATH_MAX];
		int written = snprintf(candidate, sizeof(candidate), "%s/%s", program, *candidates);

		if (written > 0 && (size_t)written < sizeof(candidate) && realpath(candidate, path) &&
		    access(path, R_OK) == 0)
			return;
	}
	path[0] = '\0';
}

void cli_find_agent(char path[PATH_MAX])
{
	static const char *const agents[] = {"libtailor-agent.so", "../lib/libtailor-agent.so",
	                                     "../../jvmagent/libtailor-agent.so", NULL};

	cli_find_beside(path, agents);
}
