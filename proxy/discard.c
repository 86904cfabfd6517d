/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/discard.h"

void discard_begin(struct upstream *upstream, enum http1_method method)
{
	upstream->discard = (struct discard){.method = (uint8_t)method};
}

/* The same of the head alone. */
static int take_head(struct worker *worker, struct upstream *upstream)
{
	struct http1_head *head = &worker->head;
	struct input *in = &upstream->in;

	for (;;) {
		int ret = http1_parse_response(in->data + in->start, input_length(in), &worker->response_limits, &upstream->search,
		                               (enum http1_method)upstream->discard.method, head);

		if (ret <= 0)
			return ret;
		if (head->status == 101)
			return -1;
		in->start += (uint32_t)head->head_bytes;
		in->body = in->start;
		upstream->search = (struct http1_search){0};
		if (head->status >= 200)
			break;
		if (input_length(in) == 0)
			return 0;
	}
	if (!head->keep_alive || (head->framing != HTTP1_NO_BODY && head->framing != HTTP1_LENGTH))
		return -1;
	upstream->discard.left = head->framing == HTTP1_LENGTH ? head->content_length : 0;
	upstream->discard.in_body = true;
	return upstream->discard.left <= DISCARD_BYTES_MAX ? 1 : -1;
}

static void take_body(struct upstream *upstream)
{
	struct discard *discard = &upstream->discard;
	struct input *in = &upstream->in;
	uint32_t bytes = discard->left < input_length(in) ? (uint32_t)discard->left : input_length(in);

	in->start += bytes;
	in->body = in->start;
	discard->left -= bytes;
}

int discard_take(struct worker *worker, struct upstream *upstream)
{
	struct discard *discard = &upstream->discard;

	do {
		(void)input_gather(worker, &upstream->in);
		if (!discard->in_body) {
			int ret = take_head(worker, upstream);

			if (ret <= 0)
				return ret;
		}
		take_body(upstream);
	} while (discard->left > 0 && input_waits(&upstream->in));
	if (discard->left > 0)
		return 0;
	/* Behind it is more than was asked for. */
	return input_empty(&upstream->in) ? 1 : -1;
}
