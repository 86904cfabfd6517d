/* SPDX-License-Identifier: Apache-2.0 */
/* Values with units as people write them in configs and on the command line. */
#ifndef TAILOR_BASE_UNITS_H
#define TAILOR_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Parses a duration with its unit: "250us", "5ms", "1.5s", "2m", "1h", "100ns". No unit, a sign, or spaces
 * is -EINVAL, more than 1000 hours is -ERANGE. Returns 0 and *ret_ns, or one of these.
 */
int tailor_parse_duration(const char *text, uint64_t *ret_ns);

/* Parses a size: "512", "64KiB", "256MiB", "1GiB" (powers of 1024), "10kB", "10MB" (powers of 1000). Returns 0, -EINVAL, or -ERANGE beyond 1 PiB. */
int tailor_parse_size(const char *text, uint64_t *ret_bytes);

/* Parses a whole decimal number from min to max. Returns 0, -EINVAL (not a number) or -ERANGE. */
int tailor_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* Writes a size as tailor_parse_size() reads it, exactly, in the largest unit of 1024s that it is a whole number of, and returns buffer. */
char *tailor_format_size(char *buffer, size_t size, uint64_t bytes);

/* Writes a duration with three significant digits and a fitting unit ("850 ns", "12.3 us", "4.07 ms", "1.50 s") and returns buffer. */
char *tailor_format_duration(char *buffer, size_t size, uint64_t ns);

#endif /* TAILOR_BASE_UNITS_H */
