/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A class's way on one thread: its file is at hand (hook), it is defined (load), it is linked (prepare). Classes nest:
 * while B is being defined its superclass A passes all of that on the same thread, and a definition may fail and leave
 * only its hook behind. So each thread keeps its latest hooks and loads by the hash of the class's name, and a duration
 * is stated only where both ends have the same name.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/event.h>

#include "application_events.h"
#include "events.h"
#include "notify.h"

#define PENDING_MAX 16 /* deeper than classes usually nest; the oldest gives way */
#define NAME_BYTES_MAX (TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX)

struct pending {
	unsigned int count;
	struct {
		uint64_t name;
		uint64_t time_ns;
	} at[PENDING_MAX];
};

struct thread_classes {
	struct pending hooked, loaded;
};

/*
 * A key rather than __thread: thread-local storage of a library can only be had at once (a place that others may have
 * used up, and then the JVM does not start) or on first use (where glibc aborts without memory). Here no memory means
 * no durations.
 */
static pthread_key_t classes_key;
static int have_key;

int class_events_open(void)
{
	int error = pthread_key_create(&classes_key, free);

	have_key = error == 0;
	return -error;
}

static struct thread_classes *thread_classes(void)
{
	struct thread_classes *classes;

	if (!have_key)
		return NULL;
	classes = pthread_getspecific(classes_key);
	if (classes)
		return classes;
	classes = calloc(1, sizeof(*classes));
	if (classes && pthread_setspecific(classes_key, classes) != 0) {
		free(classes);
		return NULL;
	}
	return classes;
}

/* FNV-1a. */
static uint64_t hash(const char *bytes, size_t length)
{
	uint64_t value = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++)
		value = (value ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return value;
}

static void push(struct pending *pending, uint64_t name, uint64_t time_ns)
{
	if (pending->count == PENDING_MAX) {
		pending->count--;
		memmove(&pending->at[0], &pending->at[1], sizeof(pending->at[0]) * pending->count);
	}
	pending->at[pending->count].name = name;
	pending->at[pending->count].time_ns = time_ns;
	pending->count++;
}

/* The time since `name` was pushed last, 0 if it was not; takes it out. */
static uint64_t pop(struct pending *pending, uint64_t name, uint64_t now_ns)
{
	unsigned int i = pending->count;
	uint64_t since_ns;

	while (i-- > 0) {
		if (pending->at[i].name != name)
			continue;
		since_ns = now_ns - pending->at[i].time_ns;
		pending->count--;
		memmove(&pending->at[i], &pending->at[i + 1], sizeof(pending->at[0]) * (pending->count - i));
		return since_ns;
	}
	return 0;
}

/*
 * "Ljava/lang/String;" to "java.lang.String" in place; ret_length is cut to what an event can hold. A hidden class has
 * a dot before its suffix (JVMTI, GetClassSignature) where Class.getName() has a slash. Arrays are never loaded with an
 * event.
 */
static const char *readable_name(char *signature, size_t *ret_length)
{
	size_t length = strlen(signature);
	char *name = signature;

	if (length >= 2 && name[0] == 'L' && name[length - 1] == ';') {
		name++;
		length -= 2;
	}
	for (size_t i = 0; i < length; i++)
		name[i] = name[i] == '/' ? '.' : name[i] == '.' ? '/' : name[i];
	*ret_length = length < NAME_BYTES_MAX ? length : NAME_BYTES_MAX;
	return name;
}

/* The hash of the class's internal name, as ClassFileLoadHook gives it. */
static uint64_t signature_hash(const char *signature)
{
	size_t length = strlen(signature);

	return length >= 2 && signature[0] == 'L' ? hash(signature + 1, length - 2) : hash(signature, length);
}

void JNICALL class_file_at_hand(jvmtiEnv *jvmti, JNIEnv *jni, jclass redefined, jobject loader, const char *name,
                                jobject domain, jint length, const unsigned char *bytes, jint *ret_length,
                                unsigned char **ret_bytes)
{
	struct thread_classes *classes;

	(void)jvmti;
	(void)jni;
	(void)loader;
	(void)domain;
	(void)length;
	(void)bytes;
	/* Left alone, the class stays as it is. */
	(void)ret_length;
	(void)ret_bytes;
	if (redefined || !name)
		return;
	classes = thread_classes();
	if (classes)
		push(&classes->hooked, hash(name, strlen(name)), clock_ns());
}

/* ClassLoad ends what the hook began and begins what ClassPrepare ends. */
static void announce(jvmtiEnv *jvmti, JNIEnv *jni, jclass class, enum tailor_event_kind kind)
{
	struct tailor_event event = {.kind = kind};
	struct thread_classes *classes = thread_classes();
	uint64_t now_ns = clock_ns();
	char *signature = NULL;
	const char *name;
	size_t length;

	if ((*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) != JVMTI_ERROR_NONE || !signature)
		return;
	if (classes) {
		uint64_t key = signature_hash(signature);

		event.arg[0] = pop(kind == TAILOR_EVENT_CLASS_LOAD ? &classes->hooked : &classes->loaded, key, now_ns);
		if (kind == TAILOR_EVENT_CLASS_LOAD)
			push(&classes->loaded, key, now_ns);
	}
	if (kind == TAILOR_EVENT_CLASS_PREPARE)
		application_class_prepared(jni, class, signature);
	name = readable_name(signature, &length);
	notify_event(&event, own_tid(), now_ns, name, length);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

void JNICALL class_loaded(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
	(void)thread;
	announce(jvmti, jni, class, TAILOR_EVENT_CLASS_LOAD);
}

void JNICALL class_prepared(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
	(void)thread;
	announce(jvmti, jni, class, TAILOR_EVENT_CLASS_PREPARE);
}
