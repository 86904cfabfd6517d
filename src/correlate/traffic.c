/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/traffic.h"

#include <errno.h>
#include <stdlib.h>

#include "correlate/calls.h"
#include "correlate/schedule.h"

/* A receive or write at a server, and its connection. */
struct point {
	struct tailor_window_point what;
	uint32_t event; /* in the window, or TRAFFIC_EARLIER */
};

static int by_connection(const void *a, const void *b)
{
	const struct point *left = a, *right = b;

	if (left->what.pid != right->what.pid)
		return left->what.pid < right->what.pid ? -1 : 1;
	if (left->what.ports != right->what.ports)
		return left->what.ports < right->what.ports ? -1 : 1;
	if (left->what.time_ns != right->what.time_ns)
		return left->what.time_ns < right->what.time_ns ? -1 : 1;
	/* What is earlier than the window has the largest number, and comes first. */
	return (left->event + 1 > right->event + 1) - (left->event + 1 < right->event + 1);
}

/*
 * On one connection an exchange ends with the last write before the next one's receive. One without a write before another request is
 * received there is not known to have ended: it was let go, perhaps by the connection's end, or its write was lost.
 */
static void take_apart(struct traffic *traffic, const struct point *points, size_t count)
{
	struct exchange *exchange = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct tailor_window_point *what = &points[i].what;
		int same = i > 0 && points[i - 1].what.pid == what->pid && points[i - 1].what.ports == what->ports;

		if (!same || (what->receives && (exchange->to_ns != UINT64_MAX || exchange->request != what->request))) {
			exchange = &traffic->list[traffic->count++];
			*exchange = (struct exchange){.pid = what->pid,
			                              .from_ns = what->receives ? what->time_ns : 0,
			                              .to_ns = UINT64_MAX,
			                              .request = what->request};
		}
		if (!what->receives) {
			exchange->to_ns = what->time_ns;
			exchange->write = points[i].event;
		}
	}
}

/* A loop that waits for a lock goes on after that with what it was at. */
static int is_done(const struct thread_events *thread, const struct tailor_event *out)
{
	return !switched_out_ready(out) && (!thread->receives || call_family(TAILOR_SWITCH_CALL(out->extra)) != CALL_LOCK);
}

/* When the thread that wrote has had time enough on a CPU, or has gone to sleep. */
static uint64_t find_settled(const struct thread_index *index, const struct exchange *exchange)
{
	const struct thread_events *thread = NULL;
	uint64_t left = TRAFFIC_AFTERWARDS_NS, since_ns = exchange->to_ns;
	uint32_t position = 0;
	int on = 1;

	if (exchange->write != TRAFFIC_EARLIER) {
		thread = thread_index_find(index, index->window->events[exchange->write].event.tid);
		position = thread ? thread_entries_before(thread, exchange->write) : 0;
	}
	for (; thread && position < thread->count; position++) {
		const struct tailor_event *event = thread_entry_event(index, thread, position);

		if (thread->entries[position].woke || event->time_ns < since_ns)
			continue;
		if (on && event->time_ns - since_ns >= left)
			break;
		if (event->kind == TAILOR_EVENT_SWITCH_OUT) {
			if (is_done(thread, event))
				return event->time_ns;
			left -= on ? event->time_ns - since_ns : 0;
			on = 0;
		} else if (event->kind == TAILOR_EVENT_SWITCH_IN) {
			since_ns = event->time_ns;
			on = 1;
		}
	}
	return since_ns + left;
}

/* Whether another one's, and if so of which request, is not asked of the window's own. */
static void leave_out_own(struct traffic *traffic)
{
	uint64_t own = traffic->index->window->record.request.id;
	size_t kept = 0;

	for (size_t i = 0; i < traffic->count; i++) {
		if (traffic->list[i].request != own)
			traffic->list[kept++] = traffic->list[i];
	}
	traffic->count = kept;
}

