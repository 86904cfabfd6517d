/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

const char *tailor_limits_remedy(int error)
{
	switch (error) {
	case -EMFILE: return "raise the limit of open files (ulimit -n, LimitNOFILE in a systemd unit)";
	case -ENFILE: return "the system has too many open files; raise sysctl fs.file-max";
	case -EAGAIN: return "raise the limit of threads (ulimit -u, TasksMax in a systemd unit)"; /* pthread_create(3) */
	default: return NULL;
	}
}

int tailor_limits_ask_for_files(size_t count)
{
	int *files = calloc(count, sizeof(*files)), result = files ? 0 : -ENOMEM;
	size_t opened = 0;

	while (result == 0 && opened < count) {
		files[opened] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (files[opened] < 0)
			result = -errno;
		else
			opened++;
	}
	while (opened > 0)
		close(files[--opened]);
	free(files);
	return result;
}
