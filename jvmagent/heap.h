/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How full the heap is, by the JVM's own beans (java.lang.management): the only source that is live for every
 * collector. Only for a thread that is attached to the JVM, outside of callbacks. No exception is left pending.
 */
#ifndef TAILOR_JVMAGENT_HEAP_H
#define TAILOR_JVMAGENT_HEAP_H

#include <jni.h>
#include <tailor/jvm_page.h>

/* Whether this JVM has the beans at all (module java.management). Initializes nothing. */
int heap_is_known(JNIEnv *jni);

/*
 * Finds the beans, and makes the JVM load them: tens of milliseconds at the first call, nothing at later ones. Returns
 * 0, or -ENOENT where there is none for any part of the heap.
 */
int heap_open(JNIEnv *jni);

/* Whether there is an eden: a part that brings a young collection about when it is full. After heap_open(). */
int heap_has_eden(void);

/*
 * Asks the beans: everything but `version`. Some microseconds. After heap_open(), from one thread. Returns 0, or -EIO
 * where the JVM does not answer (it may be ending).
 */
int heap_read(JNIEnv *jni, struct tailor_jvm_heap *ret_now);

/* Writes it to the page. From one thread. */
void heap_publish(const struct tailor_jvm_heap *now);

/* The Java class of that name ("java.lang.Thread"), not initialized, as the boot loader knows it; NULL if it does not.
 * A local reference. */
jclass heap_boot_class(JNIEnv *jni, const char *name);

/* Whether a Java exception was pending; it is no more. */
int heap_threw(JNIEnv *jni);

#endif /* TAILOR_JVMAGENT_HEAP_H */
