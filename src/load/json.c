/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "load/lines.h"

/* Of the report. */
#define MEMBERS 31

static double as_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static json_t *count_of(uint64_t count)
{
	return json_integer((json_int_t)count);
}

/* JSON is UTF-8, paths and names of servers need not be: then what is not ASCII shows as '?'. */
static json_t *text_of(const char *text)
{
	json_t *string = json_string(text);
	char copy[1024];
	size_t length = 0;

	if (string)
		return string;
	for (; *text && length < sizeof(copy) - 1; text++)
		copy[length++] = (unsigned char)*text < 0x80 ? *text : '?';
	copy[length] = '\0';
	return json_string(copy);
}

static json_t *text_or_null(const char *text)
{
	return text && text[0] ? text_of(text) : json_null();
}

struct figure {
	const char *name;
	double percent;
};

/* Null where there are no times to tell. */
static void set_times(json_t *object, const struct tailor_histogram *histogram, const struct figure *figures,
                      size_t count)
{
	int none = tailor_histogram_count(histogram) == 0;

	for (size_t i = 0; i < count; i++)
		json_object_set_new(
		        object, figures[i].name,
		        none ? json_null()
		             : json_real(as_ms(tailor_histogram_percentile(histogram, figures[i].percent))));
	json_object_set_new(object, "max_ms", none ? json_null() : json_real(as_ms(tailor_histogram_max(histogram))));
}

static json_t *times(const struct tailor_histogram *histogram)
{
	static const struct figure figures[] = {{"p50_ms", 50}, {"p90_ms", 90},    {"p95_ms", 95},
	                                        {"p99_ms", 99}, {"p999_ms", 99.9}, {"p9999_ms", 99.99}};
	int none = tailor_histogram_count(histogram) == 0;
	json_t *object = json_object();

	json_object_set_new(object, "min_ms", none ? json_null() : json_real(as_ms(tailor_histogram_min(histogram))));
	json_object_set_new(object, "mean_ms", none ? json_null() : json_real(tailor_histogram_mean(histogram) / 1e6));
	set_times(object, histogram, figures, sizeof(figures) / sizeof(figures[0]));
	return object;
}

static json_t *late(const struct tailor_histogram *histogram)
{
	static const struct figure figures[] = {{"p99_ms", 99}};
	json_t *object = json_object();

	set_times(object, histogram, figures, 1);
	return object;
}

static json_t *sent(const struct tailor_histogram *histogram)
{
	static const struct figure figures[] = {{"p50_ms", 50}, {"p99_ms", 99}};
	json_t *object = json_object();

	set_times(object, histogram, figures, 2);
	return object;
}

static json_t *powers(const struct tailor_histogram *histogram)
{
	struct tailor_load_power rows[TAILOR_LOAD_POWERS];
	size_t count = tailor_load_powers(histogram, rows);
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *row = json_object();

		json_object_set_new(row, "from_us", count_of(rows[i].from_us));
		json_object_set_new(row, "to_us", count_of(rows[i].to_us));
		json_object_set_new(row, "count", count_of(rows[i].count));
		json_array_append_new(array, row);
	}
	return array;
}

static json_t *failures(const struct tailor_load_result *total)
{
	static const char *const names[] = {
	        [TAILOR_LOAD_NO_CONNECTION] = "no-connection",
	        [TAILOR_LOAD_TIMEOUT] = "timeout",
	        [TAILOR_LOAD_CUT] = "cut",
	        [TAILOR_LOAD_INVALID] = "invalid",
	        [TAILOR_LOAD_INTERRUPTED] = "interrupted",
	};
	json_t *object = json_object();

	_Static_assert(sizeof(names) / sizeof(names[0]) == TAILOR_LOAD_FAILURES, "each failure has its key");
	for (int i = 0; i < TAILOR_LOAD_FAILURES; i++)
		json_object_set_new(object, names[i], count_of(total->failed[i]));
	return object;
}

static json_t *slowest(const struct tailor_load_result *total, const struct tailor_load_causes *causes)
{
	json_t *array = json_array();

	for (size_t i = 0; i < total->slow_count; i++) {
		const struct tailor_load_slow *slow = &total->slowest[i];
		json_t *entry = json_object();

		json_object_set_new(entry, "ms", json_real(as_ms(slow->response_ns)));
		json_object_set_new(entry, "request_id", text_or_null(slow->request_id));
		json_object_set_new(entry, "status", json_integer(slow->status));
		json_object_set_new(entry, "path", text_of(slow->path));
		json_object_set_new(entry, "cause", text_or_null(causes ? causes->text[i] : NULL));
		json_array_append_new(array, entry);
	}
	return array;
}

