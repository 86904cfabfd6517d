/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"

#include <errno.h>
#include <stddef.h>

const char *tailor_limits_remedy(int error)
{
	switch (error) {
	case -EMFILE: return "raise the limit of open files (ulimit -n, LimitNOFILE in a systemd unit)";
	case -ENFILE: return "the system has too many open files; raise sysctl fs.file-max";
	case -EAGAIN: return "raise the limit of threads (ulimit -u, TasksMax in a systemd unit)"; /* pthread_create(3) */
	default: return NULL;
	}
}
