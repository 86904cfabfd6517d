/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/client.h"

#include <string.h>

#include "base/units.h"

/* What the proxy's buffer and a new socket's take in any case. */
#define LONG_RESPONSE_BYTES 32768
/* Shorter waits in the middle of a long response are nobody's worry. */
#define DOUBT_NS 1000000

uint64_t client_arrival(const struct tailor_window *window)
{
	const struct tailor_record *record = &window->record;
	uint64_t begin = record->request.begin_ns;

	if (record->late_from_ns == 0 || record->client_port == 0)
		return begin;
	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if (event->kind == TAILOR_EVENT_ARRIVAL && event->time_ns >= record->late_from_ns && event->time_ns < begin &&
		    TAILOR_PORTS_REMOTE(event->extra) == record->client_port)
			return event->time_ns;
	}
	/* What woke the worker, and what comes on a connection that is not accepted yet, makes no such event. */
	if (record->late_there_ns >= record->late_from_ns && record->late_there_ns < begin)
		return record->late_there_ns;
	return begin;
}

static unsigned int waits_of(const struct tailor_record *record)
{
	return record->client_waits < TAILOR_CLIENT_WAITS_MAX ? record->client_waits : TAILOR_CLIENT_WAITS_MAX;
}

/* TCP itself says that the client took no more for at least half of it. */
static int tcp_waited(const struct tailor_client_wait *wait)
{
	return ((uint64_t)wait->window_us + wait->buffer_us) * 2000 >= wait->end_ns - wait->start_ns;
}

/* Many waits are the client's time between them, too, if most of it was waiting. */
static int is_the_clients(const struct tailor_client_wait *wait)
{
	return wait->waited_us == 0 || tcp_waited(wait) || (uint64_t)wait->waited_us * 2000 >= wait->end_ns - wait->start_ns;
}

uint64_t client_doubt_from(const struct tailor_window *window)
{
	const struct tailor_record *record = &window->record;
	unsigned int waits = waits_of(record);

	/* With a few waits told, there were no others. A client that reads slowly all the time makes none, or many short ones. */
	if (record->request.response_bytes <= LONG_RESPONSE_BYTES)
		return 0;
	for (unsigned int i = 0; i < waits; i++) {
		if (!is_the_clients(&record->client_wait[i]))
			return record->reply_begin_ns;
	}
	return waits > 0 && waits < TAILOR_CLIENT_WAITS_MAX ? 0 : record->reply_begin_ns;
}

/*
 * Spans in which bytes stood still between server and client, in which the server waited, or of which nobody knows what happened: while
 * bytes wait for the client, it is what the response waits for. A server's thread that waits for room waits in poll(2), or for
 * the thread that does.
 */
static int may_be_the_clients(const struct tailor_span *span)
{
	switch (span->cause) {
	case TAILOR_CAUSE_UNEXPLAINED:
	case TAILOR_CAUSE_BLOCKED_NETWORK:
	case TAILOR_CAUSE_BLOCKED_SLEEP:
	case TAILOR_CAUSE_BLOCKED_LOCK:
	case TAILOR_CAUSE_RESPONSE_BUFFERED:
	case TAILOR_CAUSE_RESPONSE_TRANSIT:
	case TAILOR_CAUSE_RETRANSMISSION:
	case TAILOR_CAUSE_SERVER:
	case TAILOR_CAUSE_SLOW_CLIENT: return 1;
	default: return 0;
	}
}

/* Those that are known to be the server's alone: what it did while its bytes could not go on delayed nobody. */
static int is_the_servers(const struct tailor_span *span, uint32_t proxy_pid)
{
	switch (span->cause) {
	case TAILOR_CAUSE_SERVER_QUEUE:
	case TAILOR_CAUSE_RUN_QUEUE:
	case TAILOR_CAUSE_ON_CPU:
	case TAILOR_CAUSE_PREEMPTED:
	case TAILOR_CAUSE_BLOCKED_IO:
	case TAILOR_CAUSE_STOPPED:
	case TAILOR_CAUSE_GC:
	case TAILOR_CAUSE_TIME_TO_SAFEPOINT:
	case TAILOR_CAUSE_SAFEPOINT:
	case TAILOR_CAUSE_CLASS_LOADING:
	case TAILOR_CAUSE_PAGE_FAULT_MINOR:
	case TAILOR_CAUSE_PAGE_FAULT_MAJOR:
	case TAILOR_CAUSE_THROTTLED:
	case TAILOR_CAUSE_INTERRUPTS: return span->pid != 0 && span->pid != proxy_pid;
	default: return 0;
	}
}

static void describe(const struct tailor_client_wait *wait, struct tailor_span *span)
{
	uint64_t duration = wait->end_ns - wait->start_ns, window = (uint64_t)wait->window_us * 1000;
	char whole[32], closed[32];

	tailor_format_duration(whole, sizeof(whole), duration);
	tailor_format_duration(closed, sizeof(closed), window < duration ? window : duration);
	if (window >= duration / 2)
		span_detail(span, "the client's window was closed for %s of %s", closed, whole);
	else
		span_detail(span, "the client read slower than the server wrote, for %s", whole);
	if (wait->waited_us)
		span_detail_more(span, "in many steps");
	else if (wait->bytes)
		span_detail_more(span, "%llu bytes waited", (unsigned long long)wait->bytes);
}

static void cover_wait(const struct tailor_client_wait *wait, uint32_t proxy_pid, struct span_list *spans)
{
	if (wait->start_ns >= wait->end_ns || !is_the_clients(wait))
		return;
	span_list_split(spans, 0, wait->start_ns, wait->end_ns);
	for (size_t i = 0; i < spans->count; i++) {
		struct tailor_span *span = &spans->spans[i];

		if (!span_within(span, wait->start_ns, wait->end_ns) ||
		    !(may_be_the_clients(span) || (tcp_waited(wait) && is_the_servers(span, proxy_pid))))
			continue;
		span->cause = TAILOR_CAUSE_SLOW_CLIENT;
		span->pid = span->tid = 0;
		memset(span->thread, 0, sizeof(span->thread));
		describe(wait, span);
	}
}

static int is_doubtful(const struct tailor_span *span)
{
	/* Those reasons are the server's own. */
	if (span->cause == TAILOR_CAUSE_RESPONSE_BUFFERED)
		return !strstr(span->detail, "Nagle") && !strstr(span->detail, "TCP_CORK") && !strstr(span->detail, "congestion");
	return span->cause == TAILOR_CAUSE_RESPONSE_TRANSIT || span->cause == TAILOR_CAUSE_SERVER;
}

void client_cover(const struct tailor_window *window, struct span_list *spans)
{
	const struct tailor_record *record = &window->record;
	uint64_t doubt_from = client_doubt_from(window);

	for (unsigned int i = 0; i < waits_of(record); i++)
		cover_wait(&record->client_wait[i], record->worker_pid, spans);
	for (size_t i = 0; doubt_from && i < spans->count; i++) {
		struct tailor_span *span = &spans->spans[i];

		if (span->start_ns < doubt_from || span->end_ns - span->start_ns < DOUBT_NS || !is_doubtful(span))
			continue;
		span->cause = TAILOR_CAUSE_UNEXPLAINED;
		span_detail(span, "in the middle of a long response: slow client or slow server");
	}
}
