/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "proxy/pool.h"

#define BLOCKS 200
#define BYTES 8192

static unsigned int pages_of(const struct pool *pool)
{
	static unsigned char present[BLOCKS * BYTES / 4096];
	unsigned int pages = 0;

	assert_int_equal(mincore(pool->memory, BLOCKS * BYTES, present), 0);
	for (size_t i = 0; i < sizeof(present); i++)
		pages += present[i] & 1;
	return pages;
}

static void take_all(struct pool *pool, void *blocks[], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		blocks[i] = pool_take(pool);
		memset(blocks[i], 0x11, BYTES);
	}
}

static void give_all(struct pool *pool, void *blocks[], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pool_give(pool, blocks[i]);
}

static void blocks_are_distinct_and_untouched_until_taken(void **state)
{
	struct pool pool;
	void *blocks[BLOCKS];

	(void)state;
	assert_int_equal(pool_open(&pool, BLOCKS, BYTES), 0);
	assert_int_equal(pages_of(&pool), 0);
	take_all(&pool, blocks, BLOCKS);
	for (unsigned int i = 0; i < BLOCKS; i++) {
		for (unsigned int j = 0; j < i; j++)
			assert_true((char *)blocks[i] >= (char *)blocks[j] + BYTES ||
			            (char *)blocks[j] >= (char *)blocks[i] + BYTES);
	}
	give_all(&pool, blocks, BLOCKS);
	pool_give(&pool, NULL);
	pool_close(&pool);
	pool_close(&pool);
}

static void what_was_given_back_last_is_taken_first(void **state)
{
	struct pool pool;
	void *a, *b;

	(void)state;
	assert_int_equal(pool_open(&pool, BLOCKS, BYTES), 0);
	a = pool_take(&pool);
	b = pool_take(&pool);
	pool_give(&pool, b);
	pool_give(&pool, a);
	assert_ptr_equal(pool_take(&pool), a);
	assert_ptr_equal(pool_take(&pool), b);
	pool_close(&pool);
}

static void a_past_peak_gives_its_pages_back_and_some_blocks_stay_warm(void **state)
{
	struct pool pool;
	void *blocks[BLOCKS];
	unsigned int calls = 0, warm;

	(void)state;
	assert_int_equal(pool_open(&pool, BLOCKS, BYTES), 0);
	take_all(&pool, blocks, BLOCKS);
	assert_false(pool_trimmable(&pool));
	give_all(&pool, blocks, BLOCKS);
	/* They were in use since the last look. */
	pool_trim(&pool);
	assert_int_equal(pages_of(&pool), BLOCKS * BYTES / 4096);
	while (pool_trimmable(&pool)) {
		pool_trim(&pool);
		assert_true(++calls < BLOCKS);
	}
	warm = pages_of(&pool) / (BYTES / 4096);
	assert_true(warm > 0 && warm < BLOCKS / 4);
	/* The warm ones come first, and all of them work. */
	take_all(&pool, blocks, warm);
	assert_int_equal(pages_of(&pool), warm * (BYTES / 4096));
	take_all(&pool, blocks + warm, BLOCKS - warm);
	assert_int_equal(pages_of(&pool), BLOCKS * BYTES / 4096);
	pool_close(&pool);
}

static void blocks_in_use_now_and_then_keep_their_pages(void **state)
{
	struct pool pool;
	void *blocks[BLOCKS];

	(void)state;
	assert_int_equal(pool_open(&pool, BLOCKS, BYTES), 0);
	take_all(&pool, blocks, BLOCKS);
	give_all(&pool, blocks, BLOCKS);
	for (int i = 0; i < 100; i++) {
		pool_trim(&pool);
		take_all(&pool, blocks, BLOCKS);
		give_all(&pool, blocks, BLOCKS);
	}
	assert_int_equal(pages_of(&pool), BLOCKS * BYTES / 4096);
	pool_close(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(blocks_are_distinct_and_untouched_until_taken),
	        cmocka_unit_test(what_was_given_back_last_is_taken_first),
	        cmocka_unit_test(a_past_peak_gives_its_pages_back_and_some_blocks_stay_warm),
	        cmocka_unit_test(blocks_in_use_now_and_then_keep_their_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
