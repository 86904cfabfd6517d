/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "load/load.h"

const char *tailor_load_failure_name(enum tailor_load_failure failure)
{
	switch (failure) {
	case TAILOR_LOAD_NO_CONNECTION: return "without a connection";
	case TAILOR_LOAD_TIMEOUT: return "timed out";
	case TAILOR_LOAD_CUT: return "cut off";
	case TAILOR_LOAD_INVALID: return "answered with something that is not HTTP/1.1";
	case TAILOR_LOAD_INTERRUPTED: return "not answered when the load was stopped";
	case TAILOR_LOAD_FAILURES: break;
	}
	return "unknown";
}

int tailor_load_result_init(struct tailor_load_result *result)
{
	memset(result, 0, sizeof(*result));
	result->response = tailor_histogram_new();
	result->service = tailor_histogram_new();
	result->late = tailor_histogram_new();
	result->sent = tailor_histogram_new();
	return result->response && result->service && result->late && result->sent ? 0 : -ENOMEM;
}

void tailor_load_result_free(struct tailor_load_result *result)
{
	tailor_histogram_free(result->response);
	tailor_histogram_free(result->service);
	tailor_histogram_free(result->late);
	tailor_histogram_free(result->sent);
	memset(result, 0, sizeof(*result));
}

void tailor_load_result_reset(struct tailor_load_result *result)
{
	struct tailor_load_result empty = {
	        .response = result->response, .service = result->service, .late = result->late, .sent = result->sent};

	tailor_histogram_reset(empty.response);
	tailor_histogram_reset(empty.service);
	tailor_histogram_reset(empty.late);
	tailor_histogram_reset(empty.sent);
	*result = empty;
}

void tailor_load_result_add_slow(struct tailor_load_result *result, const struct tailor_load_slow *slow)
{
	size_t at = result->slow_count;

	if (at == TAILOR_LOAD_SLOWEST && result->slowest[at - 1].response_ns >= slow->response_ns)
		return;
	if (at < TAILOR_LOAD_SLOWEST)
		result->slow_count++;
	else
		at--;
	for (; at > 0 && result->slowest[at - 1].response_ns < slow->response_ns; at--)
		result->slowest[at] = result->slowest[at - 1];
	result->slowest[at] = *slow;
}

void tailor_load_result_merge(struct tailor_load_result *into, const struct tailor_load_result *from)
{
	into->wanted += from->wanted;
	into->good += from->good;
	into->in_time += from->in_time;
	into->bad += from->bad;
	into->different += from->different;
	into->dropped += from->dropped;
	into->opened += from->opened;
	into->body_bytes += from->body_bytes;
	for (int i = 0; i < TAILOR_LOAD_FAILURES; i++)
		into->failed[i] += from->failed[i];
	tailor_histogram_merge(into->response, from->response);
	tailor_histogram_merge(into->service, from->service);
	tailor_histogram_merge(into->late, from->late);
	tailor_histogram_merge(into->sent, from->sent);
	if (from->connect_error)
		into->connect_error = from->connect_error;
	if (from->until_ns > into->until_ns)
		into->until_ns = from->until_ns;
	for (size_t i = 0; i < from->slow_count; i++)
		tailor_load_result_add_slow(into, &from->slowest[i]);
}

uint64_t tailor_load_result_failed(const struct tailor_load_result *result)
{
	uint64_t failed = 0;

	for (int i = 0; i < TAILOR_LOAD_FAILURES; i++)
		failed += result->failed[i];
	return failed;
}
