/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunked body. Proves: its end, or that it is none, does not depend on how the bytes came; what
 * http1_chunked_data() calls data is what the proxy's own reader of chunks (proxy/reframe.c) takes out of it; and that
 * data, chunked again, is a valid body with the same data.
 */
#include <errno.h>

#include "fuzz.h"
#include "http1/http1.h"
#include "proxy/reframe.h"

/* Follows the body; returns what http1_chunked_take() did in sum, with *ret_done. Its data goes to `to`. */
static int64_t follow(const char *data, size_t size, uint32_t seed, char *to, size_t *ret_bytes, bool *ret_done)
{
	struct http1_chunked chunked = {0};
	size_t taken = 0;

	*ret_bytes = 0;
	*ret_done = false;
	while (taken < size && !*ret_done) {
		size_t part = fuzz_part(&seed, size - taken);
		uint64_t of_data = http1_chunked_data(&chunked);
		int64_t used;

		if (of_data > 0 && part > of_data)
			part = (size_t)of_data;
		used = http1_chunked_take(&chunked, data + taken, part, ret_done);
		if (used < 0) {
			require(used == -EPROTO && of_data == 0);
			require(http1_chunked_take(&chunked, data, size, ret_done) == -EPROTO && !*ret_done);
			return used;
		}
		require((size_t)used == part || *ret_done);
		if (of_data > 0) {
			require((size_t)used == part && !*ret_done);
			require(http1_chunked_data(&chunked) == of_data - part);
			memcpy(to + *ret_bytes, data + taken, part);
			*ret_bytes += part;
		}
		taken += (size_t)used;
	}
	return (int64_t)taken;
}

static void check_reframed(const char *data, size_t size, const char *expected, size_t expected_bytes)
{
	struct exchange from = {0}, to = {.response_complete = true};
	char *plain = malloc(size + 1), *chunks = malloc(size + 64);
	size_t again;
	bool done;

	require(plain && chunks);
	require(reframe_from_chunked(&from, data, (uint32_t)size, plain, (uint32_t)size + 1) == size);
	require(from.out_end == expected_bytes && memcmp(plain, expected, expected_bytes) == 0);
	require(reframe_to_chunked(&to, plain, from.out_end, chunks, (uint32_t)size + 64) == from.out_end);
	require(to.tail_written);
	require(follow(chunks, to.out_end, 0, plain, &again, &done) == (int64_t)to.out_end && done);
	require(again == expected_bytes && memcmp(plain, expected, expected_bytes) == 0);
	free(plain);
	free(chunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint32_t seeds[] = {0, fuzz_seed(data, size)};
	const char *text = (const char *)data;
	struct http1_chunked chunked = {0};
	char *bytes = malloc(size + 1), *first = malloc(size + 1);
	bool done, done_in_parts;
	size_t count, first_count = 0;
	int64_t whole = http1_chunked_take(&chunked, text, size, &done);

	require(bytes && first && (whole == -EPROTO || (whole >= 0 && (size_t)whole <= size)));
	require(whole < 0 || done || (size_t)whole == size);
	/* Cut where data begins and ends, the only way to know what is data. */
	require(follow(text, size, 0, first, &first_count, &done_in_parts) == whole);
	for (size_t i = 0; i < 2; i++) {
		require(follow(text, size, seeds[i], bytes, &count, &done_in_parts) == whole && done == done_in_parts);
		/* A part that reaches from a size line into data holds data that is not counted: only single bytes tell
		 * all. */
		require(count <= first_count);
	}
	if (whole > 0)
		check_reframed(text, (size_t)whole, first, first_count);
	free(bytes);
	free(first);
	return 0;
}
