/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>

#include "load/print.h"

static double as_ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* Null where there are no times to tell. */
static json_t *times(const struct tailor_histogram *histogram)
{
	static const struct {
		const char *name;
		double percent;
	} percentiles[] = {{"p50_ms", 50}, {"p90_ms", 90},    {"p95_ms", 95},
	                   {"p99_ms", 99}, {"p999_ms", 99.9}, {"p9999_ms", 99.99}};
	json_t *object = json_object();

	if (tailor_histogram_count(histogram) == 0) {
		json_object_set_new(object, "min_ms", json_null());
		json_object_set_new(object, "mean_ms", json_null());
		for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
			json_object_set_new(object, percentiles[i].name, json_null());
		json_object_set_new(object, "max_ms", json_null());
		return object;
	}
	json_object_set_new(object, "min_ms", json_real(as_ms(tailor_histogram_min(histogram))));
	json_object_set_new(object, "mean_ms", json_real(tailor_histogram_mean(histogram) / 1e6));
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		json_object_set_new(object, percentiles[i].name,
		                    json_real(as_ms(tailor_histogram_percentile(histogram, percentiles[i].percent))));
	json_object_set_new(object, "max_ms", json_real(as_ms(tailor_histogram_max(histogram))));
	return object;
}

static json_t *slowest(const struct tailor_load_result *total)
{
	json_t *array = json_array();

	for (size_t i = 0; i < total->slow_count; i++) {
		const struct tailor_load_slow *slow = &total->slowest[i];
		json_t *id = slow->request_id[0] ? json_string(slow->request_id) : json_null();

		json_array_append_new(array,
		                      json_pack("{s:f, s:o, s:i, s:s}", "ms", as_ms(slow->response_ns), "request_id",
		                                id, "status", (int)slow->status, "path", slow->path));
	}
	return array;
}

static json_t *host_stall(const struct tailor_stalls *stalls)
{
	if (!stalls->known)
		return json_null();
	return json_pack("{s:f, s:f, s:I}", "longest_ms", as_ms(stalls->longest_ns), "total_ms", as_ms(stalls->total_ns),
	                 "episodes", (json_int_t)stalls->episodes);
}

int tailor_load_print_json(FILE *out, const char *url, const struct tailor_load_options *options,
                           const struct tailor_load_result *total)
{
	uint64_t failed = tailor_load_result_failed(total);
	json_t *root = json_pack(
	        "{s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:{s:f, s:f}, s:f, s:o, s:o}", "url", url, "rate",
	        options->rate, "duration_s", (double)total->elapsed_ns / 1e9, "requests",
	        (json_int_t)(total->good + total->bad + failed), "good", (json_int_t)total->good, "bad",
	        (json_int_t)total->bad, "failed", (json_int_t)failed, "wanted", (json_int_t)total->wanted, "response",
	        times(total->response), "service", times(total->service), "late", "p99_ms",
	        as_ms(tailor_histogram_percentile(total->late, 99)), "max_ms", as_ms(tailor_histogram_max(total->late)),
	        "cpu_share", total->cpu_share, "host_stall", host_stall(&total->stalls),
	        "slowest", slowest(total));
	int ret;

	if (!root)
		return -ENOMEM;
	ret = json_dumpf(root, out, JSON_REAL_PRECISION(10));
	json_decref(root);
	if (ret != 0 || fputc('\n', out) == EOF || fflush(out) != 0)
		return -EIO;
	return 0;
}
