/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An access log to replay. Proves: any bytes give a plan or one line that says what is wrong, the same each time; what
 * is planned is in the order of time from 0 on, refers to requests of the plan, and each of these is one valid request
 * and nothing behind it.
 */
#include "fuzz.h"
#include "load/load.h"

static void check_request(const struct tailor_load_request *request)
{
	static const struct http1_limits limits = {.head_bytes = 65536, .fields = HTTP1_FIELDS_MAX};
	struct http1_search search = {0};
	static struct http1_head head;

	require(http1_parse_request(request->bytes, request->length, &limits, &search, &head) == 1);
	require(head.framing != HTTP1_CHUNKED && head.head_bytes + head.content_length == request->length);
	require(head.method_known == request->method);
	require(head.target.length == strlen(request->path) &&
	        memcmp(head.target.data, request->path, head.target.length) == 0);
}

static void check_plan(const struct tailor_load_plan *plan, size_t lines)
{
	/* Within what 64 bits of nanoseconds hold since 1970, so that no difference of times is a wrapped one. */
	const uint64_t longest_ns = UINT64_C(10000000000) * TAILOR_NS_PER_S;

	require(plan->recorded_count > 0 && plan->count > 0 && plan->count <= plan->recorded_count);
	require(plan->recorded_count + plan->recorded_skipped <= lines);
	require(plan->recorded[0].offset_ns == 0);
	for (size_t i = 0; i < plan->recorded_count; i++) {
		require(plan->recorded[i].request < plan->count);
		require(plan->recorded[i].offset_ns <= longest_ns + TAILOR_NS_PER_S);
		require(i == 0 || plan->recorded[i].offset_ns >= plan->recorded[i - 1].offset_ns);
	}
	for (size_t i = 0; i < plan->count; i++)
		check_request(&plan->requests[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const headers[] = {"X-Test: 1"};
	const struct tailor_load_common common = {
	        .host = "127.0.0.1:80", .method = "GET", .headers = headers, .header_count = 1};
	const char *path = fuzz_file(data, size);
	struct tailor_load_plan plans[2] = {0};
	char error[TAILOR_LOAD_ERROR_BYTES];
	size_t lines = 1;
	int ret[2];

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	for (int i = 0; i < 2; i++) {
		error[0] = '\0';
		ret[i] = tailor_load_plan_record(&plans[i], &common, path, error);
		require(ret[i] <= 0);
		if (ret[i] < 0)
			fuzz_require_line(error);
		else
			check_plan(&plans[i], lines);
	}
	require(ret[0] == ret[1] && plans[0].count == plans[1].count &&
	        plans[0].recorded_count == plans[1].recorded_count);
	for (size_t i = 0; ret[0] == 0 && i < plans[0].recorded_count; i++)
		require(plans[0].recorded[i].offset_ns == plans[1].recorded[i].offset_ns &&
		        plans[0].recorded[i].request == plans[1].recorded[i].request);
	tailor_load_plan_free(&plans[0]);
	tailor_load_plan_free(&plans[1]);
	return 0;
}
