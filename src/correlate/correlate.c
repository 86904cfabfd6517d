/* SPDX-License-Identifier: Apache-2.0 */
#include "correlate/correlate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/attempt.h"
#include "correlate/client.h"
#include "correlate/losses.h"
#include "correlate/worker.h"

/* Without the worker's scheduling: what takes longer than this may well have been the client's doing. */
#define PROXY_ALONE_NS 1000000

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	if (value < low)
		return low;
	return value > high ? high : value;
}

/* A stretch in which the proxy works or waits for the client. */
static void cut_with_client(struct correlation *correlation, uint64_t from_ns, uint64_t to_ns,
                            const struct worker_story *story)
{
	if (worker_recorded(&correlation->index) || to_ns <= from_ns || to_ns - from_ns <= PROXY_ALONE_NS)
		worker_cover(&correlation->index, &correlation->stalls, &correlation->spans, from_ns, to_ns, story);
	else
		span_detail(span_list_add(&correlation->spans, from_ns, to_ns, TAILOR_CAUSE_UNEXPLAINED),
		            "the proxy or a slow client; no kernel events to tell");
}

/* From the first byte to the choice of a server. */
static void cut_head(struct correlation *correlation, uint64_t to_ns)
{
	static const struct worker_story reading = {.working = TAILOR_CAUSE_PROXY,
	                                            .waiting = TAILOR_CAUSE_SLOW_CLIENT,
	                                            .waiting_detail = "the rest of the request's head had not come"};
	static const struct worker_story choosing = {.working = TAILOR_CAUSE_PROXY,
	                                             .waiting = TAILOR_CAUSE_UNEXPLAINED,
	                                             .waiting_detail = "the proxy was idle before it chose a server"};
	const struct tailor_record *record = &correlation->window->record;
	uint64_t parsed = record->parsed_ns ? clamp(record->parsed_ns, record->request.begin_ns, to_ns) : to_ns;
	uint64_t queued = record->queued_ns ? clamp(record->queued_ns, parsed, to_ns) : to_ns;

	cut_with_client(correlation, record->request.begin_ns, parsed, &reading);
	cut_with_client(correlation, parsed, queued, &choosing);
	span_detail(span_list_add(&correlation->spans, queued, to_ns, TAILOR_CAUSE_LIMIT_WAIT),
	            "the server had as many requests as limits.in_flight allows");
}

/* From the last byte of the response at the proxy to the last byte at the client's socket. */
static void cut_reply(struct correlation *correlation, uint64_t from_ns)
{
	static const struct worker_story handing_on = {.working = TAILOR_CAUSE_PROXY,
	                                               .waiting = TAILOR_CAUSE_UNEXPLAINED,
	                                               .waiting_detail = "the proxy was idle before it replied"};
	static const struct worker_story sending = {.working = TAILOR_CAUSE_PROXY,
	                                            .waiting = TAILOR_CAUSE_SLOW_CLIENT,
	                                            .waiting_detail = "the client's socket took no more"};
	const struct tailor_record *record = &correlation->window->record;
	uint64_t end = record->request.end_ns;
	uint64_t reply = record->reply_begin_ns ? clamp(record->reply_begin_ns, from_ns, end) : end;

	cut_with_client(correlation, from_ns, reply, &handing_on);
	cut_with_client(correlation, reply, end, &sending);
}

/* From the first bytes' arrival until the worker, which was held up, read them. */
static void cut_lateness(struct correlation *correlation)
{
	static const struct worker_story late = {.working = TAILOR_CAUSE_PROXY,
	                                         .working_detail = "at work for other requests",
	                                         .waiting = TAILOR_CAUSE_UNEXPLAINED,
	                                         .waiting_detail = "the proxy slept, and bytes were there"};
	uint64_t begin = correlation->window->record.request.begin_ns;

	if (correlation->begin_ns < begin)
		worker_cover(&correlation->index, &correlation->stalls, &correlation->spans, correlation->begin_ns, begin, &late);
}

static void cut_request(struct correlation *correlation)
{
	const struct tailor_record *record = &correlation->window->record;
	uint64_t begin = record->request.begin_ns, end = record->request.end_ns;
	struct tailor_attempt attempts[TAILOR_ATTEMPTS_MAX];
	size_t count = record->attempts < TAILOR_ATTEMPTS_MAX ? record->attempts : TAILOR_ATTEMPTS_MAX;
	size_t last;
	uint64_t answered, chosen;

	cut_lateness(correlation);
	memcpy(attempts, record->attempt, sizeof(attempts));
	/* Points of the record that contradict each other must not make negative stretches. */
	for (size_t i = 0; i < count; i++) {
		attempts[i].begin_ns = clamp(attempts[i].begin_ns, begin, end);
		if (i > 0 && attempts[i].begin_ns < attempts[i - 1].begin_ns)
			attempts[i].begin_ns = attempts[i - 1].begin_ns;
	}
	/* Who waits for a place in vain does so until the reply. */
	chosen = count > 0 ? attempts[0].begin_ns : clamp(record->queued_ns ? record->reply_begin_ns : record->parsed_ns, begin, end);
	cut_head(correlation, chosen);
	if (count == 0) {
		cut_reply(correlation, chosen);
		return;
	}
	last = record->answered >= 0 && (size_t)record->answered < count ? (size_t)record->answered : count - 1;
	for (size_t i = 0; i < last; i++)
		attempt_left(correlation, &attempts[i], &attempts[i + 1]);
	answered = attempts[last].response_end_ns ? attempts[last].response_end_ns : attempts[last].end_ns;
	answered = answered ? clamp(answered, attempts[last].begin_ns, end) : end;
	attempt_answered(correlation, &attempts[last], answered);
	cut_reply(correlation, answered);
}

