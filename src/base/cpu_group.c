/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu_group.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Whether the group at that path of the second version has a weight, or else one above it, of which it then is part; shortens the path. */
static bool any_has_weight(const char *mount, char *path)
{
	char weight[PATH_MAX];
	char *end;

	while (snprintf(weight, sizeof(weight), "%s%s/cpu.weight", mount, path) >= (int)sizeof(weight) || access(weight, F_OK) != 0) {
		end = strrchr(path, '/');
		if (!end)
			return false;
		*end = '\0';
	}
	return true;
}

/* One line of the file, "number:controllers:path". */
static bool line_has_weight(char *line, const char *mount)
{
	char *controllers, *path = line;

	line[strcspn(line, "\n")] = '\0';
	(void)strsep(&path, ":");
	controllers = strsep(&path, ":");
	if (!path)
		return false;
	if (!controllers[0])
		return any_has_weight(mount, path); /* the root of all has none */
	for (const char *name; (name = strsep(&controllers, ","));) {
		if (strcmp(name, "cpu") == 0 && strcmp(path, "/") != 0)
			return true;
	}
	return false;
}

bool tailor_cpu_group_has_weight(const char *membership, const char *mount)
{
	cleanup_fclose FILE *file = fopen(membership, "re");
	cleanup_free char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0)
		found = line_has_weight(line, mount);
	return found;
}
