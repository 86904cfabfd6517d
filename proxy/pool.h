/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of memory of one size, mapped once and taken by the page when first used. What was given back last is taken
 * first: few blocks do most of the work and stay in the caches, and those of a past peak lie unused until their pages
 * go back to the kernel. One thread.
 */
#ifndef TAILOR_PROXY_POOL_H
#define TAILOR_PROXY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool {
	char *memory;
	char **free; /* a stack */
	size_t block_bytes;
	uint32_t blocks;
	uint32_t used;  /* blocks that were ever taken: memory behind them is untouched */
	uint32_t count; /* on the stack */
	uint32_t low;   /* the fewest that were there since the last pool_trim() */
	uint32_t clean; /* at its bottom, without pages */
};

/* block_bytes is a multiple of the page size. Returns 0 or -ENOMEM. */
int pool_open(struct pool *pool, uint32_t blocks, size_t block_bytes);
/* Also of a pool that was never opened, if it is zeroed. */
void pool_close(struct pool *pool);

/* Never fails: a pool has a block for everybody who may ask, which is asserted. */
void *pool_take(struct pool *pool);
/* NULL is allowed. */
void pool_give(struct pool *pool, void *block);

/* Gives back to the kernel the pages of a few blocks that nobody has needed since the last call. */
void pool_trim(struct pool *pool);
/* Whether later calls of pool_trim() may find more. */
bool pool_trimmable(const struct pool *pool);

#endif /* TAILOR_PROXY_POOL_H */
