/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "asan.h"
#include "world.h"

enum fake_buffer_state {
	BUFFER_FREE,   /* the kernel may receive into it */
	BUFFER_FILLED, /* received into; the worker has not heard of it yet */
	BUFFER_LENT,   /* the worker's */
};

uint64_t fake_buffers_missing;

static size_t stride(const struct fake_buffers *buffers)
{
	return buffers->headroom + buffers->bytes;
}

static void poison(struct fake_buffers *buffers, uint16_t buffer)
{
	char *memory = fake_buffers_memory(buffers, buffer) - buffers->headroom;

	/* Whoever still reads from it reads that. */
	memset(memory, 0x5a, buffers->headroom + 64);
	ASAN_POISON_MEMORY_REGION(memory, stride(buffers));
}

void fake_buffers_open(struct fake_buffers *buffers, unsigned int count, size_t bytes, size_t headroom)
{
	*buffers = (struct fake_buffers){.bytes = bytes, .headroom = headroom, .count = count};
	if (count == 0)
		return;
	buffers->memory = malloc(count * stride(buffers));
	buffers->free = calloc(count, sizeof(*buffers->free));
	buffers->state = calloc(count, sizeof(*buffers->state));
	world_check(buffers->memory && buffers->free && buffers->state, "out of memory");
	buffers->free_count = count;
	for (unsigned int i = 0; i < count; i++) {
		buffers->free[i] = (uint16_t)i;
		poison(buffers, (uint16_t)i);
	}
	if (world_chance(400))
		buffers->withheld = count - (unsigned int)world_between(0, 6);
}

void fake_buffers_close(struct fake_buffers *buffers)
{
	world_check(buffers->free_count == buffers->count, "a worker ends, and %u receive buffers were not given back",
	            buffers->count - buffers->free_count);
	free(buffers->memory);
	free(buffers->free);
	free(buffers->state);
}

bool fake_buffers_take(struct fake_buffers *buffers, uint16_t *ret_buffer)
{
	if (buffers->free_count <= buffers->withheld) {
		fake_buffers_missing++;
		return false;
	}
	*ret_buffer = buffers->free[buffers->first];
	buffers->first = (buffers->first + 1) % buffers->count;
	buffers->free_count--;
	buffers->state[*ret_buffer] = BUFFER_FILLED;
	ASAN_UNPOISON_MEMORY_REGION(fake_buffers_memory(buffers, *ret_buffer) - buffers->headroom, stride(buffers));
	return true;
}

void fake_buffers_deliver(struct fake_buffers *buffers, uint16_t buffer)
{
	world_check(buffers->state[buffer] == BUFFER_FILLED, "buffer %u is delivered twice", buffer);
	buffers->state[buffer] = BUFFER_LENT;
}

void fake_buffers_return(struct fake_buffers *buffers, uint16_t buffer)
{
	world_check(buffer < buffers->count && buffers->state[buffer] == BUFFER_LENT,
	            "buffer %u is given back, which the worker does not have", buffer);
	buffers->state[buffer] = BUFFER_FREE;
	buffers->free[(buffers->first + buffers->free_count++) % buffers->count] = buffer;
	poison(buffers, buffer);
}

char *fake_buffers_memory(const struct fake_buffers *buffers, uint16_t buffer)
{
	return buffers->memory + buffer * stride(buffers) + buffers->headroom;
}
