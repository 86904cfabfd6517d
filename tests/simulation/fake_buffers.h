/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring's receive buffers: whose each one is. What the kernel has is poisoned, so that a use of a buffer that was
 * given back is seen under AddressSanitizer. In many lives the kernel has only a few of them at a time.
 */
#ifndef TAILOR_SIMULATION_FAKE_BUFFERS_H
#define TAILOR_SIMULATION_FAKE_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_buffers {
	char *memory;
	size_t bytes, headroom; /* of each */
	unsigned int count;
	uint16_t *free; /* the kernel's, in the order in which they were given: a circle */
	unsigned int first, free_count;
	unsigned int withheld; /* of the free ones, never used */
	uint8_t *state;        /* enum fake_buffer_state */
};

extern uint64_t fake_buffers_missing; /* how often one was wanted, and none was there */

void fake_buffers_open(struct fake_buffers *buffers, unsigned int count, size_t bytes, size_t headroom);
/* All must be the kernel's again. */
void fake_buffers_close(struct fake_buffers *buffers);

/* The next one to receive into; false when there is none. */
bool fake_buffers_take(struct fake_buffers *buffers, uint16_t *ret_buffer);
/* It is the worker's: with its completion. */
void fake_buffers_deliver(struct fake_buffers *buffers, uint16_t buffer);
void fake_buffers_return(struct fake_buffers *buffers, uint16_t buffer);
/* The first received byte. */
char *fake_buffers_memory(const struct fake_buffers *buffers, uint16_t buffer);

#endif /* TAILOR_SIMULATION_FAKE_BUFFERS_H */
