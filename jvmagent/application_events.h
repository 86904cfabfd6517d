/* SPDX-License-Identifier: Apache-2.0 */
/* What the application itself says of its threads: io.tailor.Tailor (java/) and include/tailor/application.h. */
#ifndef TAILOR_JVMAGENT_APPLICATION_EVENTS_H
#define TAILOR_JVMAGENT_APPLICATION_EVENTS_H

#include <jvmti.h>

/*
 * For each class that gets ready to be used, with its JVMTI signature: gives io.tailor.Tailor its native methods. On
 * the thread that loads it. May be called again for the same class.
 */
void application_class_prepared(JNIEnv *jni, jclass class, const char *signature);

/*
 * Finds io.tailor.Tailor where it was loaded before ClassPrepare was turned on, and turns it on, too. In the live
 * phase, after that. Its class may be initialized by this.
 */
void application_events_start(jvmtiEnv *jvmti, JNIEnv *jni);

#endif /* TAILOR_JVMAGENT_APPLICATION_EVENTS_H */