static void find_dominant(struct tailor_timeline *timeline)
{
	uint64_t sums[TAILOR_CAUSES] = {0};

	for (size_t i = 0; i < timeline->span_count; i++)
		sums[timeline->spans[i].cause] += timeline->spans[i].end_ns - timeline->spans[i].start_ns;
	/* Unexplained is the first value: any other cause with as much takes its place. */
	timeline->dominant = TAILOR_CAUSE_UNEXPLAINED;
	for (int cause = 1; cause < TAILOR_CAUSES; cause++) {
		uint64_t best = sums[timeline->dominant];

		if (sums[cause] > best ||
		    (timeline->dominant == TAILOR_CAUSE_UNEXPLAINED && sums[cause] > 0 && sums[cause] == best))
			timeline->dominant = (enum tailor_cause)cause;
	}
	timeline->dominant_ns = sums[timeline->dominant];
}

static const char *answering_server(const struct tailor_window *window)
{
	const struct tailor_record *record = &window->record;
	size_t count = record->attempts < TAILOR_ATTEMPTS_MAX ? record->attempts : TAILOR_ATTEMPTS_MAX;
	size_t last = record->answered >= 0 && (size_t)record->answered < count ? (size_t)record->answered : count - 1;

	if (count == 0 || record->attempt[last].server >= window->server_count)
		return "";
	return window->servers[record->attempt[last].server].name;
}

static int fill_timeline(struct correlation *correlation, struct tailor_timeline *timeline)
{
	const struct tailor_window *window = correlation->window;
	const struct tailor_request *request = &window->record.request;
	int error;

	error = span_list_finish(&correlation->spans, correlation->begin_ns, request->end_ns);
	if (error)
		return error;
	*timeline = (struct tailor_timeline){
	        .request = *request,
	        .join = correlation->join,
	        .server_ns = correlation->server_ns,
	        .missing = window->missing,
	        .complete = losses_complete(window, answering_server(window), correlation->begin_ns, request->end_ns),
	};
	timeline->request.begin_ns = correlation->begin_ns;
	if (request->wall_ns > request->begin_ns - correlation->begin_ns)
		timeline->request.wall_ns -= request->begin_ns - correlation->begin_ns;
	if (window->loss_count > 0) {
		timeline->losses = calloc(window->loss_count, sizeof(*timeline->losses));
		if (!timeline->losses)
			return -ENOMEM;
		memcpy(timeline->losses, window->losses, window->loss_count * sizeof(*timeline->losses));
		timeline->loss_count = window->loss_count;
	}
	for (size_t i = 0; i < window->loss_count; i++) {
		if (window->losses[i].from_ns < request->end_ns && window->losses[i].to_ns > correlation->begin_ns)
			timeline->missing |= TAILOR_MISSING_EVENTS;
	}
	timeline->spans = correlation->spans.spans;
	timeline->span_count = correlation->spans.count;
	correlation->spans = (struct span_list){0};
	find_dominant(timeline);
	return 0;
}

int tailor_correlate(const struct tailor_window *window, struct tailor_timeline *ret_timeline)
{
	struct correlation correlation = {.window = window, .join = TAILOR_JOIN_NONE};
	const struct tailor_request *request = &window->record.request;
	int error;

	if (request->end_ns == 0 || request->end_ns < request->begin_ns)
		return -EINVAL;
	correlation.begin_ns = client_arrival(window);
	error = thread_index_build(&correlation.index, window);
	if (!error)
		error = pauses_build(&correlation.pauses, window);
	if (!error)
		error = traffic_build(&correlation.traffic, &correlation.index);
	if (!error)
		error = overlays_build(&correlation.overlays, window);
	if (!error)
		error = stalls_build(&correlation.stalls, window);
	if (!error) {
		cut_request(&correlation);
		losses_doubt(window, &correlation.spans);
		client_cover(window, &correlation.spans);
		error = fill_timeline(&correlation, ret_timeline);
	}
	thread_index_free(&correlation.index);
	pauses_free(&correlation.pauses);
	traffic_free(&correlation.traffic);
	overlays_free(&correlation.overlays);
	stalls_free(&correlation.stalls);
	free(correlation.spans.spans);
	return error;
}
