/* SPDX-License-Identifier: Apache-2.0 */
/* Inside proxy/ only: text that is put together in a buffer, all of it or none. */
#ifndef TAILOR_PROXY_OUTPUT_H
#define TAILOR_PROXY_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "http1/http1.h"

struct output {
	char *at;
	char *end;
	bool full; /* something did not fit; what follows may have */
};

static inline void put(struct output *output, const char *data, size_t length)
{
	if (length > (size_t)(output->end - output->at)) {
		output->full = true;
		return;
	}
	memcpy(output->at, data, length);
	output->at += length;
}

#define PUT(output, literal) put(output, literal, sizeof(literal) - 1)

static inline void put_number(struct output *output, uint64_t number)
{
	char digits[20];
	size_t length = 0;

	do
		digits[sizeof(digits) - ++length] = (char)('0' + number % 10);
	while (number /= 10);
	put(output, digits + sizeof(digits) - length, length);
}

#endif /* TAILOR_PROXY_OUTPUT_H */
