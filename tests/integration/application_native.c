/* SPDX-License-Identifier: Apache-2.0 */
/* Native code of a server, as Application.java calls it: says what its thread works for through application.h. */
#include <jni.h>

#include <tailor/application.h>

JNIEXPORT void JNICALL Java_Application_nativeBegin(JNIEnv *jni, jclass class, jlong request);
JNIEXPORT void JNICALL Java_Application_nativeEnd(JNIEnv *jni, jclass class, jlong request);

void JNICALL Java_Application_nativeBegin(JNIEnv *jni, jclass class, jlong request)
{
	(void)jni;
	(void)class;
	tailor_application_begin((uint64_t)request);
}

void JNICALL Java_Application_nativeEnd(JNIEnv *jni, jclass class, jlong request)
{
	(void)jni;
	(void)class;
	tailor_application_end((uint64_t)request);
}
