/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <tailor/event_names.h>
#include <tailor/timeline_names.h>

#include "report/report.h"

/* JSON integers are signed here; a time beyond that is damage and is shown as the largest. */
static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)(value < INT64_MAX ? value : INT64_MAX));
}

static json_t *text(const char *value)
{
	char buffer[3 * TAILOR_TARGET_BYTES];

	return json_string(tailor_report_utf8(buffer, sizeof(buffer), value));
}

static json_t *request_id(uint64_t id)
{
	char buffer[17];

	snprintf(buffer, sizeof(buffer), "%016" PRIx64, id);
	return json_string(buffer);
}

static json_t *spans(const struct tailor_timeline *timeline)
{
	json_t *array = json_array();

	for (size_t i = 0; i < timeline->span_count; i++) {
		const struct tailor_span *span = &timeline->spans[i];

		if (json_array_append_new(array, json_pack("{s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:o}", "offset_ns",
		                                           number(span->start_ns - timeline->request.begin_ns),
		                                           "duration_ns", number(span->end_ns - span->start_ns),
		                                           "cause", tailor_cause_key(span->cause), "cause_name",
		                                           tailor_cause_name(span->cause), "pid", (json_int_t)span->pid,
		                                           "tid", (json_int_t)span->tid, "thread", text(span->thread),
		                                           "detail", text(span->detail))) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

/* Sums by cause, as keys, those that took any time. */
static json_t *causes(const struct tailor_timeline *timeline)
{
	uint64_t sums[TAILOR_CAUSES] = {0};
	json_t *object = json_object();

	for (size_t i = 0; i < timeline->span_count; i++)
		sums[timeline->spans[i].cause] += timeline->spans[i].end_ns - timeline->spans[i].start_ns;
	for (int cause = 0; cause < TAILOR_CAUSES; cause++) {
		if (sums[cause])
			json_object_set_new(object, tailor_cause_key((enum tailor_cause)cause), number(sums[cause]));
	}
	return object;
}

static json_t *missing(const struct tailor_timeline *timeline)
{
	json_t *array = json_array();

	for (uint32_t bit = 1; bit && bit < 1 << TAILOR_MISSING_BITS; bit <<= 1) {
		if (timeline->missing & bit)
			json_array_append_new(array, json_string(tailor_missing_name((enum tailor_missing)bit)));
	}
	return array;
}

static json_t *losses(const struct tailor_timeline *timeline)
{
	json_t *array = json_array();

	for (size_t i = 0; i < timeline->loss_count; i++) {
		const struct tailor_loss *loss = &timeline->losses[i];

		json_array_append_new(array, json_pack("{s:o, s:o, s:o, s:o}", "channel", text(loss->channel),
		                                       "from_ns", loss->from_ns ? number(loss->from_ns) : json_null(), "to_ns",
		                                       loss->to_ns == UINT64_MAX ? json_null() : number(loss->to_ns),
		                                       "events", number(loss->events)));
	}
	return array;
}

static json_t *timeline_object(const struct tailor_timeline *timeline)
{
	const struct tailor_request *request = &timeline->request;
	json_t *object = json_object();
	int error = 0;

	error |= json_object_set_new(object, "request", request_id(request->id));
	error |= json_object_set_new(object, "wall_ns", number(request->wall_ns));
	error |= json_object_set_new(object, "begin_ns", number(request->begin_ns));
	error |= json_object_set_new(object, "target", text(request->target));
	error |= json_object_set_new(object, "status", json_integer(request->status));
	error |= json_object_set_new(object, "end",
	                             json_string(tailor_request_end_name((enum tailor_request_end)request->end)));
	error |= json_object_set_new(object, "server", text(request->server));
	error |= json_object_set_new(object, "attempts", json_integer(request->attempts));
	error |= json_object_set_new(
	        object, "failover",
	        json_string(tailor_failover_reason_name((enum tailor_failover_reason)request->failover)));
	error |= json_object_set_new(object, "response_bytes", number(request->response_bytes));
	error |= json_object_set_new(object, "kept",
	                             json_string(timeline->kept == TAILOR_KEPT_BASELINE ? "baseline" : "slow"));
	error |= json_object_set_new(object, "client_ns", number(request->end_ns - request->begin_ns));
	error |= json_object_set_new(object, "server_ns",
	                             timeline->server_ns ? number(timeline->server_ns) : json_null());
	error |= json_object_set_new(object, "dominant", json_string(tailor_cause_key(timeline->dominant)));
	error |= json_object_set_new(object, "dominant_name", json_string(tailor_cause_name(timeline->dominant)));
	error |= json_object_set_new(object, "dominant_ns", number(timeline->dominant_ns));
	error |= json_object_set_new(object, "join", json_string(tailor_join_name(timeline->join)));
	error |= json_object_set_new(object, "missing", missing(timeline));
	error |= json_object_set_new(object, "losses", losses(timeline));
	error |= json_object_set_new(object, "complete", json_integer(timeline->complete));
	error |= json_object_set_new(object, "omitted", number(timeline->omitted));
	error |= json_object_set_new(object, "causes", causes(timeline));
	error |= json_object_set_new(object, "spans", spans(timeline));
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

void tailor_report_json_begin(FILE *out)
{
	fputs("{\"timelines\": [", out);
}

int tailor_report_json(FILE *out, const struct tailor_timeline *timeline, size_t count)
{
	json_t *object = timeline_object(timeline);
	char *dump = object ? json_dumps(object, JSON_INDENT(1)) : NULL;

	json_decref(object);
	if (!dump)
		return -ENOMEM;
	fprintf(out, "%s\n%s", count ? "," : "", dump);
	free(dump);
	return 0;
}

void tailor_report_json_end(FILE *out)
{
	fputs("\n]}\n", out);
}
