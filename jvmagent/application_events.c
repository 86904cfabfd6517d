/* SPDX-License-Identifier: Apache-2.0 */
#include "application_events.h"

#include <string.h>
#include <tailor/event.h>

#include "events.h"
#include "notify.h"
#include "self.h"

#define SIGNATURE "Lio/tailor/Tailor;"
#define CLASSES_USUAL 65536 /* more are no error; with -Xcheck:jni the JVM speaks of it */

static void write_event(enum tailor_event_kind kind, uint64_t request, const struct self *own, uint64_t vthread)
{
	struct tailor_event event = {.kind = kind, .request = request};

	event.arg[0] = vthread;
	notify_event(&event, self_tid(own), clock_ns(), NULL, 0);
}

/* Java says which virtual thread it is: it knows even where mounts are not watched, or were not yet. */
static void JNICALL java_begin(JNIEnv *jni, jclass class, jlong request, jlong vthread)
{
	(void)jni;
	(void)class;
	write_event(TAILOR_EVENT_APP_BEGIN, (uint64_t)request, self(), (uint64_t)vthread);
}

static void JNICALL java_end(JNIEnv *jni, jclass class, jlong request, jlong vthread)
{
	(void)jni;
	(void)class;
	write_event(TAILOR_EVENT_APP_END, (uint64_t)request, self(), (uint64_t)vthread);
}

static jboolean JNICALL java_is_watched(JNIEnv *jni, jclass class)
{
	(void)jni;
	(void)class;
	return JNI_TRUE;
}

/* Of include/tailor/application.h, found there by name. */
JNIEXPORT void tailor_agent_begin(uint64_t request);
JNIEXPORT void tailor_agent_end(uint64_t request);

void tailor_agent_begin(uint64_t request)
{
	const struct self *own;

	if (!request || !notify_page())
		return;
	own = self();
	write_event(TAILOR_EVENT_APP_BEGIN, request, own, own ? own->vthread : 0);
}

void tailor_agent_end(uint64_t request)
{
	const struct self *own;

	if (!request || !notify_page())
		return;
	own = self();
	write_event(TAILOR_EVENT_APP_END, request, own, own ? own->vthread : 0);
}

/*
 * Given rather than exported under their long names: a class of any loader gets them, also in a JVM that does not look
 * for native methods in its agents. Somebody else's class of that name lacks one of them and stays as it is.
 */
static int give_methods(JNIEnv *jni, jclass class)
{
	/* jni.h's texts are not const, but nothing writes to them. */
	const JNINativeMethod methods[] = {
	        {(char *)"begin0", (char *)"(JJ)V", (void *)java_begin},
	        {(char *)"end0", (char *)"(JJ)V", (void *)java_end},
	        {(char *)"isWatched0", (char *)"()Z", (void *)java_is_watched},
	};
	jint result = (*jni)->RegisterNatives(jni, class, methods, sizeof(methods) / sizeof(methods[0]));

	(*jni)->ExceptionClear(jni);
	return result == JNI_OK;
}

void application_class_prepared(JNIEnv *jni, jclass class, const char *signature)
{
	/* Its static initializer comes next, and asks isWatched0() whether we are there. */
	if (strcmp(signature, SIGNATURE) == 0)
		give_methods(jni, class);
}

/* It may have asked in vain already. */
static void turn_on(JNIEnv *jni, jclass class)
{
	jfieldID watched;

	if (!give_methods(jni, class))
		return;
	watched = (*jni)->GetStaticFieldID(jni, class, "watched", "Z");
	if (watched)
		(*jni)->SetStaticBooleanField(jni, class, watched, JNI_TRUE);
	(*jni)->ExceptionClear(jni);
}

void application_events_start(jvmtiEnv *jvmti, JNIEnv *jni)
{
	jclass *classes = NULL;
	jint count = 0;

	if ((*jni)->PushLocalFrame(jni, CLASSES_USUAL) != JNI_OK) {
		(*jni)->ExceptionClear(jni);
		return;
	}
	if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE)
		count = 0;
	for (jint i = 0; i < count; i++) {
		char *signature = NULL;

		if ((*jvmti)->GetClassSignature(jvmti, classes[i], &signature, NULL) == JVMTI_ERROR_NONE && signature) {
			if (strcmp(signature, SIGNATURE) == 0)
				turn_on(jni, classes[i]);
			(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
		}
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)classes); /* NULL is allowed */
	(*jni)->PopLocalFrame(jni, NULL);
}
