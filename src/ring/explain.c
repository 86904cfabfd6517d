/* SPDX-License-Identifier: Apache-2.0 */
#include "ring/ring.h"

#include <errno.h>

const char *tailor_ring_explain(int error)
{
	switch (error) {
	case 0: return "io_uring works";
	case -EPERM:
		return "io_uring is forbidden here; set sysctl kernel.io_uring_disabled=0, or allow io_uring_setup in "
		       "the "
		       "container's seccomp profile";
	case -ENOSYS: return "this kernel has no io_uring; run Linux 6.1 or later with CONFIG_IO_URING";
	case -EINVAL: return "this kernel's io_uring is too old; run Linux 6.1 or later";
	case -ENOMEM:
		return "no memory for an io_uring; raise RLIMIT_MEMLOCK (ulimit -l), or ask for fewer workers or "
		       "connections";
	case -EMFILE: return "too many open files for another io_uring; raise RLIMIT_NOFILE (ulimit -n)";
	case -ENFILE: return "the system has too many open files; raise sysctl fs.file-max";
	default: return "io_uring could not be set up; `dmesg` may say more";
	}
}
