/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tailor/timeline_names.h>

#include "base/units.h"
#include "report/summary.h"

struct what_if_request {
	uint64_t latency_ns;
	uint64_t own_ns;
	uint64_t behind_ns;
	int wanted;
};

struct what_if_stretch {
	uint64_t id;
	uint64_t from_ns;
	uint64_t to_ns;
};

struct what_if_wait {
	size_t request; /* index */
	uint64_t behind;
	uint64_t from_ns;
	uint64_t to_ns;
};

/* The array, with room for one more; NULL without memory, and then it stays as it was. */
static void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? *capacity * 2 : 64;

	if (count < *capacity)
		return array;
	array = reallocarray(array, wanted, size);
	if (array)
		*capacity = wanted;
	return array;
}

/* The correlator says behind which request one waited, where that is known. */
static uint64_t behind_of(const struct tailor_span *span)
{
	static const char words[] = "behind request ";
	const char *at = strstr(span->detail, words);

	if (span->cause != TAILOR_CAUSE_SERVER_QUEUE || !at)
		return 0;
	return strtoull(at + sizeof(words) - 1, NULL, 16);
}

static int add_stretch(struct tailor_what_if *what_if, uint64_t id, const struct tailor_span *span)
{
	struct what_if_stretch *stretches =
	        grow(what_if->stretches, what_if->stretch_count, &what_if->stretch_capacity, sizeof(*stretches));

	if (!stretches)
		return -ENOMEM;
	what_if->stretches = stretches;
	stretches[what_if->stretch_count++] = (struct what_if_stretch){id, span->start_ns, span->end_ns};
	return 0;
}

static int add_wait(struct tailor_what_if *what_if, uint64_t behind, const struct tailor_span *span)
{
	struct what_if_wait *waits = grow(what_if->waits, what_if->wait_count, &what_if->wait_capacity, sizeof(*waits));

	if (!waits)
		return -ENOMEM;
	what_if->waits = waits;
	waits[what_if->wait_count++] =
	        (struct what_if_wait){what_if->request_count, behind, span->start_ns, span->end_ns};
	return 0;
}

int tailor_what_if_add(struct tailor_what_if *what_if, const struct tailor_timeline *timeline, int wanted)
{
	struct what_if_request *requests =
	        grow(what_if->requests, what_if->request_count, &what_if->request_capacity, sizeof(*requests));
	struct what_if_request request = {
	        .latency_ns = timeline->request.end_ns - timeline->request.begin_ns,
	        .wanted = wanted && timeline->kept == TAILOR_KEPT_SLOW,
	};
	int error = 0;

	if (!requests)
		return -ENOMEM;
	what_if->requests = requests;
	for (size_t i = 0; i < timeline->span_count && !error; i++) {
		const struct tailor_span *span = &timeline->spans[i];
		uint64_t behind = behind_of(span);

		if (span->cause == what_if->cause) {
			request.own_ns += span->end_ns - span->start_ns;
			error = add_stretch(what_if, timeline->request.id, span);
		} else if (behind != 0 && request.wanted) {
			error = add_wait(what_if, behind, span);
		}
	}
	requests[what_if->request_count++] = request;
	return error;
}

static int by_id(const void *a, const void *b)
{
	const struct what_if_stretch *left = a, *right = b;

	return (left->id > right->id) - (left->id < right->id);
}

/* How much of [from_ns, to_ns) the request with that id was held up by the cause. */
static uint64_t held_up(const struct tailor_what_if *what_if, const struct what_if_wait *wait)
{
	size_t low = 0, high = what_if->stretch_count;
	uint64_t sum = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (what_if->stretches[middle].id < wait->behind)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < what_if->stretch_count && what_if->stretches[low].id == wait->behind; low++) {
		const struct what_if_stretch *stretch = &what_if->stretches[low];
		uint64_t from = stretch->from_ns > wait->from_ns ? stretch->from_ns : wait->from_ns;
		uint64_t to = stretch->to_ns < wait->to_ns ? stretch->to_ns : wait->to_ns;

		sum += to > from ? to - from : 0;
	}
	return sum;
}

static int slowest_first(const void *a, const void *b)
{
	const struct what_if_request *left = a, *right = b;

	if (left->wanted != right->wanted)
		return left->wanted ? -1 : 1;
	return (left->latency_ns < right->latency_ns) - (left->latency_ns > right->latency_ns);
}

static void quantiles(const uint64_t *sorted, size_t count, uint64_t ret_ns[4])
{
	ret_ns[0] = tailor_summary_quantile(sorted, count, 0.5);
	ret_ns[1] = tailor_summary_quantile(sorted, count, 0.9);
	ret_ns[2] = tailor_summary_quantile(sorted, count, 0.99);
	ret_ns[3] = tailor_summary_quantile(sorted, count, 1);
}

