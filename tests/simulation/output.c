/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "world.h"

static void make_room(struct output *output, size_t length)
{
	if (output->length + length <= output->size)
		return;
	output->size = 2 * (output->length + length);
	output->data = realloc(output->data, output->size);
	world_check(output->data, "out of memory");
}

void output_put(struct output *output, const void *data, size_t length)
{
	make_room(output, length);
	memcpy(output->data + output->length, data, length);
	output->length += length;
}

void output_text(struct output *output, const char *text)
{
	output_put(output, text, strlen(text));
}

void output_pattern(struct output *output, uint64_t key, uint64_t offset, size_t length)
{
	make_room(output, length);
	world_pattern(key, offset, output->data + output->length, length);
	output->length += length;
}
