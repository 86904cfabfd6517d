/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/arrival.h"

#include <string.h>

#include "correlate/cover.h"

/* From a segment's transmit to the wake-up that it causes; generous, and far below what deserves an explanation. */
#define DELIVERY_NS 1000000
/* A thread that bytes have woken reads them within this. Later it did something else first, and nobody knows for whom. */
#define READ_NS 15000

void arrival_add_work(struct path *path, const struct stretch *stretch, uint64_t low_ns)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SERVER_QUEUE);
	uint64_t read = path->now_ns - low_ns > READ_NS ? path->now_ns - READ_NS : low_ns;

	cover_on_cpu(path, path->cursor.thread, read, path->now_ns, stretch->cpu);
	path->now_ns = read;
	span_detail(&span, "in the socket; the thread was at work already");
	path_add_off_cpu(path, low_ns, &span);
}

/*
 * Did the wake-up that ends here bring the request? On one host a segment is delivered by the context that sent it, or by
 * ksoftirqd; a wake-up long after it left was about something else.
 */
static int is_arrival(const struct path *path, const struct tailor_event *wakeup)
{
	char comm[COMM_BYTES];

	return !path->wire->request_sent_ns || path->now_ns - path->floor_ns <= DELIVERY_NS ||
	       strncmp(event_comm(wakeup, comm), "ksoftirqd/", 10) == 0;
}

uint64_t arrival_pass_wait(struct path *path, const struct stretch *stretch)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SERVER);

	if (is_arrival(path, stretch->wakeup)) {
		size_t first = path->spans->count;

		span_list_add(path->spans, path->floor_ns, path->now_ns, TAILOR_CAUSE_REQUEST_TRANSIT);
		stalls_cut_wait(path->stalls, path->spans, first, stretch->wakeup);
		return path->floor_ns;
	}
	span_detail(&span, "in the socket; no thread waited for it there");
	path_add_off_cpu(path, path->floor_ns, &span);
	return path->floor_ns;
}

void arrival_pass_busy(struct path *path)
{
	struct tailor_span span = path_template(path, TAILOR_CAUSE_SERVER_QUEUE);

	span_detail(&span, "behind request %016llx", (unsigned long long)path->behind);
	path_add_off_cpu(path, path->busy_from_ns, &span);
	path->behind = 0;
	path->now_ns = path->busy_from_ns;
	path->cursor = path->before_busy;
}
