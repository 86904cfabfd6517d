/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a client or a server has yet to write: they grow as a message is made. */
#ifndef TAILOR_SIMULATION_OUTPUT_H
#define TAILOR_SIMULATION_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

/* All zero is empty; `data` is freed by its owner. */
struct output {
	char *data;
	size_t length, size;
};

void output_put(struct output *output, const void *data, size_t length);
void output_text(struct output *output, const char *text);
/* The bytes [offset, +length) of the body that belongs to the key: world_pattern(). */
void output_pattern(struct output *output, uint64_t key, uint64_t offset, size_t length);

#endif /* TAILOR_SIMULATION_OUTPUT_H */
