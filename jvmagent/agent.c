/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtailor-agent.so: the JVM's producer of events.
 *
 *   java -agentpath:/usr/lib/libtailor-agent.so=socket=PATH[,slots=N][,vthreads=on|off][,collect=off|young|full] ...
 *
 * Whatever goes wrong here is said in one line on stderr, and the JVM runs on without the agent: a server that does not
 * start because of its tracer would be the worst tail latency of all.
 */
#include <errno.h>
#include <jvmti.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "application_events.h"
#include "events.h"
#include "java_thread.h"
#include "native_thread.h"
#include "notify.h"
#include "perfdata.h"
#include "safepoints.h"
#include "self.h"
#include "vthread_events.h"

/*
 * A server on virtual threads may mount and unmount tens of thousands of times a second: 4 MiB hold some seconds of
 * that, as 512 KiB hold minutes of the rest.
 */
#define SLOTS_DEFAULT 8192
#define SLOTS_WITH_VTHREADS 65536

struct options {
	char socket[NATIVE_THREAD_PATH_BYTES];
	uint64_t slots; /* 0: as many as are needed */
	int vthreads;
	int collect; /* enum java_thread_collect */
};

static struct {
	struct options options;
	int loaded; /* atomic: 1 from the first load that got as far as its options */
} agent;

/* Options that are one of few words. Returns whether it was one. */
static int take_word(struct options *options, const char *option, size_t length)
{
	static const struct word {
		const char *option;
		size_t member;
		int value;
	} words[] = {
	        {"vthreads=on", offsetof(struct options, vthreads), 1},
	        {"vthreads=off", offsetof(struct options, vthreads), 0},
	        {"collect=off", offsetof(struct options, collect), JAVA_THREAD_COLLECT_OFF},
	        {"collect=young", offsetof(struct options, collect), JAVA_THREAD_COLLECT_YOUNG},
	        {"collect=full", offsetof(struct options, collect), JAVA_THREAD_COLLECT_FULL},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (length != strlen(words[i].option) || strncmp(option, words[i].option, length) != 0)
			continue;
		memcpy((char *)options + words[i].member, &words[i].value, sizeof(words[i].value));
		return 1;
	}
	return 0;
}

/* As above, without spaces; a path has no comma. Says what is wrong and returns -EINVAL, or 0. */
static int parse_options(const char *text, struct options *ret_options)
{
	memset(ret_options, 0, sizeof(*ret_options));
	ret_options->vthreads = 1;
	while (text && *text) {
		size_t length = strcspn(text, ",");

		if (strncmp(text, "socket=", 7) == 0) {
			if (length - 7 >= sizeof(ret_options->socket)) {
				say("the socket's path is longer than %zu bytes; the JVM runs on without it",
				    sizeof(ret_options->socket) - 1);
				return -EINVAL;
			}
			memcpy(ret_options->socket, text + 7, length - 7);
			ret_options->socket[length - 7] = 0;
		} else if (strncmp(text, "slots=", 6) == 0) {
			char *end = NULL;

			errno = 0;
			ret_options->slots = text[6] >= '0' && text[6] <= '9' ? strtoull(text + 6, &end, 10) : 0;
			if (errno || !ret_options->slots || end != text + length ||
			    ret_options->slots < NOTIFY_SLOTS_MIN || ret_options->slots > NOTIFY_SLOTS_MAX ||
			    (ret_options->slots & (ret_options->slots - 1))) {
				say("%.*s: must be a power of two from %d to %llu; the JVM runs on without it",
				    (int)length, text, NOTIFY_SLOTS_MIN, (unsigned long long)NOTIFY_SLOTS_MAX);
				return -EINVAL;
			}
		} else if (!take_word(ret_options, text, length)) {
			say("unknown option \"%.*s\", known are socket=PATH, slots=N, vthreads=on|off and "
			    "collect=off|young|full; the JVM runs on without it",
			    (int)length, text);
			return -EINVAL;
		}
		text += length;
		text += *text == ',';
	}
	if (!ret_options->socket[0]) {
		say("option socket=PATH of the proxy is missing; the JVM runs on without it");
		return -EINVAL;
	}
	return 0;
}

static void enable(jvmtiEnv *jvmti, const jvmtiEvent *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL) != JVMTI_ERROR_NONE)
			say("this JVM refuses event %d; it will be missing", events[i]);
}

/*
 * In the live phase. Not sooner, although classes are loaded before: a class file hook that is on while the VM starts
 * makes it give up parts of its class data archive, and nothing can be served yet.
 */
