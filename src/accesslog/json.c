/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <tailor/event_names.h>
#include <time.h>

#include "accesslog/accesslog.h"
#include "accesslog/phases.h"
#include "base/clock.h"

static json_t *time_json(uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / TAILOR_NS_PER_S);
	struct tm utc;
	char text[40];

	gmtime_r(&seconds, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	return json_sprintf("%s.%06uZ", text, (unsigned int)(wall_ns % TAILOR_NS_PER_S / TAILOR_NS_PER_US));
}

static json_t *client_json(uint32_t ip)
{
	if (!ip)
		return json_null();
	return json_sprintf("%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff);
}

static double ms(uint64_t ns)
{
	return (double)(ns / TAILOR_NS_PER_US) / 1e3;
}

/* NULL becomes null; a target that is not UTF-8, which JSON can't hold, too: its bytes are in the text format. */
static json_t *text_json(const char *text)
{
	json_t *value = text && text[0] ? json_string(text) : NULL;

	return value ? value : json_null();
}

size_t tailor_accesslog_format_json(const struct tailor_record *record, uint64_t wall_ns, char *to, size_t size)
{
	const struct tailor_request *request = &record->request;
	struct phases phases = phases_of(record);
	json_t *line = json_pack(
	        "{s:o, s:o, s:o, s:o, s:i, s:I, s:o, s:s, s:i, s:o, s:f, s:{s:f, s:f, s:f, s:f, s:f}, s:s*}", "time",
	        time_json(wall_ns), "id", json_sprintf("%016llx", (unsigned long long)request->id), "client",
	        client_json(record->client_ip), "request", text_json(request->target), "status", (int)request->status, "bytes",
	        (json_int_t)request->response_bytes, "server", text_json(request->server), "end",
	        tailor_request_end_name((enum tailor_request_end)request->end), "attempts", (int)request->attempts, "failover",
	        request->failover
	                ? json_string(tailor_failover_reason_name((enum tailor_failover_reason)request->failover))
	                : json_null(),
	        "ms", ms(phases.total), "phases_ms", "head", ms(phases.head), "connect", ms(phases.connect), "server",
	        ms(phases.server), "response", ms(phases.response), "client", ms(phases.client), "refused",
	        record->refusal ? tailor_refusal_name((enum tailor_refusal)record->refusal) : NULL);
	size_t length;

	if (!line)
		return 0;
	length = json_dumpb(line, to, size, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(line);
	if (length == 0 || length >= size)
		return 0;
	to[length] = '\n';
	return length + 1;
}
