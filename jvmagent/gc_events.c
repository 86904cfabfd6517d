/* SPDX-License-Identifier: Apache-2.0 */
#include <tailor/event.h>
#include <tailor/jvm_page.h>

#include "events.h"
#include "notify.h"
#include "perfdata.h"
#include "safepoints.h"

/* Only the VM Thread touches these. */
static struct {
	unsigned int depth;
	uint64_t count;
	uint64_t start_ns;
} current;

void JNICALL gc_started(jvmtiEnv *jvmti)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_GC_START};
	struct tailor_jvm_page *page = notify_page();
	uint64_t now_ns = clock_ns();

	(void)jvmti;
	if (current.depth++)
		return;
	current.start_ns = now_ns;
	current.count++;
	__atomic_store_n(&page->pauses, current.count, __ATOMIC_RELAXED);
	notify_state(TAILOR_JVM_COLLECTING, now_ns);

	event.arg[0] = current.count;
	event.arg[1] = safepoints_time_to_stop_ns();
	notify_event(&event, own_tid(), now_ns, NULL, 0);
	notify_wake();
}

void JNICALL gc_finished(jvmtiEnv *jvmti)
{
	struct tailor_event event = {.kind = TAILOR_EVENT_GC_FINISH};
	char text[TAILOR_TEXT_BYTES * TAILOR_TEXTS_MAX];
	struct tailor_jvm_page *page = notify_page();
	uint64_t now_ns, pause_ns, length;

	(void)jvmti;
	/* Turned on in the middle of a pause: its start is not known, so it is nobody's pause. */
	if (!current.depth || --current.depth)
		return;
	now_ns = clock_ns();
	pause_ns = now_ns - current.start_ns;
	__atomic_store_n(&page->pause_ns_last, pause_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&page->pause_ns_total, page->pause_ns_total + pause_ns, __ATOMIC_RELAXED);
	if (pause_ns > page->pause_ns_max)
		__atomic_store_n(&page->pause_ns_max, pause_ns, __ATOMIC_RELAXED);
	notify_state(TAILOR_JVM_RUNNING, now_ns);

	event.arg[0] = current.count;
	event.arg[1] = current.start_ns;
	safepoints_pause_ended();
	length = perfdata_describe(text, sizeof(text));
	notify_event(&event, own_tid(), now_ns, text, length);
	notify_wake();
}
