/* SPDX-License-Identifier: Apache-2.0 */
#include "wish.h"

#include <tailor/jvm_page.h>

#include "heap.h"
#include "notify.h"

/* Small enough to be born in eden with every collector: half of G1's smallest region would be too much. */
#define BLOCK_BYTES (64 * 1024)
/* Threads take eden in pieces (TLABs), of up to a fiftieth of it where one allocates alone: that it does not fill shows only after some. */
#define LOOK_BYTES (4 * 1024 * 1024)
#define LOOK_PART 16

static uint64_t allowed;

void wish_allow(uint64_t can)
{
	allowed = can & (TAILOR_JVM_CAN_COLLECT_YOUNG | TAILOR_JVM_CAN_COLLECT_FULL);
}

static uint64_t open_wish(void)
{
	const struct tailor_jvm_page *page = notify_page();
	uint64_t wish = __atomic_load_n(&page->wish, __ATOMIC_ACQUIRE);

	if (TAILOR_JVM_WISH_OF(wish) == TAILOR_JVM_WISH_NONE ||
	    wish == __atomic_load_n(&page->granted, __ATOMIC_RELAXED))
		return 0;
	return wish;
}

int wish_is_open(void)
{
	return open_wish() != 0;
}

/* Returns 0 where the JVM would not give any more. */
static int make_garbage(JNIEnv *jni)
{
	jbyteArray block = (*jni)->NewByteArray(jni, BLOCK_BYTES);

	if (heap_threw(jni) || !block)
		return 0;
	(*jni)->DeleteLocalRef(jni, block);
	return 1;
}

static int is_given_up(uint64_t wish, const int *stopping)
{
	return clock_ns() >= TAILOR_JVM_WISH_UNTIL_NS(wish) || __atomic_load_n(stopping, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&notify_page()->wish, __ATOMIC_RELAXED) != wish;
}

static void fill_eden(JNIEnv *jni, uint64_t wish, const int *stopping)
{
	struct tailor_jvm_heap before, last, now;
	uint64_t looked_at = 0, look_bytes, pauses;

	if (heap_read(jni, &before) < 0 || before.old_used > before.old_size - before.old_size / 10)
		return;
	last = before;
	look_bytes = LOOK_BYTES + before.young_size / LOOK_PART;
	pauses = __atomic_load_n(&notify_page()->pauses, __ATOMIC_RELAXED);
	for (uint64_t made = 0; made < 2 * before.young_size + look_bytes; made += BLOCK_BYTES) {
		uint64_t pauses_now = __atomic_load_n(&notify_page()->pauses, __ATOMIC_RELAXED);

		if (is_given_up(wish, stopping) || !make_garbage(jni))
			return;
		if (pauses_now == pauses && made - looked_at < look_bytes)
			continue;
		if (heap_read(jni, &now) < 0 || now.collected_young != before.collected_young ||
		    now.collected_old != before.collected_old)
			return;
		/* They go elsewhere, as with -XX:PretenureSizeThreshold. */
		if (made - looked_at >= look_bytes && now.young_used <= last.young_used)
			return;
		if (made - looked_at >= look_bytes) {
			looked_at = made;
			last = now;
		}
		pauses = pauses_now;
	}
}

void wish_refuse(void)
{
	uint64_t wish = open_wish();

	if (wish)
		__atomic_store_n(&notify_page()->granted, wish, __ATOMIC_RELEASE);
}

void wish_grant(jvmtiEnv *jvmti, JNIEnv *jni, const int *stopping)
{
	uint64_t wish = open_wish(), until_ns = TAILOR_JVM_WISH_UNTIL_NS(wish);

	if (!wish)
		return;
	if (clock_ns() < until_ns) {
		switch (TAILOR_JVM_WISH_OF(wish)) {
		case TAILOR_JVM_WISH_YOUNG:
			if (allowed & TAILOR_JVM_CAN_COLLECT_YOUNG)
				fill_eden(jni, wish, stopping);
			break;
		case TAILOR_JVM_WISH_FULL:
			/* It returns at the collection's end. An error is the JVM's end. */
			if (allowed & TAILOR_JVM_CAN_COLLECT_FULL)
				(void)(*jvmti)->ForceGarbageCollection(jvmti);
			break;
		case TAILOR_JVM_WISH_NONE: break;
		}
	}
	__atomic_store_n(&notify_page()->granted, wish, __ATOMIC_RELEASE);
}
