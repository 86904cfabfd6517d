/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/record.h"

static void write_told(struct worker *worker, const struct told *told, enum tailor_event_kind kind, uint32_t extra,
                       const uint64_t arg[3])
{
	record_at(worker, record_ns(worker), kind, told->request, extra, arg, NULL, 0);
}

void record_told(struct worker *worker)
{
	const struct told told = worker->told;
	const uint64_t begun = told.what & RECORD_RESPONSE_BEGIN ? TAILOR_RESPONSE_BEGAN : 0;
	const uint64_t replied = told.what & RECORD_REPLY_BEGIN ? TAILOR_RESPONSE_REPLIED : 0;

	worker->told.what = 0;
	if (told.what & RECORD_RESPONSE_END) {
		write_told(worker, &told, TAILOR_EVENT_RESPONSE_END, told.attempt,
		           (const uint64_t[3]){told.port, told.bytes, begun | replied});
		return;
	}
	if (begun)
		write_told(worker, &told, TAILOR_EVENT_RESPONSE_BEGIN, told.attempt, (const uint64_t[3]){told.port});
	if (replied)
		write_told(worker, &told, TAILOR_EVENT_REPLY_BEGIN, 0, (const uint64_t[3]){0});
}

static void tell(struct worker *worker, uint8_t what)
{
	worker->told.what |= what;
	if (worker->step_ns == 0)
		record_told(worker);
}

void record_response(struct worker *worker, uint8_t what, const struct exchange *exchange, unsigned int index)
{
	const struct attempt *attempt = &exchange->attempt[index];
	uint32_t number = record_attempt_number(exchange, index);
	struct told *told = &worker->told;

	if (exchange->id == 0)
		return;
	/* Another attempt's, or what comes behind an end. */
	if (told->what && (told->request != exchange->id || told->attempt != number || what <= told->what))
		record_told(worker);
	told->request = exchange->id;
	told->attempt = number;
	told->port = attempt->port;
	told->bytes = attempt->response_bytes;
	tell(worker, what);
}

void record_reply(struct worker *worker, const struct exchange *exchange)
{
	struct told *told = &worker->told;

	if (exchange->id == 0)
		return;
	if (told->what && told->request != exchange->id)
		record_told(worker);
	told->request = exchange->id;
	tell(worker, RECORD_REPLY_BEGIN);
}
