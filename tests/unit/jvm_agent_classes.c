/* SPDX-License-Identifier: Apache-2.0 */
/* Which hook belongs to which load, and which load to which prepare. The JVM and the channel are played here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jvmagent/application_events.h"
#include "jvmagent/events.h"
#include "jvmagent/notify.h"

/* The last event that was written. */
static struct {
	struct tailor_event event;
	char text[256];
} written;

void notify_event(struct tailor_event *event, uint32_t tid, uint64_t time_ns, const char *text, uint64_t text_length)
{
	written.event = *event;
	written.event.tid = tid;
	written.event.time_ns = time_ns;
	assert_true(text_length < sizeof(written.text));
	memcpy(written.text, text, text_length);
	written.text[text_length] = 0;
}

void application_class_prepared(JNIEnv *jni, jclass class, const char *signature)
{
	(void)jni;
	assert_string_equal(signature, (const char *)class);
}

static int allocated;

/* A class is played by its signature. */
static jvmtiError JNICALL get_class_signature(jvmtiEnv *jvmti, jclass class, char **ret_signature, char **ret_generic)
{
	(void)jvmti;
	assert_null(ret_generic);
	*ret_signature = strdup((const char *)class);
	allocated++;
	return JVMTI_ERROR_NONE;
}

static jvmtiError JNICALL deallocate(jvmtiEnv *jvmti, unsigned char *memory)
{
	(void)jvmti;
	free(memory);
	allocated--;
	return JVMTI_ERROR_NONE;
}

static struct jvmtiInterface_1_ functions = {.GetClassSignature = get_class_signature, .Deallocate = deallocate};
static jvmtiEnv jvmti = &functions;

static void hook(const char *name)
{
	class_file_at_hand(&jvmti, NULL, NULL, NULL, name, NULL, 0, NULL, NULL, NULL);
}

/* Loads and returns the duration. */
static uint64_t load(const char *signature)
{
	class_loaded(&jvmti, NULL, NULL, (jclass)(uintptr_t)signature);
	assert_int_equal(written.event.kind, TAILOR_EVENT_CLASS_LOAD);
	assert_int_equal(allocated, 0);
	return written.event.arg[0];
}

static uint64_t prepare(const char *signature)
{
	class_prepared(&jvmti, NULL, NULL, (jclass)(uintptr_t)signature);
	assert_int_equal(written.event.kind, TAILOR_EVENT_CLASS_PREPARE);
	assert_int_equal(allocated, 0);
	return written.event.arg[0];
}

static void names_read_as_in_java(void **state)
{
	(void)state;
	load("Ljava/lang/String;");
	assert_string_equal(written.text, "java.lang.String");
	load("La/B$$Lambda.0x0000000012345678;");
	assert_string_equal(written.text, "a.B$$Lambda/0x0000000012345678");
	load("L;");
	assert_string_equal(written.text, "");
}

static void a_long_name_is_cut_to_what_an_event_holds(void **state)
{
	char signature[400];

	(void)state;
	memset(signature, 'n', sizeof(signature));
	signature[0] = 'L';
	strcpy(signature + 397, "n;");
	load(signature);
	assert_int_equal(strlen(written.text), TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX);
}

static void a_superclass_loaded_inside_has_its_own_duration(void **state)
{
	uint64_t outer, outer_end, inner, inner_end;

	(void)state;
	hook("x/Sub");
	hook("x/Super");
	inner = load("Lx/Super;");
	inner_end = written.event.time_ns;
	outer = load("Lx/Sub;");
	outer_end = written.event.time_ns;
	assert_true(inner > 0);
	assert_true(outer > inner);
	assert_true(outer_end - outer <= inner_end - inner);
	prepare("Lx/Super;");
	assert_int_equal(written.event.time_ns - written.event.arg[0], inner_end);
	prepare("Lx/Sub;");
	assert_int_equal(written.event.time_ns - written.event.arg[0], outer_end);
}

static void what_was_not_seen_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(load("Lnever/Hooked;"), 0);
	assert_int_equal(prepare("Lnever/Loaded;"), 0);
	hook("once/Only");
	assert_true(load("Lonce/Only;") > 0);
	assert_int_equal(load("Lonce/Only;"), 0);
	assert_true(prepare("Lonce/Only;") > 0);
}

static void a_failed_definition_does_not_count_for_the_next(void **state)
{
	uint64_t before_ns;

	(void)state;
	hook("fails/First");
	before_ns = clock_ns();
	hook("fails/First");
	load("Lfails/First;");
	assert_true(written.event.time_ns - written.event.arg[0] >= before_ns);
}

static void a_hook_for_a_redefinition_or_without_a_name_is_no_load(void **state)
{
	(void)state;
	class_file_at_hand(&jvmti, NULL, (jclass)(uintptr_t) "Lre/Defined;", NULL, "re/Defined", NULL, 0, NULL, NULL,
	                   NULL);
	assert_int_equal(load("Lre/Defined;"), 0);
	hook(NULL);
}

static void classes_nested_too_deeply_lose_only_the_outermost(void **state)
{
	char name[40], signature[40];

	(void)state;
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "deep/C%d", i);
		hook(name);
	}
	for (int i = 39; i >= 0; i--) {
		snprintf(signature, sizeof(signature), "Ldeep/C%d;", i);
		assert_int_equal(load(signature) > 0, i >= 40 - 16);
	}
}

static void *load_elsewhere(void *unused)
{
	(void)unused;
	return (void *)(uintptr_t)load("Lmine/Alone;");
}

static void threads_do_not_mix(void **state)
{
	pthread_t thread;
	void *duration;

	(void)state;
	hook("mine/Alone");
	assert_int_equal(pthread_create(&thread, NULL, load_elsewhere, NULL), 0);
	assert_int_equal(pthread_join(thread, &duration), 0);
	assert_null(duration);
	assert_true(load("Lmine/Alone;") > 0);
}

static int open_classes(void **state)
{
	(void)state;
	return class_events_open();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_read_as_in_java),
	        cmocka_unit_test(a_long_name_is_cut_to_what_an_event_holds),
	        cmocka_unit_test(a_superclass_loaded_inside_has_its_own_duration),
	        cmocka_unit_test(what_was_not_seen_is_unknown),
	        cmocka_unit_test(a_failed_definition_does_not_count_for_the_next),
	        cmocka_unit_test(a_hook_for_a_redefinition_or_without_a_name_is_no_load),
	        cmocka_unit_test(classes_nested_too_deeply_lose_only_the_outermost),
	        cmocka_unit_test(threads_do_not_mix),
	};

	return cmocka_run_group_tests(tests, open_classes, NULL);
}