static json_t *host_stall(const struct tailor_stalls *stalls)
{
	if (!stalls->known)
		return json_null();
	return json_pack("{s:f, s:f, s:I}", "longest_ms", as_ms(stalls->longest_ns), "total_ms",
	                 as_ms(stalls->total_ns), "episodes", (json_int_t)stalls->episodes);
}

static void set_asked(json_t *root, const char *url, const struct tailor_load_options *options)
{
	int has_rate = options->arrival == TAILOR_LOAD_UNIFORM || options->arrival == TAILOR_LOAD_POISSON;

	json_object_set_new(root, "url", text_of(url));
	json_object_set_new(root, "arrival", json_string(tailor_load_arrival_name(options->arrival)));
	json_object_set_new(root, "rate", has_rate ? json_real(options->rate) : json_null());
	json_object_set_new(root, "catch_up", json_string(tailor_load_catch_up_name(options->catch_up)));
	json_object_set_new(root, "connections", json_integer(options->connections));
	json_object_set_new(root, "threads", json_integer(options->threads));
	json_object_set_new(root, "warm_s", json_real((double)options->warm_ns / 1e9));
	json_object_set_new(root, "slack_us", json_real((double)options->slack_ns / 1e3));
	json_object_set_new(root, "in_time_ms", json_real(as_ms(options->in_time_ns)));
}

static void set_counts(json_t *root, const struct tailor_load_result *total)
{
	uint64_t failed = tailor_load_result_failed(total);

	json_object_set_new(root, "duration_s", json_real((double)total->elapsed_ns / 1e9));
	json_object_set_new(root, "requests", count_of(total->good + total->bad + failed));
	json_object_set_new(root, "wanted", count_of(total->wanted));
	json_object_set_new(root, "good", count_of(total->good));
	json_object_set_new(root, "in_time", count_of(total->in_time));
	json_object_set_new(root, "bad", count_of(total->bad));
	json_object_set_new(root, "different", count_of(total->different));
	json_object_set_new(root, "failed", count_of(failed));
	json_object_set_new(root, "failures", failures(total));
	json_object_set_new(root, "dropped", count_of(total->dropped));
	json_object_set_new(root, "opened", count_of(total->opened));
	json_object_set_new(root, "body_bytes", count_of(total->body_bytes));
}

static void set_times_of(json_t *root, const struct tailor_load_result *total)
{
	json_object_set_new(root, "response", times(total->response));
	json_object_set_new(root, "service", times(total->service));
	json_object_set_new(root, "histogram", powers(total->response));
	json_object_set_new(root, "late", late(total->late));
	json_object_set_new(root, "sent", sent(total->sent));
	json_object_set_new(root, "cpu_share", json_real(total->cpu_share));
	json_object_set_new(root, "cpu_s", json_real((double)total->cpu_ns / 1e9));
	json_object_set_new(root, "host_stall", host_stall(&total->stalls));
}

int tailor_load_print_json(FILE *out, const char *url, const struct tailor_load_options *options,
                           const struct tailor_load_result *total, const struct tailor_load_causes *causes)
{
	char reason[TAILOR_LOAD_ERROR_BYTES];
	json_t *root = json_object();
	int ret;

	if (!root)
		return -ENOMEM;
	set_asked(root, url, options);
	set_counts(root, total);
	json_object_set_new(root, "schedule_kept", json_boolean(tailor_load_schedule_kept(options, total, reason)));
	set_times_of(root, total);
	json_object_set_new(root, "slowest", slowest(total, causes));
	/* A member that there was no memory for is not in it. */
	ret = json_object_size(root) == MEMBERS ? 0 : -ENOMEM;
	if (ret == 0 && json_dumpf(root, out, JSON_REAL_PRECISION(10)) != 0)
		ret = -EIO;
	json_decref(root);
	if (ret == 0 && (fputc('\n', out) == EOF || fflush(out) != 0))
		ret = -EIO;
	return ret;
}
