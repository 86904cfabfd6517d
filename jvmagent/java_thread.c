/* SPDX-License-Identifier: Apache-2.0 */
#include "java_thread.h"

#include <semaphore.h>
#include <time.h>
#include <tailor/jvm_page.h>

#include "heap.h"
#include "notify.h"
#include "wish.h"

#define NAME "tailor-heap"
#define END_WAIT_MS 20

static struct {
	sem_t work;   /* posted when there may be something to do */
	int asleep;   /* atomic: it waits for `work` */
	int running;  /* atomic: from before it is started until its last step */
	int stopping; /* atomic */
} thread;

static void sleep_ms(long milliseconds)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static int stopping(void)
{
	return __atomic_load_n(&thread.stopping, __ATOMIC_ACQUIRE);
}

static int heap_is_wanted(void)
{
	return (__atomic_load_n(&notify_page()->wants, __ATOMIC_RELAXED) & TAILOR_JVM_WANTS_HEAP) != 0;
}

static void publish_heap(JNIEnv *jni)
{
	struct tailor_jvm_heap now;

	if (heap_read(jni, &now) == 0)
		heap_publish(&now);
}

static void work(jvmtiEnv *jvmti, JNIEnv *jni)
{
	int heap_at_hand = -1;

	while (!stopping() && (heap_is_wanted() || wish_is_open())) {
		if (heap_at_hand < 0)
			heap_at_hand = heap_open(jni) == 0;
		wish_grant(jvmti, jni, &thread.stopping);
		if (heap_at_hand && heap_is_wanted())
			publish_heap(jni);
		sleep_ms(heap_at_hand ? TAILOR_JVM_HEAP_MS : TAILOR_JVM_RECONNECT_MS);
	}
}

static void JNICALL run(jvmtiEnv *jvmti, JNIEnv *jni, void *unused)
{
	(void)unused;
	while (!stopping()) {
		work(jvmti, jni);
		__atomic_store_n(&thread.asleep, 1, __ATOMIC_SEQ_CST);
		/* Signals are not for this thread to handle: whatever ends the wait, the loop looks. */
		if (!stopping())
			sem_wait(&thread.work);
		__atomic_store_n(&thread.asleep, 0, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&thread.running, 0, __ATOMIC_RELEASE);
}

void java_thread_beat(void)
{
	if (!__atomic_load_n(&thread.running, __ATOMIC_RELAXED))
		wish_refuse();
	if (__atomic_load_n(&thread.asleep, __ATOMIC_ACQUIRE) && (heap_is_wanted() || wish_is_open())) {
		__atomic_store_n(&thread.asleep, 0, __ATOMIC_RELAXED);
		sem_post(&thread.work);
	}
}

void java_thread_stop(void)
{
	__atomic_store_n(&thread.stopping, 1, __ATOMIC_SEQ_CST);
	/* One that starts meanwhile will see it. */
	if (!__atomic_load_n(&thread.running, __ATOMIC_SEQ_CST))
		return;
	sem_post(&thread.work);
	for (int waited = 0; waited < END_WAIT_MS && __atomic_load_n(&thread.running, __ATOMIC_ACQUIRE); waited++)
		sleep_ms(1);
}

/* In the system's group, as the JVM's own: the application's lists of its threads stay as they are. */
static jthread new_thread(jvmtiEnv *jvmti, JNIEnv *jni)
{
	jclass class = heap_boot_class(jni, "java.lang.Thread");
	jmethodID constructor =
	        class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljava/lang/ThreadGroup;Ljava/lang/String;)V")
	              : NULL;
	jthreadGroup *groups = NULL;
	jthread created = NULL;
	jint count = 0;
	jstring name;

	if (heap_threw(jni) || !constructor)
		return NULL;
	name = (*jni)->NewStringUTF(jni, NAME);
	if (heap_threw(jni) || !name || (*jvmti)->GetTopThreadGroups(jvmti, &count, &groups) != JVMTI_ERROR_NONE)
		return NULL;
	if (count > 0)
		created = (*jni)->NewObject(jni, class, constructor, groups[0], name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)groups);
	return heap_threw(jni) ? NULL : created;
}

static uint64_t what_it_can(JNIEnv *jni, enum java_thread_collect collect)
{
	uint64_t can = TAILOR_JVM_CAN_HEAP;

	/* Who allows collections pays for the beans at the start; whoever does not, only when they are wanted. */
	if (collect == JAVA_THREAD_COLLECT_OFF || heap_open(jni) < 0)
		return can;
	if (heap_has_eden())
		can |= TAILOR_JVM_CAN_COLLECT_YOUNG;
	if (collect == JAVA_THREAD_COLLECT_FULL)
		can |= TAILOR_JVM_CAN_COLLECT_FULL;
	return can;
}

static uint64_t start(jvmtiEnv *jvmti, JNIEnv *jni, enum java_thread_collect collect)
{
	uint64_t can;
	jthread created;
	jvmtiError error;

	if (!heap_is_known(jni))
		return 0;
	created = new_thread(jvmti, jni);
	if (!created || sem_init(&thread.work, 0, 0) < 0) {
		say("no thread for the heap: its occupancy will be unknown");
		return 0;
	}
	can = what_it_can(jni, collect);
	wish_allow(can);
	__atomic_store_n(&thread.running, 1, __ATOMIC_SEQ_CST);
	error = (*jvmti)->RunAgentThread(jvmti, created, run, NULL, JVMTI_THREAD_NORM_PRIORITY);
	if (error == JVMTI_ERROR_NONE)
		return can;
	__atomic_store_n(&thread.running, 0, __ATOMIC_RELEASE);
	say("no thread for the heap (JVMTI error %d): its occupancy will be unknown", error);
	return 0;
}

uint64_t java_thread_start(jvmtiEnv *jvmti, JNIEnv *jni, enum java_thread_collect collect)
{
	uint64_t can = 0;

	if ((*jni)->PushLocalFrame(jni, 32) != JNI_OK) {
		heap_threw(jni);
		return 0;
	}
	can = start(jvmti, jni, collect);
	(*jni)->PopLocalFrame(jni, NULL);
	return can;
}