/* Returns how many. */
static size_t gather(const struct tailor_window *window, struct point *points)
{
	size_t count = 0;

	for (size_t i = 0; i < window->earlier_count; i++)
		points[count++] = (struct point){window->earlier[i], TRAFFIC_EARLIER};
	for (size_t i = 0; i < window->event_count; i++) {
		const struct tailor_event *event = &window->events[i].event;

		if (tailor_is_point(event))
			points[count++] = (struct point){tailor_point_of(event), (uint32_t)i};
	}
	return count;
}

int traffic_build(struct traffic *traffic, const struct thread_index *index)
{
	const struct tailor_window *window = index->window;
	struct point *points;
	size_t count = 0;

	*traffic = (struct traffic){.index = index};
	for (size_t i = 0; i < window->event_count; i++)
		count += (size_t)tailor_is_point(&window->events[i].event);
	count += window->earlier_count;
	points = malloc((count + 1) * sizeof(*points));
	traffic->list = malloc((count + 1) * sizeof(*traffic->list));
	if (points && traffic->list) {
		count = gather(window, points);
		if (count > 1)
			qsort(points, count, sizeof(*points), by_connection);
		take_apart(traffic, points, count);
		leave_out_own(traffic);
	}
	free(points);
	return points && traffic->list ? 0 : -ENOMEM;
}

void traffic_free(struct traffic *traffic)
{
	free(traffic->list);
	*traffic = (struct traffic){0};
}

int traffic_throughout(const struct traffic *traffic, uint32_t pid, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < traffic->count; i++) {
		const struct exchange *exchange = &traffic->list[i];

		if (exchange->pid == pid && exchange->from_ns <= from_ns && exchange->to_ns >= to_ns)
			return 1;
	}
	return 0;
}

static int by_server_and_begin(const void *a, const void *b)
{
	const struct exchange *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->from_ns != right->from_ns)
		return left->from_ns < right->from_ns ? -1 : 1;
	return (left->settled_ns > right->settled_ns) - (left->settled_ns < right->settled_ns);
}

/* Only when somebody asks: for most windows nobody does. */
static void put_in_order(struct traffic *traffic)
{
	struct exchange *list = traffic->list;

	traffic->ordered = 1;
	for (size_t i = 0; i < traffic->count; i++)
		list[i].settled_ns = list[i].to_ns == UINT64_MAX ? UINT64_MAX : find_settled(traffic->index, &list[i]);
	if (traffic->count > 1)
		qsort(list, traffic->count, sizeof(*list), by_server_and_begin);
	for (size_t i = 0; i < traffic->count; i++) {
		size_t outer = i > 0 && list[i - 1].pid == list[i].pid ? i : 0;

		while (outer > 0 && list[outer - 1].settled_ns <= list[i].settled_ns)
			outer = list[outer - 1].outer;
		list[i].outer = (uint32_t)outer;
	}
}

/* The last one at the server that came before time_ns, as its index + 1; 0: there is none. */
static size_t last_before(const struct traffic *traffic, uint32_t pid, uint64_t time_ns)
{
	size_t low = 0, high = traffic->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct exchange *exchange = &traffic->list[middle];

		if (exchange->pid < pid || (exchange->pid == pid && exchange->from_ns < time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && traffic->list[low - 1].pid == pid ? low : 0;
}

int traffic_alone(struct traffic *traffic, uint32_t pid, uint64_t from_ns, uint64_t to_ns, uint64_t *ret_from_ns)
{
	uint64_t alone_since_ns = from_ns;
	size_t at;

	if (!traffic->ordered)
		put_in_order(traffic);
	/* Those that are passed over are settled even earlier than the one that leads past them. */
	for (at = last_before(traffic, pid, to_ns); at > 0; at = traffic->list[at - 1].outer) {
		const struct exchange *exchange = &traffic->list[at - 1];

		if (exchange->settled_ns >= to_ns && exchange->settled_ns > from_ns) {
			*ret_from_ns = exchange->from_ns > from_ns ? exchange->from_ns : from_ns;
			return 0;
		}
		if (exchange->settled_ns > alone_since_ns)
			alone_since_ns = exchange->settled_ns;
	}
	*ret_from_ns = alone_since_ns;
	return 1;
}
