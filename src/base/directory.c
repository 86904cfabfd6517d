/* SPDX-License-Identifier: Apache-2.0 */
#include "base/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int tailor_directory_probe(const char *path)
{
	cleanup_free char *copy = strdup(path);
	cleanup_close int directory = -1;

	if (!copy)
		return -ENOMEM;
	directory = open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);
	return directory < 0 ? -errno : 0;
}
