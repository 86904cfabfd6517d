/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Safepoints as the JVM's own counters tell them: the collector's share is known from its callbacks, the rest (other
 * operations, and how long the threads took to stop) only from here where nobody traces the JVM from the kernel.
 */
#ifndef TAILOR_JVMAGENT_SAFEPOINTS_H
#define TAILOR_JVMAGENT_SAFEPOINTS_H

#include <stdint.h>

/* After perfdata_open() succeeded; everything here does nothing before. */
void safepoints_open(void);

/*
 * How many ns bringing the threads to a stop took for the safepoint that we are in, or 0 where that is not certain.
 * Only at the first GarbageCollectionStart of a pause, on the VM Thread. No lock, no allocation, no system call.
 */
uint64_t safepoints_time_to_stop_ns(void);

/* At the end of a pause, on the VM Thread, still inside the safepoint. As above. */
void safepoints_pause_ended(void);

/*
 * Writes TAILOR_EVENT_SAFEPOINTS if one ended since the last call. About every TAILOR_JVM_HEARTBEAT_MS, always from the
 * same thread, `tid`.
 */
void safepoints_beat(uint32_t tid);

#endif /* TAILOR_JVMAGENT_SAFEPOINTS_H */
