/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
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

/* Who writes page.cause has set it from 0 to 1; who finds it set leaves the cause to the other, for nobody may wait
 * here. */
static int cause_taken; /* atomic */

static int take_cause(void)
{
	return !__atomic_exchange_n(&cause_taken, 1, __ATOMIC_ACQUIRE);
}

/* Only who has taken it. A reader may see a mix (jvm_page.h). */
static void write_cause(const char *cause)
{
	char *shown = notify_page()->cause;

	for (size_t i = 0; i < TAILOR_JVM_CAUSE_BYTES; i++) {
		__atomic_store_n(&shown[i], cause[i], __ATOMIC_RELAXED);
		if (!cause[i])
			return;
	}
}

static void give_cause(void)
{
	__atomic_store_n(&cause_taken, 0, __ATOMIC_RELEASE);
}

/* Also where it is not known yet: the pause before had another one. */
static void publish_cause_at_start(void)
{
	char cause[TAILOR_JVM_CAUSE_BYTES];

	perfdata_cause(cause, sizeof(cause));
	if (!take_cause())
		return;
	write_cause(cause);
	give_cause();
}

/* Of a pause that was too short for a beat. What has been said already stays: lengths are learned by it. */
static void publish_cause_at_finish(const char *text, size_t length)
{
	const char *tab = memchr(text, '\t', length);
	char cause[TAILOR_JVM_CAUSE_BYTES];

	if (__atomic_load_n(&notify_page()->cause[0], __ATOMIC_RELAXED) || !tab || strcmp(tab + 1, "unknown") == 0 ||
	    !take_cause())
		return;
	memccpy(cause, tab + 1, 0, sizeof(cause) - 1);
	cause[sizeof(cause) - 1] = 0;
	write_cause(cause);
	give_cause();
}

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
	publish_cause_at_start();
	notify_state(TAILOR_JVM_COLLECTING, now_ns);

	event.arg[0] = current.count;
	event.arg[1] = safepoints_time_to_stop_ns();
	notify_event(&event, own_tid(), now_ns, NULL, 0);
	notify_wake();
}

void gc_beat(void)
{
	struct tailor_jvm_page *page = notify_page();
	uint64_t state = __atomic_load_n(&page->state, __ATOMIC_ACQUIRE);
	char cause[TAILOR_JVM_CAUSE_BYTES];

	if (TAILOR_JVM_STATE_OF(state) != TAILOR_JVM_COLLECTING || __atomic_load_n(&page->cause[0], __ATOMIC_RELAXED) ||
	    perfdata_cause(cause, sizeof(cause)) == 0 || !take_cause())
		return;
	write_cause(cause);
	/* What was read may be of a pause that ended meanwhile, and the next one has left the cause to us. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&page->state, __ATOMIC_RELAXED) != state)
		write_cause("");
	give_cause();
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
	length = perfdata_describe(text, sizeof(text));
	publish_cause_at_finish(text, length);
	notify_state(TAILOR_JVM_RUNNING, now_ns);

	event.arg[0] = current.count;
	event.arg[1] = current.start_ns;
	safepoints_pause_ended();
	notify_event(&event, own_tid(), now_ns, text, length);
	notify_wake();
}
