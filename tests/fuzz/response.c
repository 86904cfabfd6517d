/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response head. Proves: the verdict does not depend on how the bytes came, and what is accepted lies inside the
 * input; the request's method changes nothing but the framing; and the head that the proxy writes for a client of
 * HTTP/1.1 or 1.0 tells that client where the body ends in the way that the proxy then keeps to.
 */
#include "head.h"
#include "proxy/head.h"

static const struct http1_limits limits = {.head_bytes = 4096, .fields = HTTP1_FIELDS_MAX};

static void check_head(const struct http1_head *head, const char *data, size_t size)
{
	fuzz_require_head(head, data, size, &limits);
	require(head->status >= 100 && head->status <= 599);
	require(!head->keep_alive || head->framing != HTTP1_UNTIL_CLOSE);
	fuzz_require_inside(head->reason, data, head->head_bytes);
}

/* What the proxy promises to the client, as choose_reframing() in proxy/response.c decides it. */
static void check_forwarded(const struct http1_head *head, enum http1_method method, uint8_t minor)
{
	static const struct http1_limits wide = {.head_bytes = 8192, .fields = HTTP1_FIELDS_MAX};
	struct exchange exchange = {
	        .id = 0xa1, .method = method, .minor = minor, .response_framing = head->framing, .close = minor == 0};
	enum http1_framing expected = head->framing;
	char to[4096 + HEAD_ADDED_BYTES];
	struct http1_search search = {0};
	static struct http1_head again;
	int length;

	if (head->framing == HTTP1_UNTIL_CLOSE && minor >= 1) {
		exchange.reframing = REFRAME_TO_CHUNKED;
		expected = HTTP1_CHUNKED;
	} else if (head->framing == HTTP1_CHUNKED && minor == 0) {
		exchange.reframing = REFRAME_FROM_CHUNKED;
		expected = HTTP1_UNTIL_CLOSE;
	}
	length = head->status < 200 ? head_write_interim(head, NULL, to, head->head_bytes + HEAD_ADDED_BYTES)
	                            : head_write_response(&exchange, head, NULL, "Sun, 06 Nov 1994 08:49:37 GMT", to, head->head_bytes + HEAD_ADDED_BYTES);
	require(length > 0);
	if (head->field_count > HTTP1_FIELDS_MAX - 4)
		return;
	require(http1_parse_response(to, (size_t)length, &wide, &search, method, &again) == 1);
	require(again.head_bytes == (size_t)length && again.status == head->status && again.minor == 1);
	require(again.framing == expected && again.content_length == head->content_length);
	require(head->status < 200 || again.keep_alive == !exchange.close);
	require(!again.upgrade);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum http1_method methods[] = {HTTP1_GET, HTTP1_HEAD, HTTP1_POST};
	const char *text = (const char *)data;
	static struct http1_head whole, parts;
	int first = 0;

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const struct fuzz_parser parser = {.limits = &limits, .response = true, .method = methods[i]};
		int status = fuzz_parse(&parser, text, size, UINT32_MAX, &whole);

		require(status == 0 || status == 1 || status == -502);
		require(i == 0 || status == first);
		first = status;
		require(fuzz_parse(&parser, text, size, 0, &parts) == status);
		require(fuzz_parse(&parser, text, size, fuzz_seed(data, size), &parts) == status);
		if (status != 1)
			continue;
		require(parts.head_bytes == whole.head_bytes && parts.framing == whole.framing);
		check_head(&whole, text, size);
		require(methods[i] != HTTP1_HEAD || whole.framing == HTTP1_NO_BODY);
		check_forwarded(&whole, methods[i], 1);
		check_forwarded(&whole, methods[i], 0);
	}
	return 0;
}