int tailor_what_if_estimate(struct tailor_what_if *what_if, uint64_t slowest, struct tailor_what_if_result *ret_result)
{
	struct tailor_what_if_result result = {0};
	uint64_t *values = calloc(2 * what_if->request_count + 1, sizeof(*values)), *estimates;
	size_t count = 0;

	if (!values)
		return -ENOMEM;
	if (what_if->stretch_count > 0)
		qsort(what_if->stretches, what_if->stretch_count, sizeof(*what_if->stretches), by_id);
	for (size_t i = 0; i < what_if->wait_count; i++)
		what_if->requests[what_if->waits[i].request].behind_ns += held_up(what_if, &what_if->waits[i]);
	/* Waits name their requests by where these are, so they have done their work before the order changes. */
	what_if->wait_count = 0;
	if (what_if->request_count > 0)
		qsort(what_if->requests, what_if->request_count, sizeof(*what_if->requests), slowest_first);
	while (count < what_if->request_count && what_if->requests[count].wanted && (!slowest || count < slowest))
		count++;
	estimates = values + count;
	for (size_t i = 0; i < count; i++) {
		const struct what_if_request *request = &what_if->requests[i];
		uint64_t saved = request->own_ns + request->behind_ns;

		values[i] = request->latency_ns;
		estimates[i] = saved < request->latency_ns ? request->latency_ns - saved : 0;
		result.affected += saved > 0;
		result.own_ns += request->own_ns;
		result.behind_ns += request->behind_ns;
	}
	if (count > 0) {
		qsort(values, count, sizeof(*values), tailor_summary_compare_u64);
		qsort(estimates, count, sizeof(*estimates), tailor_summary_compare_u64);
		result.fastest_ns = values[0];
	}
	while (result.faster < count && estimates[result.faster] < result.fastest_ns)
		result.faster++;
	result.requests = count;
	result.left_out = what_if->left_out;
	for (size_t i = count; i < what_if->request_count && what_if->requests[i].wanted; i++)
		result.left_out++;
	quantiles(values, count, result.measured_ns);
	quantiles(estimates, count, result.estimated_ns);
	free(values);
	*ret_result = result;
	return 0;
}

static const char *const quantile_names[] = {"p50", "p90", "p99", "max"};

static const char *duration(char buffer[32], uint64_t ns)
{
	return tailor_format_duration(buffer, 32, ns);
}

static void print_text(FILE *out, const struct tailor_what_if *what_if, const struct tailor_what_if_result *result)
{
	char first[32], second[32];

	fprintf(out, "estimate: slow requests, if \"%s\" had taken no time\n", tailor_cause_name(what_if->cause));
	fprintf(out, "estimate: %" PRIu64 " of %" PRIu64 " slow requests were held up by it, %s in all", result->affected,
	        result->requests, duration(first, result->own_ns));
	if (result->behind_ns > 0)
		fprintf(out, ",\nestimate: and %s behind another that was", duration(first, result->behind_ns));
	fputs("\nestimate:\nestimate:        measured   estimated\n", out);
	for (int i = 0; i < 4; i++)
		fprintf(out, "estimate:  %s  %9s  %10s\n", quantile_names[i], duration(first, result->measured_ns[i]),
		        duration(second, result->estimated_ns[i]));
	fprintf(out, "estimate:\nestimate: %" PRIu64 " of them would have been faster than the fastest slow one (%s)\n",
	        result->faster, duration(first, result->fastest_ns));
	if (result->left_out > 0)
		fprintf(out, "estimate: %" PRIu64 " timelines are cut out by options\n", result->left_out);
	if (what_if->omitted > 0)
		fprintf(out, "estimate: %" PRIu64 " more slow requests were only counted and are not in it\n",
		        what_if->omitted);
	fputs("estimate: Why it is one: it takes away the cause's own time, and waiting behind a request that is\n"
	      "estimate: known to have been held up by it. Other queueing, and what else would have filled the\n"
	      "estimate: time, is as it was. Quantiles are of the slow requests, not of all requests.\n",
	      out);
}

static int print_json(FILE *out, const struct tailor_what_if *what_if, const struct tailor_what_if_result *result)
{
	json_t *measured = json_object(), *estimated = json_object(), *root;
	char *text;

	for (int i = 0; i < 4; i++) {
		json_object_set_new(measured, quantile_names[i], json_integer((json_int_t)result->measured_ns[i]));
		json_object_set_new(estimated, quantile_names[i], json_integer((json_int_t)result->estimated_ns[i]));
	}
	root = json_pack("{s:b, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "estimate", 1, "why",
	                 "the cause's own time is taken away, and waiting behind a request known to have been held up by it; "
	                 "other queueing is as it was",
	                 "cause", tailor_cause_key(what_if->cause), "slow_requests", (json_int_t)result->requests,
	                 "affected", (json_int_t)result->affected, "own_ns", (json_int_t)result->own_ns, "behind_ns",
	                 (json_int_t)result->behind_ns, "fastest_slow_ns", (json_int_t)result->fastest_ns,
	                 "faster_than_that", (json_int_t)result->faster, "left_out", (json_int_t)result->left_out,
	                 "omitted", (json_int_t)what_if->omitted, "measured_ns", measured, "estimated_ns", estimated);
	text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
	json_decref(root);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}

int tailor_report_what_if(FILE *out, struct tailor_what_if *what_if, uint64_t slowest, int json)
{
	struct tailor_what_if_result result;

	if (tailor_what_if_estimate(what_if, slowest, &result) != 0)
		return -ENOMEM;
	if (json)
		return print_json(out, what_if, &result);
	print_text(out, what_if, &result);
	return 0;
}

void tailor_what_if_free(struct tailor_what_if *what_if)
{
	free(what_if->requests);
	free(what_if->stretches);
	free(what_if->waits);
	*what_if = (struct tailor_what_if){.cause = what_if->cause};
}
