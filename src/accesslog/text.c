/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tailor/event_names.h>
#include <time.h>

#include "accesslog/accesslog.h"
#include "accesslog/phases.h"
#include "base/clock.h"

struct output {
	char *at;
	char *end;
	bool full;
};

static void put(struct output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct output *output, const char *format, ...)
{
	size_t room = (size_t)(output->end - output->at);
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(output->at, room, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= room)
		output->full = true;
	else
		output->at += length;
}

/* What could end the quoted part, or the line, is written as \xHH, as other servers do. */
static void put_quoted(struct output *output, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
			put(output, "\\x%02x", byte);
		else
			put(output, "%c", byte);
	}
}

static void put_client(struct output *output, uint32_t ip)
{
	if (ip)
		put(output, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff);
	else
		put(output, "-");
}

static void put_time(struct output *output, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / TAILOR_NS_PER_S);
	struct tm local;
	char text[40];

	localtime_r(&seconds, &local);
	strftime(text, sizeof(text), "%d/%b/%Y:%H:%M:%S %z", &local);
	put(output, " - - [%s]", text);
}

static void put_ms(struct output *output, const char *name, uint64_t ns)
{
	put(output, " %s=%.3f", name, (double)ns / TAILOR_NS_PER_MS);
}

size_t tailor_accesslog_format_text(const struct tailor_record *record, uint64_t wall_ns, char *to, size_t size)
{
	const struct tailor_request *request = &record->request;
	struct output output = {.at = to, .end = to + size};
	struct phases phases = phases_of(record);

	put_client(&output, record->client_ip);
	put_time(&output, wall_ns);
	put(&output, " \"");
	if (request->target[0]) {
		put_quoted(&output, request->target);
		put(&output, " HTTP/1.%u", record->minor);
	} else {
		put(&output, "-"); /* no head was read, or none that could be parsed */
	}
	put(&output, "\" %u %llu id=%016llx server=%s end=%s attempts=%u failover=%s", request->status,
	    (unsigned long long)request->response_bytes, (unsigned long long)request->id,
	    request->server[0] ? request->server : "-", tailor_request_end_name((enum tailor_request_end)request->end),
	    request->attempts, tailor_failover_reason_name((enum tailor_failover_reason)request->failover));
	put_ms(&output, "ms", phases.total);
	put_ms(&output, "head_ms", phases.head);
	put_ms(&output, "connect_ms", phases.connect);
	put_ms(&output, "server_ms", phases.server);
	put_ms(&output, "response_ms", phases.response);
	put_ms(&output, "client_ms", phases.client);
	/* At the end: whoever knows the line by its places finds all others where they were. */
	if (record->refusal)
		put(&output, " refused=%s", tailor_refusal_name((enum tailor_refusal)record->refusal));
	put(&output, "\n");
	return output.full ? 0 : (size_t)(output.at - to);
}
