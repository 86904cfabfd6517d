/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <tailor/event.h>

#include "events.h"
#include "notify.h"

void JNICALL thread_started(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_THREAD_START};
	uint64_t now_ns = clock_ns();
	jvmtiThreadInfo info;

	memset(&info, 0, sizeof(info));
	if ((*jvmti)->GetThreadInfo(jvmti, thread, &info) != JVMTI_ERROR_NONE || !info.name)
		return;
	notify_event(&event, own_tid(), now_ns, info.name, strlen(info.name));
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info.name);
	if (info.thread_group)
		(*jni)->DeleteLocalRef(jni, info.thread_group);
	if (info.context_class_loader)
		(*jni)->DeleteLocalRef(jni, info.context_class_loader);
}

void JNICALL thread_ended(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_THREAD_END};

	(void)jvmti;
	(void)jni;
	(void)thread;
	notify_event(&event, own_tid(), clock_ns(), NULL, 0);
}
