/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of virtual threads (JDK 21 and later). */
#ifndef TAILOR_JVMAGENT_VTHREAD_EVENTS_H
#define TAILOR_JVMAGENT_VTHREAD_EVENTS_H

#include <jvmti.h>

/*
 * Asks this JVM for the events, and for the capability that they need. While the agent loads, before notify_open(). A
 * JVM without virtual threads stays as it is, and nothing is said. Returns whether they will come.
 */
int vthread_events_prepare(jvmtiEnv *jvmti);

/*
 * Turns them on, if vthread_events_prepare() found them: TAILOR_EVENT_VTHREAD_MOUNT and -UNMOUNT from then on, on the
 * carrier. In the live phase, after notify_open() and self_open(). A virtual thread that is mounted by then has its
 * unmount first.
 */
void vthread_events_start(jvmtiEnv *jvmti, JNIEnv *jni);

#endif /* TAILOR_JVMAGENT_VTHREAD_EVENTS_H */
