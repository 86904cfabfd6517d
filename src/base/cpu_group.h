/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TAILOR_BASE_CPU_GROUP_H
#define TAILOR_BASE_CPU_GROUP_H

#include <stdbool.h>

/*
 * Whether CPU time is shared out by cgroups first, and a process is in one of those; cgroups(7).
 *   membership: the file that says where it is: /proc/self/cgroup
 *   mount: where the second version's hierarchy is: /sys/fs/cgroup
 * false where that cannot be read.
 */
bool tailor_cpu_group_has_weight(const char *membership, const char *mount);

#endif /* TAILOR_BASE_CPU_GROUP_H */
