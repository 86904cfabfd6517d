/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <errno.h>
#include <string.h>

#include "notify.h"

#define BEANS_MAX 8

#define POOL "java.lang.management.MemoryPoolMXBean"
#define COLLECTOR "java.lang.management.GarbageCollectorMXBean"
#define USAGE "java.lang.management.MemoryUsage"

enum part {
	PART_OTHER,
	PART_YOUNG,
	PART_OLD,
};

struct bean {
	jobject object; /* a global reference, kept for good */
	enum part part;
};

struct beans {
	struct bean bean[BEANS_MAX];
	int count;
};

/* Method identifiers stay valid: classes of the boot loader are never unloaded. */
static struct {
	struct beans pools, collectors;
	jmethodID get_usage, get_used, get_committed, get_max, get_count;
	int has_eden;
	int opened; /* 1 or a negative errno; 0: not tried yet */
} heap;

int heap_threw(JNIEnv *jni)
{
	if (!(*jni)->ExceptionCheck(jni))
		return 0;
	(*jni)->ExceptionClear(jni);
	return 1;
}

/* Class.forName() with no loader rather than FindClass(), which may run an application's own system class loader. */
jclass heap_boot_class(JNIEnv *jni, const char *name)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Class");
	jobject found = NULL;
	jmethodID for_name;
	jstring text;

	if (heap_threw(jni) || !class)
		return NULL;
	for_name = (*jni)->GetStaticMethodID(jni, class, "forName",
	                                     "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;");
	if (heap_threw(jni) || !for_name)
		return NULL;
	text = (*jni)->NewStringUTF(jni, name);
	if (heap_threw(jni) || !text)
		return NULL;
	found = (*jni)->CallStaticObjectMethod(jni, class, for_name, text, JNI_FALSE, NULL);
	return heap_threw(jni) ? NULL : found;
}

int heap_is_known(JNIEnv *jni)
{
	int known;

	if ((*jni)->PushLocalFrame(jni, 16) != JNI_OK) {
		heap_threw(jni);
		return 0;
	}
	known = heap_boot_class(jni, "java.lang.management.ManagementFactory") != NULL;
	(*jni)->PopLocalFrame(jni, NULL);
	return known;
}

/* A pool of the heap, by its name in the beans of JDK 17 to 25. Survivors are neither: they fill only in a collection.
 */
static enum part part_of_pool(const char *name)
{
	if (strstr(name, "Survivor"))
		return PART_OTHER;
	if (strstr(name, "Eden") || strstr(name, "Young"))
		return PART_YOUNG;
	return PART_OLD;
}

/* "... Pauses" counts the stops of what "... Cycles" counts once; "G1 Concurrent GC" those of a cycle that frees little
 * itself. */
static enum part part_of_collector(const char *name)
{
	if (strstr(name, "Pauses") || strstr(name, "Concurrent"))
		return PART_OTHER;
	if (strcmp(name, "Copy") == 0 || strstr(name, "Scavenge") || strstr(name, "Young") || strstr(name, "Minor"))
		return PART_YOUNG;
	return PART_OLD;
}

static jmethodID find_method(JNIEnv *jni, const char *class_name, const char *method, const char *signature)
{
	jclass class = heap_boot_class(jni, class_name);
	jmethodID id = class ? (*jni)->GetMethodID(jni, class, method, signature) : NULL;

	return heap_threw(jni) ? NULL : id;
}

static jobject call(JNIEnv *jni, jobject object, const char *class_name, const char *method, const char *signature)
{
	jmethodID id = find_method(jni, class_name, method, signature);
	jobject result = id ? (*jni)->CallObjectMethod(jni, object, id) : NULL;

	return heap_threw(jni) ? NULL : result;
}

/* Copies the bean's getName(), cut to the buffer; "" if there is none. */
static void name_of(JNIEnv *jni, jobject bean, const char *class_name, char *name, size_t size)
{
	jstring text = call(jni, bean, class_name, "getName", "()Ljava/lang/String;");
	const char *bytes = text ? (*jni)->GetStringUTFChars(jni, text, NULL) : NULL;

	name[0] = 0;
	heap_threw(jni);
	if (!bytes)
		return;
	strncat(name, bytes, size - 1);
	(*jni)->ReleaseStringUTFChars(jni, text, bytes);
}

static int is_heap_pool(JNIEnv *jni, jobject bean)
{
	jclass types = heap_boot_class(jni, "java.lang.management.MemoryType");
	jobject type = call(jni, bean, POOL, "getType", "()Ljava/lang/management/MemoryType;");
	jfieldID field = types && type
	                         ? (*jni)->GetStaticFieldID(jni, types, "HEAP", "Ljava/lang/management/MemoryType;")
	                         : NULL;

	return !heap_threw(jni) && field &&
	       (*jni)->IsSameObject(jni, type, (*jni)->GetStaticObjectField(jni, types, field));
}

static void take_bean(JNIEnv *jni, struct beans *beans, jobject bean, int is_pool)
{
	struct bean *taken = &beans->bean[beans->count];
	char name[64];

	if (beans->count == BEANS_MAX || (is_pool && !is_heap_pool(jni, bean)))
		return;
	name_of(jni, bean, is_pool ? POOL : COLLECTOR, name, sizeof(name));
	taken->part = is_pool ? part_of_pool(name) : part_of_collector(name);
	if (taken->part == PART_OTHER)
		return;
	taken->object = (*jni)->NewGlobalRef(jni, bean);
	if (heap_threw(jni) || !taken->object)
		return;
	beans->count++;
	heap.has_eden |= is_pool && strstr(name, "Eden") != NULL;
}

