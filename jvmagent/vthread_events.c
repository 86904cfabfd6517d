/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which virtual thread runs on which carrier, and when. JDK 21 and later say so by two extension events of HotSpot,
 * com.sun.hotspot.events.VirtualThreadMount and -Unmount, on the carrier: the first just after the thread's identity
 * has changed, the second just before, so both may use JNI.
 *
 * A virtual thread's number is its Thread.threadId(): the JDK gives it before the first mount and never again, 0 never.
 * It is read from the field behind it, which costs a few nanoseconds and no step into the VM. JVMTI's thread-local
 * storage would do as well, but makes the VM create a state under a global lock for each virtual thread there ever is.
 */
#include "vthread_events.h"

#include <stdarg.h>
#include <string.h>
#include <tailor/event.h>

#include "events.h"
#include "notify.h"
#include "self.h"

/* can_support_virtual_threads of JDK 21's jvmti.h, in the place where headers of JDK 17 have only reserved bits. */
#define SUPPORT_VIRTUAL_THREADS_BYTE 5
#define SUPPORT_VIRTUAL_THREADS_BIT 0x10

/* The JVM's indices of the events, 0 where it has none; the field is set before the events are turned on. */
static struct {
	jint mount, unmount;
	jfieldID number;
} vthreads;

static void write_event(JNIEnv *jni, jobject vthread, enum tailor_event_kind kind)
{
	struct tailor_event event = {.kind = kind};
	struct self *own = self();
	uint64_t number = (uint64_t)(*jni)->GetLongField(jni, vthread, vthreads.number);

	if (own)
		own->vthread = kind == TAILOR_EVENT_VTHREAD_MOUNT ? number : 0;
	event.arg[0] = number;
	notify_event(&event, self_tid(own), clock_ns(), NULL, 0);
}

static void JNICALL mounted(jvmtiEnv *jvmti, ...)
{
	JNIEnv *jni;
	va_list arguments;

	va_start(arguments, jvmti);
	jni = va_arg(arguments, JNIEnv *);
	write_event(jni, va_arg(arguments, jobject), TAILOR_EVENT_VTHREAD_MOUNT);
	va_end(arguments);
}

static void JNICALL unmounted(jvmtiEnv *jvmti, ...)
{
	JNIEnv *jni;
	va_list arguments;

	va_start(arguments, jvmti);
	jni = va_arg(arguments, JNIEnv *);
	write_event(jni, va_arg(arguments, jobject), TAILOR_EVENT_VTHREAD_UNMOUNT);
	va_end(arguments);
}

/* Takes what GetExtensionEvents() gave for one event, and gives its memory back. */
static void take_extension(jvmtiEnv *jvmti, jvmtiExtensionEventInfo *info)
{
	/* (JNIEnv *, jthread); anything else is an event we do not know, whatever its name. */
	int known = info->param_count == 2 && info->params[0].base_type == JVMTI_TYPE_JNIENV &&
	            info->params[1].base_type == JVMTI_TYPE_JTHREAD;

	if (known && strcmp(info->id, "com.sun.hotspot.events.VirtualThreadMount") == 0)
		vthreads.mount = info->extension_event_index;
	else if (known && strcmp(info->id, "com.sun.hotspot.events.VirtualThreadUnmount") == 0)
		vthreads.unmount = info->extension_event_index;
	for (jint i = 0; i < info->param_count; i++)
		(*jvmti)->Deallocate(jvmti, (unsigned char *)info->params[i].name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->params);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->id);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)info->short_description);
}

static int find_extensions(jvmtiEnv *jvmti)
{
	jvmtiExtensionEventInfo *infos = NULL;
	jint count = 0;

	if ((*jvmti)->GetExtensionEvents(jvmti, &count, &infos) != JVMTI_ERROR_NONE)
		return 0;
	for (jint i = 0; i < count; i++)
		take_extension(jvmti, &infos[i]);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)infos);
	return vthreads.mount && vthreads.unmount;
}

int vthread_events_prepare(jvmtiEnv *jvmti)
{
	jvmtiCapabilities capabilities;
	jvmtiError error;

	if (!find_extensions(jvmti))
		return 0;
	memset(&capabilities, 0, sizeof(capabilities));
	((unsigned char *)&capabilities)[SUPPORT_VIRTUAL_THREADS_BYTE] = SUPPORT_VIRTUAL_THREADS_BIT;
	error = (*jvmti)->AddCapabilities(jvmti, &capabilities);
	if (error == JVMTI_ERROR_NONE)
		error = (*jvmti)->SetExtensionEventCallback(jvmti, vthreads.mount, mounted);
	if (error == JVMTI_ERROR_NONE)
		error = (*jvmti)->SetExtensionEventCallback(jvmti, vthreads.unmount, unmounted);
	if (error == JVMTI_ERROR_NONE)
		return 1;
	say("this JVM refuses events of virtual threads (JVMTI error %d); they will be missing", error);
	vthreads.mount = vthreads.unmount = 0;
	return 0;
}

/* Thread.tid, what Thread.threadId() returns; NULL where this JDK keeps it elsewhere. */
static jfieldID find_number(JNIEnv *jni)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Thread");
	jfieldID number = class ? (*jni)->GetFieldID(jni, class, "tid", "J") : NULL;

	(*jni)->ExceptionClear(jni);
	if (class)
		(*jni)->DeleteLocalRef(jni, class);
	return number;
}

void vthread_events_start(jvmtiEnv *jvmti, JNIEnv *jni)
{
	const jint events[] = {vthreads.mount, vthreads.unmount};

	if (!vthreads.mount)
		return;
	vthreads.number = find_number(jni);
	if (!vthreads.number) {
		say("this JDK's threads have no number that we know; events of virtual threads will be missing");
		return;
	}
	/* The callback alone does not turn an extension event on, whatever SetExtensionEventCallback's page says. */
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, (jvmtiEvent)events[i], NULL) !=
		    JVMTI_ERROR_NONE)
			say("this JVM refuses an event of virtual threads; it will be missing");
}
