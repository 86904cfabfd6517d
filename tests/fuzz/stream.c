/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's whole connection: head, body, next head, as the proxy walks it. Proves that there is one way to read it:
 * the same requests with the same bodies however the bytes came; and that what is forwarded, walked as the server will
 * walk it, is these requests again, no more and no fewer. A difference would be a way to smuggle a request through.
 */
#include "fuzz.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* What is sent on has up to three fields more: Host, the framing, traceparent. */
	static const struct http1_limits here = {.head_bytes = 8192, .fields = HTTP1_FIELDS_MAX - 3};
	static const struct http1_limits there = {.head_bytes = 20000, .fields = HTTP1_FIELDS_MAX};
	static struct story whole, parts, behind;
	char *forwarded = NULL;
	size_t bytes = 0;

	whole = (struct story){.forward = open_memstream(&forwarded, &bytes)};
	require(whole.forward);
	walk((const char *)data, size, UINT32_MAX, &here, &whole);
	fclose(whole.forward);
	parts = behind = (struct story){0};
	walk((const char *)data, size, fuzz_seed(data, size), &here, &parts);
	require(parts.count == whole.count && parts.verdict == whole.verdict);
	walk(forwarded, bytes, UINT32_MAX, &there, &behind);
	require(behind.count == whole.count && (behind.verdict == 0 || whole.verdict < 0));
	for (size_t i = 0; i < whole.count; i++) {
		/* Of a body that is refused in its middle, how much was passed on before depends on the parts. */
		size_t compared = whole.seen[i].whole ? sizeof(struct seen) : offsetof(struct seen, body);

		require(memcmp(&whole.seen[i], &parts.seen[i], compared) == 0);
		require(memcmp(&whole.seen[i], &behind.seen[i], compared) == 0);
	}
	free(forwarded);
	return 0;
}
