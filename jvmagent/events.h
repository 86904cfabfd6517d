/* SPDX-License-Identifier: Apache-2.0 */
/* The JVMTI callbacks, one file per question. agent.c registers them and turns them on once notify_open() succeeded. */
#ifndef TAILOR_JVMAGENT_EVENTS_H
#define TAILOR_JVMAGENT_EVENTS_H

#include <jvmti.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * gc_events.c: GarbageCollectionStart and -Finish. On the VM Thread inside a safepoint, where every thread of the
 * server waits for us: no JNI, no JVMTI, no lock, no allocation, no log.
 */
void JNICALL gc_started(jvmtiEnv *jvmti);
void JNICALL gc_finished(jvmtiEnv *jvmti);

/*
 * Publishes the cause of the collection that goes on, where the JVM had not said it when it began. Every
 * TAILOR_JVM_HEARTBEAT_MS, always from the same thread, which is none of the JVM's.
 */
void gc_beat(void);

/* class_events.c: how long the VM took to define a class, and then to link it. On the loading thread. */
void JNICALL class_file_at_hand(jvmtiEnv *jvmti, JNIEnv *jni, jclass redefined, jobject loader, const char *name,
                                jobject domain, jint length, const unsigned char *bytes, jint *ret_length,
                                unsigned char **ret_bytes);
void JNICALL class_loaded(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class);
void JNICALL class_prepared(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class);
/* Before the callbacks are turned on. Returns 0 or a negative errno (durations are then all unknown). */
int class_events_open(void);

/*
 * thread_events.c: which kernel thread is which Java thread. On the thread itself. A channel forgets, so a reader that
 * came late or looked away may not find a thread's start any more; it falls back to the thread's comm in /proc, which
 * HotSpot sets to the (shortened) Java name, as it must for threads older than the agent.
 */
void JNICALL thread_started(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread);
void JNICALL thread_ended(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread);

/* A system call of some 50 ns: cheap enough, and unlike a thread-local of a library loaded late it cannot fail. */
static inline uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

#endif /* TAILOR_JVMAGENT_EVENTS_H */