static int start(jvmtiEnv *jvmti, JNIEnv *jni)
{
	static const jvmtiEvent events[] = {
	        JVMTI_EVENT_VM_DEATH,
	        JVMTI_EVENT_GARBAGE_COLLECTION_START,
	        JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
	        JVMTI_EVENT_CLASS_FILE_LOAD_HOOK,
	        JVMTI_EVENT_CLASS_LOAD,
	        JVMTI_EVENT_CLASS_PREPARE,
	        JVMTI_EVENT_THREAD_START,
	        JVMTI_EVENT_THREAD_END,
	};
	const char *what;
	int result;

	result = notify_open(agent.options.slots, agent.options.socket, &what);
	if (result == 0) {
		result = native_thread_start(agent.options.socket, &what);
		if (result < 0)
			notify_close();
	}
	if (result < 0) {
		say("%s: %s; the JVM runs on without it", what, strerror(-result));
		return result;
	}
	result = perfdata_open();
	if (result == -ENOENT)
		say("no perf-data in shared memory (-XX:-UsePerfData or -XX:+PerfDisableSharedMem): collectors "
		    "and causes will read unknown");
	else if (result < 0)
		say("perf-data of an unknown form: collectors and causes will read unknown");
	else
		safepoints_open();
	class_events_open();
	self_open();
	enable(jvmti, events, sizeof(events) / sizeof(events[0]));
	vthread_events_start(jvmti, jni);
	application_events_start(jvmti, jni);
	native_thread_offer(java_thread_start(jvmti, jni, (enum java_thread_collect)agent.options.collect));
	return 0;
}

static void JNICALL vm_started(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	(void)thread;
	/* The main thread's ThreadStart still comes; other threads there are by now are the VM's own. */
	start(jvmti, jni);
}

static void JNICALL vm_died(jvmtiEnv *jvmti, JNIEnv *jni)
{
	(void)jvmti;
	(void)jni;
	if (!notify_page())
		return;
	notify_gone();
	java_thread_stop();
}

/* Returns the environment with capabilities and callbacks set, or NULL after having said why not. */
static jvmtiEnv *prepare(JavaVM *vm)
{
	const jvmtiEventCallbacks callbacks = {
	        .VMInit = vm_started,
	        .VMDeath = vm_died,
	        .GarbageCollectionStart = gc_started,
	        .GarbageCollectionFinish = gc_finished,
	        .ClassFileLoadHook = class_file_at_hand,
	        .ClassLoad = class_loaded,
	        .ClassPrepare = class_prepared,
	        .ThreadStart = thread_started,
	        .ThreadEnd = thread_ended,
	};
	/* Never can_generate_early_class_hook_events: it costs tens of milliseconds of start-up. */
	const jvmtiCapabilities capabilities = {
	        .can_generate_garbage_collection_events = 1,
	        .can_generate_all_class_hook_events = 1,
	};
	jvmtiEnv *jvmti = NULL;
	jvmtiError error;

	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK || !jvmti) {
		say("this JVM has no JVMTI of version 11; it runs on without the agent");
		return NULL;
	}
	error = (*jvmti)->AddCapabilities(jvmti, &capabilities);
	if (error == JVMTI_ERROR_NONE)
		error = (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks));
	if (error != JVMTI_ERROR_NONE) {
		say("this JVM refuses garbage collection or class events (JVMTI error %d); it runs on without us", error);
		(*jvmti)->DisposeEnvironment(jvmti);
		return NULL;
	}
	if (agent.options.vthreads && vthread_events_prepare(jvmti) && !agent.options.slots)
		agent.options.slots = SLOTS_WITH_VTHREADS;
	if (!agent.options.slots)
		agent.options.slots = SLOTS_DEFAULT;
	return jvmti;
}

/*
 * Both entry points: a library that is named twice, or attached again, is the same mapping and already at work; then there is
 * no environment and no error. Returns a negative errno after having said why it cannot.
 */
static int load(JavaVM *vm, const char *text, jvmtiEnv **ret_jvmti)
{
	struct options options;

	*ret_jvmti = NULL;
	if (parse_options(text, &options) < 0)
		return -EINVAL;
	if (__atomic_exchange_n(&agent.loaded, 1, __ATOMIC_ACQ_REL)) {
		if (strcmp(options.socket, agent.options.socket) != 0)
			say("already loaded with socket=%s, which stays", agent.options.socket);
		return 0;
	}
	agent.options = options;
	*ret_jvmti = prepare(vm);
	if (*ret_jvmti)
		return 0;
	__atomic_store_n(&agent.loaded, 0, __ATOMIC_RELEASE);
	return -ENOTSUP;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text, void *reserved)
{
	static const jvmtiEvent first = JVMTI_EVENT_VM_INIT;
	jvmtiEnv *jvmti;

	(void)reserved;
	/* An error here would keep the JVM from starting. */
	if (load(vm, text, &jvmti) == 0 && jvmti)
		enable(jvmti, &first, 1);
	return JNI_OK;
}

/* An error here only tells whoever attaches. */
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *text, void *reserved)
{
	jvmtiEnv *jvmti;
	JNIEnv *jni;

	(void)reserved;
	if (load(vm, text, &jvmti) < 0)
		return JNI_ERR;
	if (!jvmti || ((*vm)->GetEnv(vm, (void **)&jni, JNI_VERSION_1_6) == JNI_OK && start(jvmti, jni) == 0))
		return JNI_OK;
	/* What was short may not be at the next attempt. */
	(*jvmti)->DisposeEnvironment(jvmti);
	__atomic_store_n(&agent.loaded, 0, __ATOMIC_RELEASE);
	return JNI_ERR;
}
