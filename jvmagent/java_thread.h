/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's one Java thread, "tailor-heap": what only a thread that is attached to the JVM can do. It sleeps until
 * the proxy wants something of it. A daemon thread of the system's group, as agents' are: the JVM does not wait for it.
 */
#ifndef TAILOR_JVMAGENT_JAVA_THREAD_H
#define TAILOR_JVMAGENT_JAVA_THREAD_H

#include <jvmti.h>
#include <stdint.h>

enum java_thread_collect {
	JAVA_THREAD_COLLECT_OFF,
	JAVA_THREAD_COLLECT_YOUNG,
	JAVA_THREAD_COLLECT_FULL, /* and young */
};

/*
 * Starts it. In the live phase, after notify_open(), once. Returns TAILOR_JVM_CAN_...: 0 where there is none because
 * the JVM lacks the module java.management, or refuses the thread (which is said). Young collections are left out with
 * collectors that have no eden.
 */
uint64_t java_thread_start(jvmtiEnv *jvmti, JNIEnv *jni, enum java_thread_collect collect);

/*
 * Wakes it if there is something for it to do; a wish is refused if there is no such thread. Every
 * TAILOR_JVM_HEARTBEAT_MS, from one thread, after java_thread_start().
 */
void java_thread_beat(void);

/* At VMDeath: it is to end, and no later than in some milliseconds it has: the JVM waits 300 ms for one that sleeps in
 * native code. */
void java_thread_stop(void);

#endif /* TAILOR_JVMAGENT_JAVA_THREAD_H */
