/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single values of a config file, from their text. Each leaves *value as it is when the text is absent (NULL) or not
 * acceptable; the latter is complained about, with the path, the text and what it should have been.
 */
#ifndef TAILOR_CONFIG_VALUE_H
#define TAILOR_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "config/complaint.h"

/* Bounds of a duration, as they are written too. */
struct duration_bounds {
	uint64_t min_ns, max_ns;
	const char *min, *max;
	bool zero; /* 0 is allowed as well, also without a unit */
};

/* A number with a unit of time within those bounds. */
void take_duration(struct validation *validation, const char *path, const char *text, const struct duration_bounds *bounds, uint64_t *value);

/* A number with a unit of size, from min to max bytes. */
void take_size(struct validation *validation, const char *path, const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* A whole number from min to max. */
void take_number(struct validation *validation, const char *path, const char *text, uint32_t min, uint32_t max, uint32_t *value);

/* A percentage, "10%" or "2.5%", as a part from 0 to 1. */
void take_part(struct validation *validation, const char *path, const char *text, double *value);

/* `true` or `false`. */
void take_flag(struct validation *validation, const char *path, const char *text, bool *value);

/* A file's path of fewer than max bytes. */
void take_path(struct validation *validation, const char *path, const char *text, size_t max, char *value);

/* An address to listen on or connect to. */
void take_address(struct validation *validation, const char *path, const char *text, bool allow_unix, bool allow_port_0,
                  struct tailor_address *value);

#endif /* TAILOR_CONFIG_VALUE_H */
