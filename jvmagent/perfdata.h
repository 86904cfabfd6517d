/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collector paused and why, from the JVM's own performance counters ("perf-data", what jstat shows): plain memory
 * that HotSpot keeps current and maps from /tmp/hsperfdata_USER/PID. Layout: HotSpot's perfMemory.hpp, version 2.0.
 */
#ifndef TAILOR_JVMAGENT_PERFDATA_H
#define TAILOR_JVMAGENT_PERFDATA_H

#include <stddef.h>

/*
 * Finds this JVM's counters. In the live phase, before the first perfdata_describe(); forgets what an earlier call
 * found. Returns 0, -ENOENT (the JVM keeps none in shared memory: -XX:-UsePerfData or -XX:+PerfDisableSharedMem), or
 * another negative errno when they are not in the known form. Without them everything reads "unknown".
 */
int perfdata_open(void);

/*
 * Writes "COLLECTOR\tCAUSE" of the pause that ends now, as the GC log calls them ("Serial young\tAllocation Failure"),
 * and returns its length, less than size. What is not certain reads "unknown". Only in GarbageCollectionFinish: every
 * call consumes the counters' change since the last one. No lock, no allocation, no system call.
 */
size_t perfdata_describe(char *buffer, size_t size);

#endif /* TAILOR_JVMAGENT_PERFDATA_H */
