/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which collector paused and why, and what safepoints took, from the JVM's own performance counters ("perf-data",
 * what jstat shows): plain memory that HotSpot keeps current and maps from /tmp/hsperfdata_USER/PID. Layout:
 * HotSpot's perfMemory.hpp, version 2.0.
 */
#ifndef TAILOR_JVMAGENT_PERFDATA_H
#define TAILOR_JVMAGENT_PERFDATA_H

#include <stddef.h>
#include <stdint.h>

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

/*
 * Writes the cause of the collection that goes on, as perfdata_describe() does, and returns its length, less than size; 0
 * where the JVM does not say it, or not yet: Serial and Parallel of JDK 17 say it only after GarbageCollectionStart. G1's
 * remark and cleanup have none, and are called that. Any thread; no lock, no allocation, no system call.
 */
size_t perfdata_cause(char *buffer, size_t size);

/* Sums since the JVM started (HotSpot's runtimeService.cpp). */
struct perfdata_safepoints {
	uint64_t begun;
	uint64_t stopping_ns; /* until all threads had stopped; of those in which they have */
	uint64_t stopped_ns;  /* from begin to end; of those that have ended */
};

/*
 * Reads stopped_ns, then stopping_ns, then begun; one that goes on meanwhile may show in some only. After
 * perfdata_open(). Returns 0, or -ENOENT where the JVM does not keep all of them. Any thread; no lock, no allocation,
 * no system call.
 */
int perfdata_safepoints(struct perfdata_safepoints *ret_now);

#endif /* TAILOR_JVMAGENT_PERFDATA_H */
