/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a configuration, from a file or from a pipe. */
#ifndef TAILOR_CONFIG_READ_H
#define TAILOR_CONFIG_READ_H

#include <stddef.h>

/*
 * Reads all of it. Returns 0, *ret_length bytes and *ret_text, which the caller frees and which is not terminated, or a negative errno: -EFBIG
 * from 1 MiB on, -ETIMEDOUT where a pipe does not end within 2 s. Any thread.
 */
int config_read(const char *path, char **ret_text, size_t *ret_length);

#endif /* TAILOR_CONFIG_READ_H */