/* All beans of a list that ManagementFactory's method returns. */
static void take_beans(JNIEnv *jni, struct beans *beans, const char *method, int is_pool)
{
	jclass factory = heap_boot_class(jni, "java.lang.management.ManagementFactory"),
	       lists = heap_boot_class(jni, "java.util.List");
	jmethodID getter = factory ? (*jni)->GetStaticMethodID(jni, factory, method, "()Ljava/util/List;") : NULL;
	jmethodID size, get;
	jobject list;
	jint count;

	if (heap_threw(jni) || !getter || !lists)
		return;
	list = (*jni)->CallStaticObjectMethod(jni, factory, getter);
	if (heap_threw(jni) || !list)
		return;
	size = (*jni)->GetMethodID(jni, lists, "size", "()I");
	get = heap_threw(jni) ? NULL : (*jni)->GetMethodID(jni, lists, "get", "(I)Ljava/lang/Object;");
	if (heap_threw(jni) || !size || !get)
		return;
	count = (*jni)->CallIntMethod(jni, list, size);
	if (heap_threw(jni))
		return;
	for (jint i = 0; i < count; i++) {
		jobject bean;

		if ((*jni)->PushLocalFrame(jni, 32) != JNI_OK) {
			heap_threw(jni);
			return;
		}
		bean = (*jni)->CallObjectMethod(jni, list, get, i);
		if (!heap_threw(jni) && bean)
			take_bean(jni, beans, bean, is_pool);
		(*jni)->PopLocalFrame(jni, NULL);
	}
}

static int find_methods(JNIEnv *jni)
{
	heap.get_usage = find_method(jni, POOL, "getUsage", "()Ljava/lang/management/MemoryUsage;");
	heap.get_used = find_method(jni, USAGE, "getUsed", "()J");
	heap.get_committed = find_method(jni, USAGE, "getCommitted", "()J");
	heap.get_max = find_method(jni, USAGE, "getMax", "()J");
	heap.get_count = find_method(jni, COLLECTOR, "getCollectionCount", "()J");
	return heap.get_usage && heap.get_used && heap.get_committed && heap.get_max && heap.get_count;
}

int heap_open(JNIEnv *jni)
{
	if (heap.opened)
		return heap.opened < 0 ? heap.opened : 0;
	heap.opened = -ENOENT;
	if ((*jni)->PushLocalFrame(jni, 64) != JNI_OK) {
		heap_threw(jni);
		return -ENOENT;
	}
	if (find_methods(jni)) {
		take_beans(jni, &heap.pools, "getMemoryPoolMXBeans", 1);
		take_beans(jni, &heap.collectors, "getGarbageCollectorMXBeans", 0);
	}
	(*jni)->PopLocalFrame(jni, NULL);
	if (heap.pools.count > 0)
		heap.opened = 1;
	return heap.opened < 0 ? heap.opened : 0;
}

int heap_has_eden(void)
{
	return heap.has_eden;
}

/* A count of the bean's that cannot be below 0; where it is not known (-1) it reads 0. */
static uint64_t read_long(JNIEnv *jni, jobject object, jmethodID method, int *failed)
{
	jlong value = (*jni)->CallLongMethod(jni, object, method);

	if (heap_threw(jni)) {
		*failed = 1;
		return 0;
	}
	return value < 0 ? 0 : (uint64_t)value;
}

static void read_pool(JNIEnv *jni, const struct bean *pool, struct tailor_jvm_heap *now, int *failed)
{
	jobject usage = (*jni)->CallObjectMethod(jni, pool->object, heap.get_usage);
	uint64_t used, committed, most;

	if (heap_threw(jni) || !usage) {
		*failed = 1;
		return;
	}
	used = read_long(jni, usage, heap.get_used, failed);
	committed = read_long(jni, usage, heap.get_committed, failed);
	most = read_long(jni, usage, heap.get_max, failed);
	(*jni)->DeleteLocalRef(jni, usage);
	if (pool->part == PART_YOUNG) {
		now->young_used += used;
		/* An eden is collected when what it has now is full, whatever it may become; what there is without one,
		 * when the collector thinks fit. */
		now->young_size += heap.has_eden ? committed : 0;
	} else {
		now->old_used += used;
		now->old_size += most ? most : committed;
	}
}

int heap_read(JNIEnv *jni, struct tailor_jvm_heap *ret_now)
{
	int failed = 0;

	*ret_now = (struct tailor_jvm_heap){.time_ns = clock_ns()};
	for (int i = 0; i < heap.pools.count && !failed; i++)
		read_pool(jni, &heap.pools.bean[i], ret_now, &failed);
	for (int i = 0; i < heap.collectors.count && !failed; i++) {
		const struct bean *collector = &heap.collectors.bean[i];
		uint64_t count = read_long(jni, collector->object, heap.get_count, &failed);

		if (collector->part == PART_YOUNG)
			ret_now->collected_young += count;
		else
			ret_now->collected_old += count;
	}
	return failed ? -EIO : 0;
}

void heap_publish(const struct tailor_jvm_heap *now)
{
	struct tailor_jvm_heap *shown = &notify_page()->heap;
	uint64_t version = __atomic_load_n(&shown->version, __ATOMIC_RELAXED) | 1;

	__atomic_store_n(&shown->version, version, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&shown->time_ns, now->time_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->young_used, now->young_used, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->young_size, now->young_size, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->old_used, now->old_used, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->old_size, now->old_size, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->collected_young, now->collected_young, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->collected_old, now->collected_old, __ATOMIC_RELAXED);
	__atomic_store_n(&shown->version, version + 1, __ATOMIC_RELEASE);
}
