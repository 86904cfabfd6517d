/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/pool.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#endif

/* Blocks that keep their pages however long nobody needs them: some requests now and then shall find them warm. */
#define KEPT 32
/* A call must not hold up the requests of this turn: each block is a system call. */
#define TRIMMED_AT_ONCE 4

static void *map(size_t bytes)
{
	void *memory =
	        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int pool_open(struct pool *pool, uint32_t blocks, size_t block_bytes)
{
	*pool = (struct pool){.block_bytes = block_bytes, .blocks = blocks};
	pool->memory = map(blocks * block_bytes);
	pool->free = map(blocks * sizeof(*pool->free));
	if (pool->memory && pool->free) {
		ASAN_POISON_MEMORY_REGION(pool->memory, blocks * block_bytes);
		return 0;
	}
	pool_close(pool);
	return -ENOMEM;
}

void pool_close(struct pool *pool)
{
	if (pool->memory) {
		ASAN_UNPOISON_MEMORY_REGION(pool->memory, pool->blocks * pool->block_bytes);
		munmap(pool->memory, pool->blocks * pool->block_bytes);
	}
	if (pool->free)
		munmap(pool->free, pool->blocks * sizeof(*pool->free));
	*pool = (struct pool){0};
}

void *pool_take(struct pool *pool)
{
	char *block;

	if (pool->count > 0) {
		block = pool->free[--pool->count];
		if (pool->count < pool->low)
			pool->low = pool->count;
		if (pool->count < pool->clean)
			pool->clean = pool->count;
	} else {
		assert(pool->used < pool->blocks);
		block = pool->memory + pool->used++ * pool->block_bytes;
		pool->low = 0;
	}
	ASAN_UNPOISON_MEMORY_REGION(block, pool->block_bytes);
	return block;
}

void pool_give(struct pool *pool, void *block)
{
	if (!block)
		return;
	assert(pool->count < pool->used);
	ASAN_POISON_MEMORY_REGION(block, pool->block_bytes);
	pool->free[pool->count++] = block;
}

void pool_trim(struct pool *pool)
{
	uint32_t end = pool->low > KEPT ? pool->low - KEPT : 0;

	if (end > pool->clean + TRIMMED_AT_ONCE)
		end = pool->clean + TRIMMED_AT_ONCE;
	for (; pool->clean < end; pool->clean++)
		(void)madvise(pool->free[pool->clean], pool->block_bytes, MADV_DONTNEED);
	pool->low = pool->count;
}

bool pool_trimmable(const struct pool *pool)
{
	return pool->count > pool->clean + KEPT;
}
